//! Locks of the whole job: one PE at a time holds one, and PEs get it in the order in which they ask.
//!
//! A queueing lock: a word on the lock's home PE names the last PE of the queue, and a word on each PE, its
//! node, says who comes next and whether this PE's turn has come. A waiting PE looks at its own node only.
//! Every change of a word is an atomic operation, so the lock works over whatever carries those. Source:
//! Mellor-Crummey and Scott, Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors
//! (1991), the list-based queueing lock.
//!
//! ```text
//! acquire    last: swap in me               release    node names the next PE: set its TURN
//!   was 0:   the lock is mine                 or else  last: from me to 0, free; or, if no longer me,
//!   was p:   node of p: set next = me                  wait until node names the next, set its TURN
//!            wait until my node has TURN      then     clear my node
//! ```
//!
//! Invariant: a PE that is not in the queue has a node of 0; in a node the bits of the next PE and the bit
//! of the turn are each set once, by one PE, while the owner is in the queue. All words are 0 when the lock
//! is free.

use crate::Pe;
use crate::error::{ErrorKind, Result};
use crate::symmetric::Symmetric;
use crate::view::View;
use crate::wait::Awaited;
use crate::world::World;
use pelago_fabric::sync::{Ordering, fence};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{ThreadId, current};

/// Words that a lock has on each PE: the last of the queue (at the home PE), and the node.
pub(crate) const LOCK_WORDS: usize = 2;
/// In a node: this PE's turn has come. The other bits are the next PE's number and 1, or 0.
const TURN: u32 = 1 << 31;

/// A lock in two words of an array on each PE, which are 0 when nobody has used it yet, and used by nothing
/// else. It does not complete operations, and knows no threads: see [`Lock`], which does.
///
/// ```
/// # pelago::spmd(4, |world| -> pelago::Result<()> {
/// let words = world.alloc_zeroed::<u32>(2)?;
/// let count = world.alloc_zeroed::<u64>(1)?;
/// let lock = words.lock_at(0, 1)?;
/// lock.acquire()?;
/// count.p(0, 0, count.g(0, 0)? + 1)?;
/// world.quiet();
/// lock.release()?;
/// world.barrier();
/// assert_eq!(count.g(0, 0)?, 4);
/// # world.barrier();
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
#[derive(Clone, Copy)]
pub struct RawLock<'a> {
    words: &'a View<'a, u32>,
    last: usize,
    home: Pe,
}

impl View<'_, u32> {
    /// The lock in the elements `index` and `index + 1` of every PE, whose queue ends at PE `home`: the
    /// same for all PEs.
    ///
    /// # Errors
    /// If there is no such PE or there are no such elements.
    pub fn lock_at(&self, index: usize, home: Pe) -> Result<RawLock<'_>> {
        self.check("lock_at", home, index, LOCK_WORDS)?;
        Ok(RawLock { words: self, last: index, home })
    }
}

impl RawLock<'_> {
    /// Waits until this PE holds the lock. One thread of a PE at a time.
    ///
    /// # Errors
    /// If this PE holds it, or the job has failed.
    ///
    /// # Panics
    /// If every other PE has left the job without handing the lock over.
    pub fn acquire(&self) -> Result<()> {
        self.check_free_here("acquire")?;
        let before = self.words.swap(self.home, self.last, self.me())?;
        if before == self.me() {
            return Err(self.held("acquire"));
        }
        if let Some(last) = pe_of(before) {
            self.words.or(last, self.node(), self.me())?;
            self.words.local().wait_until(self.node(), |node| node & TURN != 0);
        }
        Ok(())
    }

    /// Takes the lock if nobody holds it, and says whether this PE holds it now. One thread of a PE at a
    /// time.
    ///
    /// # Errors
    /// If the job has failed.
    pub fn try_acquire(&self) -> Result<bool> {
        Ok(self.words.compare_swap(self.home, self.last, 0, self.me())? == 0)
    }

    /// Hands the lock over to the next PE, or frees it. Who gets it sees what was complete before.
    ///
    /// # Errors
    /// If the job has failed.
    ///
    /// # Panics
    /// If this PE does not hold the lock, when every other PE has left the job.
    pub fn release(&self) -> Result<()> {
        let mut node = self.words.local().get(self.node());
        if pe_of(node & !TURN).is_none() {
            if self.words.compare_swap(self.home, self.last, self.me(), 0)? == self.me() {
                return self.leave(node);
            }
            // Somebody is behind this PE and about to say so.
            node = self.words.local().wait_until(self.node(), |node| node & !TURN != 0);
        }
        if let Some(next) = pe_of(node & !TURN) {
            // Fetching, so that the turn has arrived at return, whatever this PE does then.
            self.words.fetch_or(next, self.node(), TURN)?;
        }
        self.leave(node)
    }

    /// Clears the own node, which nobody writes to any more.
    fn leave(&self, node: u32) -> Result<()> {
        if node != 0 {
            // Fetching, so that it is complete before this PE enters the queue again.
            self.words.swap(self.words.realm().my_rank(), self.node(), 0)?;
        }
        Ok(())
    }

    /// Refuses a PE that is in the queue, as far as its node tells: a PE without a successor is found at
    /// the end of the queue.
    fn check_free_here(&self, operation: &'static str) -> Result<()> {
        match self.words.local().get(self.node()) {
            0 => Ok(()),
            _ => Err(self.held(operation)),
        }
    }

    fn held(&self, operation: &'static str) -> crate::Error {
        ErrorKind::LockHeld { me: self.words.world().my_pe(), operation, home: self.home }.into()
    }

    fn node(&self) -> usize {
        self.last + 1
    }

    /// This PE as the words have it.
    fn me(&self) -> u32 {
        self.words.realm().my_rank() as u32 + 1
    }
}

