//! Reader-writer locks, one for the part of each PE.
//!
//! A PE that locks a part first acquires its queueing lock (`lock.rs`). A writer keeps the queueing lock and
//! waits until no reader is left; a reader increments the count of readers and releases the queueing lock at
//! once. So the order is fair, and consecutive readers read together. All waits are for words of the waiter's
//! own PE. Sources: the count of readers is from Courtois, Heymans and Parnas, Concurrent Control with
//! "Readers" and "Writers" (1971); the wake-up of a writer by the last reader, through the writer's own word,
//! is from Mellor-Crummey and Scott, Scalable Reader-Writer Synchronization for Shared-Memory Multiprocessors
//! (1991).
//!
//! ```text
//! read:   queue; STATE of the owner += 1; leave the queue   done: STATE -= 1; was it the last, and a writer
//!                                                                 is marked: TURN of the writer = 1
//! write:  queue; STATE += my mark; were there readers:      done: STATE -= my mark; leave the queue
//!         wait until my TURN is 1, and clear it
//! ```
//!
//! Invariant: STATE has the number of readers in its lower half. Its upper half has the rank plus 1 of the
//! writer at the head of the queue, or 0. A PE is in one queue of an array at a time, and holds no part while
//! it waits: so PEs that lock parts of one array never deadlock.

use crate::Pe;
use crate::array::symmetric::Symmetric;
use crate::array::view::View;
use crate::lock::queue::{LOCK_WORDS, Queue};
use crate::world::World;
use pelago_core::base::call::Call;
use pelago_core::base::error::Result;
use pelago_core::base::kind::ObjectKind;
use pelago_core::base::locked::locked;
use pelago_core::coll::symmetric_region::SymmetricRegion;
use pelago_core::job::callback;
use pelago_fabric::sync::{AtomicU32, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard};

/// Words of 8 bytes on each PE. The first has the two words of the queueing lock.
const WORDS: usize = 3;
const STATE: usize = 1;
const TURN: usize = 2;
/// The bits of STATE with the number of readers.
const READERS: u64 = u32::MAX as u64;
/// The first bit of the writer's mark in STATE.
const MARK_SHIFT: u32 = 32;

/// The access for which a PE locks a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write,
}

/// The locks of all parts.
#[derive(Debug)]
pub struct PartLocks<'w> {
    words: Symmetric<'w, u64>,
    /// The same words in halves, as the queueing locks use them.
    halves: View<'w, u32>,
    /// One thread of this PE at a time queues.
    turn: Mutex<()>,
    /// The mode in which the last guard holds the part, until it is dropped.
    held: AtomicU32,
}

/// Values of `held`.
const HELD: [Option<Mode>; 3] = [None, Some(Mode::Read), Some(Mode::Write)];

/// A part that is locked; its drop releases the lock.
struct Hold<'a> {
    locks: &'a PartLocks<'a>,
    mode: Mode,
    owner: Pe,
}

impl<'w> PartLocks<'w> {
    /// Creates the locks, which no PE holds. Collective.
    pub(super) fn new(world: &'w World, region: &'w SymmetricRegion) -> Result<PartLocks<'w>> {
        let (bytes, align_bytes) = (WORDS * size_of::<u64>(), align_of::<u64>());
        let kind = ObjectKind::PartLocks;
        let mut turn = region.turn(world.core());
        turn.agree(Call::AllocZeroed { kind, bytes, align_bytes })?;
        let words = Symmetric::<u64>::alloc_agreed(world, region, WORDS, align_bytes)?;
        drop(turn);
        words.zero_here();
        region.barrier(world.core());
        const { assert!(LOCK_WORDS * size_of::<u32>() <= STATE * size_of::<u64>()) };
        let halves = words.with_place(words.place.cast());
        Ok(PartLocks { words, halves, turn: Mutex::default(), held: AtomicU32::new(0) })
    }

    /// Runs `work` while this PE holds the lock of `owner`'s part.
    pub(super) fn with<R>(
        &self,
        operation: &'static str,
        (mode, owner): (Mode, Pe),
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        callback::forbid(self.words.world().core(), operation);
        let _turn = self.turn();
        self.release_forgotten();
        self.acquire(mode, owner)?;
        let _hold = Hold { locks: self, mode, owner };
        work()
    }

    /// Locks the own part for a guard. The caller has exclusive access to the array.
    pub(super) fn hold(&self, operation: &'static str, mode: Mode) -> Result<()> {
        callback::forbid(self.words.world().core(), operation);
        let _turn = self.turn();
        self.release_forgotten();
        self.acquire(mode, self.me())?;
        let held = HELD.iter().position(|&held| held == Some(mode)).expect("it is among them");
        self.held.store(held as u32, Ordering::Relaxed);
        Ok(())
    }

    /// Releases the own part that a guard has locked, if it is still locked.
    pub(super) fn let_go(&self) {
        if let Some(mode) = HELD[self.held.swap(0, Ordering::Relaxed) as usize] {
            drop(Hold { locks: self, mode, owner: self.me() });
        }
    }

    /// Releases the part that a forgotten guard holds, before this PE waits for others.
    pub(super) fn settle(&self) {
        let _turn = self.turn();
        self.release_forgotten();
    }

    /// The same for the thread that has the turn. No guard is alive when an operation begins, because guards
    /// borrow the array mutably.
    fn release_forgotten(&self) {
        if self.held.load(Ordering::Relaxed) != 0 {
            self.let_go();
        }
    }

    fn acquire(&self, mode: Mode, owner: Pe) -> Result<()> {
        let queue = self.queue(owner);
        queue.acquire()?;
        if mode == Mode::Read {
            self.words.fetch_add(owner, STATE, 1)?;
            return queue.release();
        }
        if self.words.fetch_add(owner, STATE, self.mark())? != 0 {
            self.words.local().wait_until(TURN, |turn| turn != 0);
            // A fetching atomic, so that it is complete before this PE queues again.
            self.words.swap(self.me(), TURN, 0)?;
        }
        Ok(())
    }

    fn release(&self, mode: Mode, owner: Pe) -> Result<()> {
        if mode == Mode::Write {
            self.words.fetch_add(owner, STATE, self.mark().wrapping_neg())?;
            return self.queue(owner).release();
        }
        let before = self.words.fetch_add(owner, STATE, 1u64.wrapping_neg())?;
        let writer = (before >> MARK_SHIFT).checked_sub(1);
        if let Some(writer) = writer.filter(|_| before & READERS == 1) {
            self.words.swap(writer as Pe, TURN, 1)?;
        }
        Ok(())
    }

    fn queue(&self, owner: Pe) -> Queue<'_> {
        Queue { words: &self.halves, last: 0, home: owner }
    }

    fn me(&self) -> Pe {
        self.words.region().my_rank()
    }

    /// The mark of this PE as the writer at the head of a queue.
    fn mark(&self) -> u64 {
        (self.me() as u64 + 1) << MARK_SHIFT
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        locked(&self.turn)
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let world = self.locks.words.world();
        if world.core().barrier.is_closed() {
            // The job has failed here, and no PE waits for this part any more.
            return;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            world.quiet();
            // An error means that the job has failed, which a PE that waits for the part detects as well.
            let _ = self.locks.release(self.mode, self.owner);
        }));
        if let Err(payload) = outcome
            && !std::thread::panicking()
        {
            resume_unwind(payload);
        }
    }
}

impl Drop for PartLocks<'_> {
    fn drop(&mut self) {
        // A guard was forgotten.
        self.release_forgotten();
    }
}
