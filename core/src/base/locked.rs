//! Locks without poison: the data that a lock protects here stay valid when a thread that holds it panics.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Acquires a lock and returns its contents.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the contents of a lock, unless another thread holds it.
pub fn try_locked<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