/// The PE that a word names.
fn pe_of(word: u32) -> Option<Pe> {
    word.checked_sub(1).map(|pe| pe as Pe)
}

/// A lock of the whole job: see [`World::lock`].
pub struct Lock<'w> {
    words: Symmetric<'w, u32>,
    home: Pe,
    turns: Mutex<Turns>,
}

/// The threads of this PE that want the lock, in the order in which they ask: one at a time takes part in
/// the queue of the PEs.
#[derive(Debug, Default)]
struct Turns {
    /// Tickets given out so far.
    given: u64,
    /// The ticket whose turn it is.
    serving: u64,
    holder: Option<ThreadId>,
}

/// A lock that is held; dropping it completes what this PE has put, and lets the next one have the lock.
/// Forgotten instead, the lock stays held until the [`Lock`] itself is dropped here.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard<'l> {
    lock: &'l Lock<'l>,
    /// The thread that acquired the lock releases it.
    not_send: PhantomData<*const ()>,
}

impl World {
    /// Makes a lock that one thread of one PE at a time can hold. PEs get it in the order in which they
    /// ask, and the threads of a PE as well. Collective; the lock has symmetric memory of its own.
    ///
    /// ```
    /// # pelago::spmd(4, |world| -> pelago::Result<()> {
    /// let (lock, total) = (world.lock()?, world.alloc_zeroed::<f64>(1)?);
    /// {
    ///     let _guard = lock.acquire()?;
    ///     total.p(0, 0, total.g(0, 0)? + 0.5)?; // nobody else is here
    /// } // complete and released
    /// world.barrier();
    /// assert_eq!(total.g(0, 0)?, 2.0);
    /// # world.barrier();
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// A lock cannot be given up while it is held:
    /// ```compile_fail,E0505
    /// # pelago::spmd(1, |world| -> pelago::Result<()> {
    /// let lock = world.lock()?;
    /// let guard = lock.acquire()?;
    /// drop(lock);
    /// drop(guard);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`alloc`](World::alloc).
    pub fn lock(&self) -> Result<Lock<'_>> {
        let words = self.alloc_zeroed::<u32>(LOCK_WORDS)?;
        // Many locks have their homes on many PEs. A lock's place is the same everywhere.
        let home = words.place.offset_bytes() / BLOCK_BYTES % self.n_pes();
        Ok(Lock { words, home, turns: Mutex::default() })
    }
}

/// What a lock takes in the heap: a header, and its words on a cache line of their own.
const BLOCK_BYTES: usize = 128;

impl Lock<'_> {
    /// Waits until this thread of this PE holds the lock. What other PEs had completed when they released
    /// it, and put under it through no [`Context`](crate::Context), is then visible.
    ///
    /// # Errors
    /// If this thread holds it already, or the job has failed.
    ///
    /// # Panics
    /// If the lock can no longer come, as every other PE has left the job.
    pub fn acquire(&self) -> Result<Guard<'_>> {
        let ticket = {
            let mut turns = self.turns();
            if turns.holder == Some(current().id()) {
                return Err(self.raw().held("acquire"));
            }
            turns.given += 1;
            turns.given - 1
        };
        let awaited = Awaited::Completion { operation: "acquire", pe: self.world().my_pe() };
        let is_turn = || self.turns().serving == ticket;
        if !is_turn() {
            let part = self.words.local().part;
            self.world().wait_with(awaited, Some(part.waiters()), is_turn);
        }
        self.raw().acquire().inspect_err(|_| self.end_turn())?;
        Ok(self.hold())
    }

    /// Takes the lock if it is free; `None` if another PE or another thread holds it, or this one.
    ///
    /// # Errors
    /// If the job has failed.
    pub fn try_acquire(&self) -> Result<Option<Guard<'_>>> {
        {
            let mut turns = self.turns();
            if turns.serving != turns.given {
                return Ok(None);
            }
            turns.given += 1;
        }
        let is_ours = self.raw().try_acquire();
        if !matches!(is_ours, Ok(true)) {
            self.end_turn();
        }
        is_ours.map(|is_ours| is_ours.then(|| self.hold()))
    }

    fn world(&self) -> &World {
        self.words.world()
    }

    fn raw(&self) -> RawLock<'_> {
        RawLock { words: &self.words, last: 0, home: self.home }
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self) -> Guard<'_> {
        self.turns().holder = Some(current().id());
        Guard { lock: self, not_send: PhantomData }
    }

    /// Lets the next thread of this PE have its turn.
    fn end_turn(&self) {
        {
            let mut turns = self.turns();
            turns.holder = None;
            turns.serving += 1;
        }
        // SYNC POINT doorbell: orders the change before the look at the sleepers.
        fence(Ordering::SeqCst);
        if self.words.local().part.has_waiters() {
            self.words.ring(self.words.realm().my_rank());
        }
    }

    /// Completes what was put under the lock and releases it; for destructors: does not panic while the
    /// thread does.
    fn release(&self) {
        let world = self.world();
        if world.barrier.is_closed() {
            // The job has failed here, and nobody waits for this lock any more.
            return;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            world.quiet();
            // An error says that the job has failed, which whoever waits for the lock sees as well.
            let _ = self.raw().release();
        }));
        self.end_turn();
        if let Err(payload) = outcome
            && !std::thread::panicking()
        {
            resume_unwind(payload);
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.lock.release();
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // A guard was forgotten.
        if self.turns().holder.is_some() {
            self.release();
        }
    }
}

impl std::fmt::Debug for Lock<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lock")
            .field("home", &self.home)
            .field("turns", &*self.turns())
            .finish_non_exhaustive()
    }
}
