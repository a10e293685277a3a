//! The lock of a process's part: shared by several origins, or exclusive to one.
//!
//! ```text
//! bits 0 to 31: the shared holders | bit 32: an exclusive holder | bits 40 on: exclusive ones that wait
//! ```
//! * A shared origin adds 1. If the bit of an exclusive holder was set, it takes that back and tries again.
//! * An exclusive origin sets the bit in a word that is 0. Else it counts itself among those that wait, and
//!   goes from there to the bit in one step, from any word without holders.
//! * A shared origin that finds some waiting takes its addition back and lets them go first, so that shared
//!   ones which come again and again do not keep an exclusive one out. It does so for a bounded time, as a
//!   holder may wait for a message of this origin; and not while it holds another lock of the window, as the
//!   holders for whom the exclusive one waits may wait for that. Before it takes several it looks at them.
//!
//! An origin that maps the block uses atomics of its processor. Others use the runtime's atomics over the
//! network, which the target's progress or its service thread executes, or where no PE maps another, the
//! fabric.
//!
//! Invariant: a word is changed by one kind of executor in a job: see `pelago_core::memory::route`.

use super::control::Peer;
use crate::chapters::library::Mpi;
use crate::chapters::pool_word::PoolWord;
use pelago_core::base::awaited::Awaited;
use pelago_fabric::sync::{Ordering, fence_after_update};
use std::time::{Duration, Instant};

const SHARED: u64 = 1;
const EXCLUSIVE: u64 = 1 << 32;
const WAITING: u64 = 1 << 40;
/// The bits of the holders.
const HELD: u64 = WAITING - 1;
/// How long a shared origin lets exclusive ones go first: some turns of processes that share a core.
const COURTESY: Duration = Duration::from_millis(10);

/// The kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    Shared,
    Exclusive,
    /// None: the program has said that no other process holds or asks for a conflicting lock.
    Unchecked,
}

/// The word of a lock.
trait Word {
    /// Its value, where that costs nothing.
    fn glance(&self) -> Option<u64>;
    /// Adds to it: its old value.
    fn add(&self, operand: u64) -> u64;
    /// Sets it to `new` if it is `compare`: its old value.
    fn swap(&self, compare: u64, new: u64) -> u64;

    /// Wakes those that wait, after a change.
    fn wake(&self);

    fn look(&self) -> u64 {
        self.glance().unwrap_or_else(|| self.add(0))
    }
}

/// Takes a shared lock if no origin holds it exclusively or, for a courteous one, waits to do so.
fn try_shared(word: &impl Word, is_courteous: bool) -> bool {
    let obstacles = if is_courteous { !(EXCLUSIVE - 1) } else { EXCLUSIVE };
    if word.glance().is_some_and(|now| now & obstacles != 0) {
        return false;
    }
    let is_taken = word.add(SHARED) & obstacles == 0;
    if !is_taken {
        word.add(SHARED.wrapping_neg());
        // An exclusive origin may have found the addition and gone to sleep.
        word.wake();
    }
    is_taken
}

/// Takes an exclusive lock that is free, or counts this origin among those that wait: what it saw then.
fn try_exclusive(word: &impl Word) -> Result<(), u64> {
    match word.swap(0, EXCLUSIVE) {
        0 => Ok(()),
        _ => Err(word.add(WAITING).wrapping_add(WAITING)),
    }
}

/// Takes an exclusive lock for an origin that waits. `seen` is what it saw last.
fn try_waiting(word: &impl Word, seen: &mut u64) -> bool {
    loop {
        if let Some(now) = word.glance() {
            *seen = now;
            if now & HELD != 0 {
                return false;
            }
        }
        let free = *seen & !HELD;
        let old = word.swap(free, free - WAITING + EXCLUSIVE);
        if old == free {
            return true;
        }
        *seen = old;
        if old & HELD != 0 {
            return false;
        }
    }
}

