//! Raw locks: their memory is a range of an array that the caller chooses.

use super::held;
use super::queue::{LOCK_WORDS, Queue};
use crate::Pe;
use crate::array::view::View;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::memory::usage::Claims;

/// A lock in two words of an array on each PE. The words are 0 before the first use, and are used for nothing
/// else. The holder is a PE, not a thread: any thread of the PE may release it. The lock does not complete
/// operations. If a thread acquires it while another thread of the same PE holds it or waits for it, the call
/// returns an error; use [`Lock`](crate::Lock) to let threads take turns.
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
    queue: Queue<'a>,
}

impl<'a> View<'a, u32> {
    /// Returns the lock in the elements `index` and `index + 1` of every PE. The tail of its queue is at PE
    /// `home`. All PEs must give the same `index` and `home`.
    ///
    /// # Errors
    /// If there is no such PE, or the elements do not exist.
    pub fn lock_at(&self, index: usize, home: Pe) -> Result<RawLock<'_>> {
        self.check("lock_at", home, index, LOCK_WORDS)?;
        Ok(RawLock { queue: Queue { words: self, last: index, home } })
    }
}

impl RawLock<'_> {
    /// Waits until this PE holds the lock.
    ///
    /// # Errors
    /// If this PE holds it or another of its threads waits for it, or the job has failed.
    ///
    /// # Panics
    /// If every other PE has left the job without passing the lock on.
    #[track_caller]
    pub fn acquire(&self) -> Result<()> {
        if !self.claims().claim(self.place()) {
            return Err(held(self.queue.words.world(), "acquire", self.home()));
        }
        self.queue.acquire().inspect_err(|_| self.claims().give_up(self.place()))
    }

    /// Takes the lock if it is free, and returns whether this PE has taken it.
    ///
    /// # Errors
    /// If the job has failed.
    #[track_caller]
    pub fn try_acquire(&self) -> Result<bool> {
        if !self.claims().claim(self.place()) {
            return Ok(false);
        }
        let is_ours = self.queue.try_acquire();
        if !matches!(is_ours, Ok(true)) {
            self.claims().give_up(self.place());
        }
        is_ours
    }

    /// Passes the lock to the next PE, or frees it. The next holder sees all operations that were complete
    /// before.
    ///
    /// # Errors
    /// If this PE does not hold it, or the job has failed.
    #[track_caller]
    pub fn release(&self) -> Result<()> {
        if !self.claims().is_claimed(self.place()) {
            let (me, home) = (self.queue.words.world().my_pe(), self.home());
            return Err(ErrorKind::LockNotHeld { me, operation: "release", home }.into());
        }
        self.queue.release().inspect(|()| self.claims().give_up(self.place()))
    }

    /// The PE at which the tail of the queue is. The queue names it by its rank.
    fn home(&self) -> Pe {
        self.queue.words.region().pe(self.queue.home)
    }

    /// The offset of the lock in the array, in bytes.
    fn place(&self) -> usize {
        self.queue.last * size_of::<u32>()
    }

    fn claims(&self) -> &Claims {
        &self.queue.words.usage().locks
    }
}
