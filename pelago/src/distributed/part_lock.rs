//! Locks for readers and writers, one for the part of each PE.
//!
//! Who wants a part queues for its queueing lock (`lock.rs`). A writer keeps that and waits until the readers
//! are gone; a reader counts itself and hands it on at once. So nobody overtakes anybody, and readers that
//! follow each other read together. All waits are for words of the waiter's own PE. The count of readers
//! after Courtois, Heymans and Parnas, Concurrent Control with "Readers" and "Writers" (1971); that the last
//! reader wakes a writer by its own word, after Mellor-Crummey and Scott, Scalable Reader-Writer
//! Synchronization for Shared-Memory Multiprocessors (1991).
//!
//! ```text
//! read:   queue; STATE of the owner += 1; leave the queue   done: STATE -= 1; was it the last, and a writer
//!                                                                 is marked: TURN of the writer = 1
//! write:  queue; STATE += my mark; were there readers:      done: STATE -= my mark; leave the queue
//!         wait until my TURN is 1, and clear it
//! ```
//!
//! Invariant: STATE has the number of readers in its lower half, and in the upper one the rank and 1 of the
//! writer that is at the head of the queue, or 0. A PE is in one queue of an array at a time, and waits while
//! it holds nothing: so PEs that take parts of one array never wait for each other in a circle.

use crate::Pe;
use crate::array::symmetric::Symmetric;
use crate::array::view::View;
use crate::base::call::Call;
use crate::base::error::Result;
use crate::base::kind::ObjectKind;
use crate::base::locked::locked;
use crate::coll::symmetric_region::SymmetricRegion;
use crate::job::callback;
use crate::lock::queue::{LOCK_WORDS, Queue};
use crate::world::World;
use pelago_fabric::sync::{AtomicU32, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard};

/// Words of 8 bytes on each PE. The first has the two words of the queueing lock.
const WORDS: usize = 3;
const STATE: usize = 1;
const TURN: usize = 2;
/// In STATE: the number of readers.
const READERS: u64 = u32::MAX as u64;
/// In STATE: where the writer's mark begins.
const MARK_SHIFT: u32 = 32;

/// What a PE takes a part for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write,
}

/// The locks of all parts.
pub struct PartLocks<'w> {
    words: Symmetric<'w, u64>,
    /// The same words, as the queueing locks have them.
    halves: View<'w, u32>,
    /// One thread of this PE at a time queues.
    turn: Mutex<()>,
    /// What the guard holds that was made last, until it is dropped.
    held: AtomicU32,
}

/// Values of `held`.
const HELD: [Option<Mode>; 3] = [None, Some(Mode::Read), Some(Mode::Write)];

/// A part that is held; its drop lets it go.
struct Hold<'a> {
    locks: &'a PartLocks<'a>,
    mode: Mode,
    owner: Pe,
}

impl<'w> PartLocks<'w> {
    /// Locks that nobody holds. Collective.
    pub(super) fn new(world: &'w World, region: &'w SymmetricRegion) -> Result<PartLocks<'w>> {
        let (bytes, align_bytes) = (WORDS * size_of::<u64>(), align_of::<u64>());
        let kind = ObjectKind::PartLocks;
        region.agree(world, Call::AllocZeroed { kind, bytes, align_bytes })?;
        let words = Symmetric::<u64>::alloc_agreed(world, region, WORDS, align_bytes)?;
        words.zero_here();
        region.barrier(world);
        const { assert!(LOCK_WORDS * size_of::<u32>() <= STATE * size_of::<u64>()) };
        let halves = words.with_place(words.place.cast());
        Ok(PartLocks { words, halves, turn: Mutex::default(), held: AtomicU32::new(0) })
    }

    /// Runs `work` while this PE holds the part of `owner`.
    pub(super) fn with<R>(
        &self,
        operation: &'static str,
        (mode, owner): (Mode, Pe),
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        callback::forbid(self.words.world(), operation);
        let _turn = self.turn();
        self.release_forgotten();
        self.acquire(mode, owner)?;
        let _hold = Hold { locks: self, mode, owner };
        work()
    }

    /// Takes the own part for a guard. The caller has the array for itself.
    pub(super) fn hold(&self, operation: &'static str, mode: Mode) -> Result<()> {
        callback::forbid(self.words.world(), operation);
        let _turn = self.turn();
        self.release_forgotten();
        self.acquire(mode, self.me())?;
        let held = HELD.iter().position(|&held| held == Some(mode)).expect("it is among them");
        self.held.store(held as u32, Ordering::Relaxed);
        Ok(())
    }

    /// Lets the own part go that a guard has held, if it is still held.
    pub(super) fn let_go(&self) {
        if let Some(mode) = HELD[self.held.swap(0, Ordering::Relaxed) as usize] {
            drop(Hold { locks: self, mode, owner: self.me() });
        }
    }

    /// Lets go what a forgotten guard has held, before this PE waits for others.
    pub(super) fn settle(&self) {
        let _turn = self.turn();
        self.release_forgotten();
    }

    /// The same for who has the turn. No guard is alive when an operation begins, as guards borrow the array
    /// mutably.
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
            // Fetching, so that it is complete before this PE queues again.
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

    /// This PE as the writer at the head of a queue.
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
        if world.barrier.is_closed() {
            // The job has failed here, and nobody waits for this part any more.
            return;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            world.quiet();
            // An error says that the job has failed, which whoever waits for the part sees as well.
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