/// Gives a lock back.
fn give_back(word: &impl Word, hold: Hold) {
    match hold {
        Hold::Unchecked => return,
        Hold::Exclusive => word.add(EXCLUSIVE.wrapping_neg()),
        Hold::Shared => word.add(SHARED.wrapping_neg()),
    };
    word.wake();
}

/// The word in the control block of a process.
struct Reached<'a> {
    mpi: &'a Mpi,
    peer: &'a Peer,
}

impl Reached<'_> {
    fn place(&self) -> PoolWord {
        PoolWord { operation: "lock", pe: self.peer.pe(), offset: self.peer.lock_offset() }
    }
}

impl Word for Reached<'_> {
    fn glance(&self) -> Option<u64> {
        self.peer.lock().map(|word| word.load(Ordering::Relaxed))
    }

    // The holder acquires what the ones before it have released.
    fn add(&self, operand: u64) -> u64 {
        self.place().add(self.mpi, self.peer.lock(), operand)
    }

    fn swap(&self, compare: u64, new: u64) -> u64 {
        self.place().swap(self.mpi, self.peer.lock(), (compare, new))
    }

    fn wake(&self) {
        if self.peer.lock().is_some() {
            // SYNC POINT doorbell: orders the change before the check for sleepers.
            fence_after_update();
            self.mpi.core.ring_sleepers_for_data();
        }
    }
}

/// Takes a lock. `has_others`: this process holds other locks of the window.
pub fn acquire(mpi: &Mpi, peer: &Peer, hold: Hold, has_others: bool) {
    let word = Reached { mpi, peer };
    match hold {
        Hold::Unchecked => {}
        Hold::Exclusive => {
            if let Err(mut seen) = try_exclusive(&word) {
                wait(mpi, peer, || try_waiting(&word, &mut seen));
            }
        }
        Hold::Shared => {
            if try_shared(&word, !has_others) {
                return;
            }
            let end = Instant::now() + COURTESY;
            wait(mpi, peer, || {
                let is_courteous = !has_others && Instant::now() < end;
                // A look is one operation over the network, an attempt in vain two.
                let is_kept_out = word.look() & if is_courteous { !(EXCLUSIVE - 1) } else { EXCLUSIVE } != 0;
                !is_kept_out && try_shared(&word, is_courteous)
            });
        }
    }
}

/// Lets exclusive origins that wait for one of several locks go first, before this process takes all of them
/// as shared ones. Those that it does not map are not looked at.
pub fn let_go_first<'a>(mpi: &Mpi, peers: impl Iterator<Item = &'a Peer>) {
    let mut end = None;
    for peer in peers {
        let has_waiting = || peer.lock().is_some_and(|word| word.load(Ordering::Relaxed) >= WAITING);
        if has_waiting() {
            let end = *end.get_or_insert_with(|| Instant::now() + COURTESY);
            wait(mpi, peer, || !has_waiting() || Instant::now() >= end);
        }
    }
}

/// Waits until a lock is taken.
fn wait(mpi: &Mpi, peer: &Peer, try_acquire: impl FnMut() -> bool) {
    let awaited = Awaited::Completion { operation: "MPI_Win_lock", pe: peer.pe() };
    // A holder on another node gives the lock back over the network, and wakes nobody but the target.
    match peer.lock().is_some() && mpi.core.routes.are_all_mapped() {
        true => mpi.core.wait(awaited, try_acquire),
        false => mpi.core.wait_by_polls(awaited, try_acquire),
    }
}

