//! Locks of the whole job: one PE at a time holds a lock, and PEs acquire it in the order of their requests.
//!
//! A [`Queue`](queue::Queue) is the algorithm, and requires that its caller is in it at most once. Its users
//! ensure that: a [`Lock`] lets this PE's threads take turns, and a [`RawLock`] keeps a list of the locks
//! that this PE has requested.

pub(crate) mod queue;
mod raw;

use crate::Pe;
use crate::array::symmetric::Symmetric;
use crate::world::World;
use pelago_core::base::awaited::Awaited;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::kind::ObjectKind;
use pelago_core::base::locked::locked;
use pelago_fabric::sync::{Ordering, fence};
use queue::{LOCK_WORDS, Queue};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard};
use std::thread::{ThreadId, current};

pub use raw::RawLock;

/// A lock of the whole job: see [`World::lock`].
pub struct Lock<'w> {
    words: Symmetric<'w, u32>,
    home: Pe,
    turns: Mutex<Turns>,
}

/// The threads of this PE that request the lock, in the order of their requests. One at a time takes part in
/// the queue of the PEs.
#[derive(Debug, Default)]
struct Turns {
    /// Tickets issued so far.
    given: u64,
    /// The ticket whose turn it is.
    serving: u64,
    holder: Option<ThreadId>,
}

/// The guard of a lock that is held. Dropping it completes this PE's puts and passes the lock to the next
/// holder. If it is forgotten instead, the lock stays held until the [`Lock`] itself is dropped on this PE.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard<'l> {
    lock: &'l Lock<'l>,
    /// The thread that acquired the lock releases it.
    not_send: PhantomData<*const ()>,
}

impl World {
    /// Creates a lock that at most one thread of one PE can hold at a time. PEs acquire it in the order of
    /// their requests, and so do the threads of a PE. Collective over all PEs; the lock has symmetric memory
    /// of its own.
    ///
    /// ```
    /// # pelago::spmd(4, |world| -> pelago::Result<()> {
    /// let (lock, total) = (world.lock()?, world.alloc_zeroed::<f64>(1)?);
    /// {
    ///     let _guard = lock.acquire()?;
    ///     total.p(0, 0, total.g(0, 0)? + 0.5)?; // only this thread holds the lock
    /// } // complete and released
    /// world.barrier();
    /// assert_eq!(total.g(0, 0)?, 2.0);
    /// # world.barrier();
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// A lock cannot be dropped while it is held:
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
    #[track_caller]
    pub fn lock(&self) -> Result<Lock<'_>> {
        let words = self.alloc_zeroed_as::<u32>(ObjectKind::Lock, LOCK_WORDS)?;
        // The homes of several locks are distributed over the PEs. The offset of a lock is the same
        // everywhere.
        let home = words.place.offset_bytes() / BLOCK_BYTES % self.n_pes();
        Ok(Lock { words, home, turns: Mutex::default() })
    }
}

/// The size of a lock in the heap: a header, and a cache line for its words.
const BLOCK_BYTES: usize = 128;

impl Lock<'_> {
    /// Waits until this thread of this PE holds the lock. Operations that other PEs had completed when they
    /// released it are then visible, and so are their puts under the lock, except those through a
    /// [`Context`](crate::Context).
    ///
    /// # Errors
    /// If this thread holds it already, or the job has failed.
    ///
    /// # Panics
    /// If every other PE has left the job, so that none can release the lock.
    #[track_caller]
    pub fn acquire(&self) -> Result<Guard<'_>> {
        let ticket = {
            let mut turns = self.turns();
            if turns.holder == Some(current().id()) {
                return Err(held(self.world(), "acquire", self.home));
            }
            turns.given += 1;
            turns.given - 1
        };
        let awaited = Awaited::Completion { operation: "acquire", pe: self.world().my_pe() };
        let is_turn = || self.turns().serving == ticket;
        if !is_turn() {
            let part = self.words.local().part;
            self.world().core().wait_with(awaited, Some(part.waiters()), is_turn);
        }
        self.queue().acquire().inspect_err(|_| self.end_turn())?;
        Ok(self.hold())
    }

    /// Takes the lock if it is free; `None` if another PE, another thread or this thread holds it.
    ///
    /// # Errors
    /// If the job has failed.
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<Guard<'_>>> {
        {
            let mut turns = self.turns();
            if turns.serving != turns.given {
                return Ok(None);
            }
            turns.given += 1;
        }
        let is_ours = self.queue().try_acquire();
        if !matches!(is_ours, Ok(true)) {
            self.end_turn();
        }
        is_ours.map(|is_ours| is_ours.then(|| self.hold()))
    }

    fn world(&self) -> &World {
        self.words.world()
    }

    fn queue(&self) -> Queue<'_> {
        Queue { words: &self.words, last: 0, home: self.home }
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        locked(&self.turns)
    }

    fn hold(&self) -> Guard<'_> {
        self.turns().holder = Some(current().id());
        Guard { lock: self, not_send: PhantomData }
    }

    /// Lets the next thread of this PE have its turn.
    #[track_caller]
    fn end_turn(&self) {
        {
            let mut turns = self.turns();
            turns.holder = None;
            turns.serving += 1;
        }
        // SYNC POINT doorbell: orders the change before the check for sleepers.
        fence(Ordering::SeqCst);
        if self.words.local().part.has_waiters() {
            self.words.ring(self.words.region().my_rank());
        }
    }

    /// Completes this PE's puts and releases the lock. It is for destructors: it does not panic if the thread
    /// is panicking.
    #[track_caller]
    fn release(&self) {
        let world = self.world();
        if world.core().barrier.is_closed() {
            // The job has failed here, and no PE waits for this lock any more.
            return;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            world.quiet();
            // An error means that the job has failed, which a PE that waits for the lock detects as well.
            let _ = self.queue().release();
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

/// The error for a caller that holds the lock or waits for it already.
fn held(world: &World, operation: &'static str, home: Pe) -> crate::Error {
    ErrorKind::LockHeld { me: world.my_pe(), operation, home }.into()
}
