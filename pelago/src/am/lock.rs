//! Locks that handlers and other code of a PE may take (GASNet: handler-safe locks).
//!
//! Invariant: a thread that holds such a lock executes no handlers and waits for no PE, so a handler that
//! waits for the lock waits for a thread that makes progress.

use pelago_core::base::locked::{locked, try_locked};
use pelago_core::job::callback;
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
pub struct HandlerLock<T>(Mutex<T>);

/// Access to the value in a [`HandlerLock`].
#[derive(Debug)]
pub struct HandlerGuard<'a, T>(MutexGuard<'a, T>);

impl<T> HandlerLock<T> {
    /// A lock that no thread holds.
    pub fn new(value: T) -> HandlerLock<T> {
        HandlerLock(Mutex::new(value))
    }

    /// Waits until no other thread of this PE holds it.
    pub fn lock(&self) -> HandlerGuard<'_, T> {
        // A handler yields rather than sleeps: a handler that is asleep is taken for one that is blocked.
        while !callback::is_free() {
            match self.try_lock() {
                Some(guard) => return guard,
                None => rustix::thread::sched_yield(),
            }
        }
        callback::hold(true);
        HandlerGuard(locked(&self.0))
    }

    /// Takes the lock if no thread holds it.
    pub fn try_lock(&self) -> Option<HandlerGuard<'_, T>> {
        let guard = try_locked(&self.0)?;
        callback::hold(true);
        Some(HandlerGuard(guard))
    }

    /// The value in the lock, when it is no longer shared.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for HandlerGuard<'_, T> {
    fn drop(&mut self) {
        callback::hold(false);
    }
}

impl<T> Deref for HandlerGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for HandlerGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