/// Gives a lock back.
pub fn release(mpi: &Mpi, peer: &Peer, hold: Hold) {
    give_back(&Reached { mpi, peer }, hold);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pelago_fabric::sync::{AtomicU64, AtomicUsize};

    /// A word that is mapped, or one that is not and cannot be glanced at; and how often others were woken.
    struct Here(AtomicU64, bool, AtomicUsize);

    impl Word for Here {
        fn glance(&self) -> Option<u64> {
            self.1.then(|| self.0.load(Ordering::SeqCst))
        }

        fn add(&self, operand: u64) -> u64 {
            self.0.fetch_add(operand, Ordering::SeqCst)
        }

        fn swap(&self, compare: u64, new: u64) -> u64 {
            let swapped = self.0.compare_exchange(compare, new, Ordering::SeqCst, Ordering::SeqCst);
            swapped.unwrap_or_else(|old| old)
        }

        fn wake(&self) {
            self.2.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A free lock of a process that is mapped, and one of a process that is not.
    fn free_locks() -> [Here; 2] {
        [true, false].map(|is_mapped| Here(AtomicU64::new(0), is_mapped, AtomicUsize::new(0)))
    }

    #[test]
    fn courteous_shared_origins_let_a_waiting_exclusive_one_go_first() {
        for word in free_locks() {
            assert!(try_shared(&word, true) && try_shared(&word, true));
            let mut seen = try_exclusive(&word).unwrap_err();
            let mut other = try_exclusive(&word).unwrap_err();
            assert!(!try_waiting(&word, &mut seen), "two hold it");
            assert!(!try_shared(&word, true), "one waits");
            assert!(
                try_shared(&word, false),
                "an origin that holds another lock of the window does not wait"
            );
            (0..3).for_each(|_| give_back(&word, Hold::Shared));
            assert!(!try_shared(&word, true), "the lock is free, but one waits");
            assert!(try_waiting(&word, &mut seen) && !try_waiting(&word, &mut other));
            assert!(!try_shared(&word, false), "one holds it exclusively");
            assert!(try_exclusive(&word).is_err_and(|now| now == EXCLUSIVE + 2 * WAITING));
            give_back(&word, Hold::Exclusive);
            let mut third = 2 * WAITING;
            assert!(try_waiting(&word, &mut other));
            give_back(&word, Hold::Exclusive);
            assert!(try_waiting(&word, &mut third));
            give_back(&word, Hold::Exclusive);
            assert_eq!(word.look(), 0);
            assert!(try_exclusive(&word).is_ok());
        }
    }

    /// An exclusive origin may have looked while the addition of a shared one was there, and sleep.
    #[test]
    fn a_shared_origin_that_takes_its_addition_back_wakes_exclusive_ones() {
        let [_, word] = free_locks();
        assert!(try_shared(&word, true));
        let mut seen = try_exclusive(&word).unwrap_err();
        assert!(!try_shared(&word, true), "one waits");
        assert_eq!(word.2.load(Ordering::SeqCst), 1, "it was added to and taken back");
        give_back(&word, Hold::Shared);
        assert!(try_waiting(&word, &mut seen) && !try_shared(&word, false));
        assert_eq!(word.2.load(Ordering::SeqCst), 3);
        give_back(&word, Hold::Exclusive);
        assert_eq!((word.look(), word.2.load(Ordering::SeqCst)), (0, 4));
    }

    #[test]
    fn an_exclusive_holder_is_alone() {
        const TURNS: usize = if cfg!(miri) { 10 } else { 2000 };
        for word in free_locks() {
            let (readers, writers) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let turn = |number: usize| {
                if number.is_multiple_of(3) {
                    if let Err(mut seen) = try_exclusive(&word) {
                        while !try_waiting(&word, &mut seen) {
                            std::thread::yield_now();
                        }
                    }
                    assert_eq!(writers.fetch_add(1, Ordering::SeqCst), 0);
                    assert_eq!(readers.load(Ordering::SeqCst), 0);
                    writers.fetch_sub(1, Ordering::SeqCst);
                    return give_back(&word, Hold::Exclusive);
                }
                while !try_shared(&word, number % 3 == 1) {
                    std::thread::yield_now();
                }
                readers.fetch_add(1, Ordering::SeqCst);
                assert_eq!(writers.load(Ordering::SeqCst), 0);
                readers.fetch_sub(1, Ordering::SeqCst);
                give_back(&word, Hold::Shared);
            };
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    scope.spawn(move || (0..TURNS).for_each(|i| turn(thread + i)));
                }
            });
            assert_eq!(word.look(), 0);
        }
    }
}
