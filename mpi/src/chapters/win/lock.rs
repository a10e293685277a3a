//! The lock of a process's part: shared by several origins, or exclusive to one.
//!
//! The word counts the shared holders; one bit says that there is an exclusive one. An origin that maps the
//! block uses atomics of its processor. Others use the runtime's atomics over the network, which the target's
//! progress or its service thread executes, or where no PE maps another, the fabric.
//!
//! Invariant: a word is changed by one kind of executor in a job: see `pelago_core::memory::route`.

use super::control::Peer;
use crate::chapters::library::Mpi;
use crate::chapters::pool_word::PoolWord;
use pelago_core::base::awaited::Awaited;
use pelago_fabric::AtomicOp;
use pelago_fabric::sync::{Ordering, fence_after_update, spin_once};

const EXCLUSIVE: u64 = 1 << 32;
/// The most polls of the network between two attempts to take a lock.
const POLLS_MAX: u32 = 256;

/// The kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    Shared,
    Exclusive,
    /// None: the program has said that no other process holds or asks for a conflicting lock.
    Unchecked,
}

/// Takes a lock.
pub fn acquire(mpi: &Mpi, peer: &Peer, hold: Hold) {
    if hold == Hold::Unchecked || try_acquire(mpi, peer, hold) {
        return;
    }
    // A holder on another node gives the lock back over the network, and wakes nobody but the target.
    if peer.lock().is_some() && mpi.core.routes.are_all_mapped() {
        let awaited = Awaited::Completion { operation: "MPI_Win_lock", pe: peer.pe() };
        return mpi.core.wait(awaited, || try_acquire(mpi, peer, hold));
    }
    let mut polls = 1;
    while !try_acquire(mpi, peer, hold) {
        for _ in 0..polls {
            mpi.core.progress();
            spin_once();
        }
        polls = POLLS_MAX.min(2 * polls);
        std::thread::yield_now();
    }
}

fn try_acquire(mpi: &Mpi, peer: &Peer, hold: Hold) -> bool {
    match hold {
        Hold::Unchecked => true,
        Hold::Exclusive => change(mpi, peer, AtomicOp::CompareSwap, EXCLUSIVE) == 0,
        Hold::Shared => {
            if peer.lock().is_some_and(|word| word.load(Ordering::Relaxed) & EXCLUSIVE != 0) {
                return false;
            }
            let is_taken = change(mpi, peer, AtomicOp::Add, 1) & EXCLUSIVE == 0;
            if !is_taken {
                change(mpi, peer, AtomicOp::Add, 1u64.wrapping_neg());
            }
            is_taken
        }
    }
}

/// Gives a lock back.
pub fn release(mpi: &Mpi, peer: &Peer, hold: Hold) {
    let held = match hold {
        Hold::Unchecked => return,
        Hold::Exclusive => EXCLUSIVE,
        Hold::Shared => 1,
    };
    change(mpi, peer, AtomicOp::Add, held.wrapping_neg());
    if peer.lock().is_some() {
        // SYNC POINT doorbell: orders the change before the check for sleepers.
        fence_after_update();
        mpi.core.ring_sleepers_for_data();
    }
}

/// Adds to the word, or sets it if it is 0: its old value.
fn change(mpi: &Mpi, peer: &Peer, op: AtomicOp, operand: u64) -> u64 {
    // The holder acquires what the ones before it have released.
    let word = PoolWord { operation: "lock", pe: peer.pe(), offset: peer.lock_offset() };
    word.change(mpi, peer.lock(), op, operand)
}
