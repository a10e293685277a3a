//! Locks that handlers and other code of a PE may take (GASNet: handler-safe locks).
//!
//! Invariant: a thread that holds such a lock executes no handlers and waits for no PE, so a handler that
//! waits for the lock waits for a thread that makes progress.

use pelago_core::base::locked::{locked, try_locked};
use pelago_core::job::callback;
use pelago_fabric::sync::{AtomicUsize, Ordering};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something that handlers of active messages and the rest of the program share. While a thread holds it, no
/// handler runs on that thread, and a wait for another PE is reported as an error.
///
/// ```
/// use pelago::am::{HandlerLock, Handlers};
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// let seen = HandlerLock::new(Vec::new());
/// let mut handlers = Handlers::new();
/// let note = handlers.add("note", |message| seen.lock().push(message.from()));
/// world.team().serve(handlers, |am| am.short(1 - world.my_pe(), note, &[]))??;
/// assert_eq!(*seen.lock(), [1 - world.my_pe()]);
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
#[derive(Debug, Default)]
pub struct HandlerLock<T> {
    value: Mutex<T>,
    /// The mark of the thread that holds it, or 0.
    holder: AtomicUsize,
}

/// Access to the value in a [`HandlerLock`].
#[derive(Debug)]
pub struct HandlerGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    holder: &'a AtomicUsize,
}

impl<T> HandlerLock<T> {
    /// A lock that no thread holds.
    pub fn new(value: T) -> HandlerLock<T> {
        HandlerLock { value: Mutex::new(value), holder: AtomicUsize::new(0) }
    }

    /// Waits until no other thread of this PE holds it.
    ///
    /// # Panics
    /// If this thread holds it: the wait would never end.
    #[track_caller]
    pub fn lock(&self) -> HandlerGuard<'_, T> {
        // No other thread stores this thread's mark.
        let is_held_here = self.holder.load(Ordering::Relaxed) == mark_of_thread();
        assert!(!is_held_here, "this thread holds the HandlerLock already. Drop the first guard before");
        // A handler yields rather than sleeps: a handler that is asleep is taken for one that is blocked.
        while !callback::is_free() {
            match self.try_lock() {
                Some(guard) => return guard,
                None => rustix::thread::sched_yield(),
            }
        }
        callback::hold(true);
        self.held(locked(&self.value))
    }

    /// Takes the lock if no thread holds it.
    pub fn try_lock(&self) -> Option<HandlerGuard<'_, T>> {
        let guard = try_locked(&self.value)?;
        callback::hold(true);
        Some(self.held(guard))
    }

    fn held<'a>(&'a self, guard: MutexGuard<'a, T>) -> HandlerGuard<'a, T> {
        self.holder.store(mark_of_thread(), Ordering::Relaxed);
        HandlerGuard { guard, holder: &self.holder }
    }

    /// The value in the lock, when it is no longer shared.
    pub fn into_inner(self) -> T {
        self.value.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for HandlerGuard<'_, T> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
        callback::hold(false);
    }
}

/// A number that no other thread has while this one lives.
fn mark_of_thread() -> usize {
    thread_local! { static MARK: u8 = const { 0 } }
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

impl<T> Deref for HandlerGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for HandlerGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
