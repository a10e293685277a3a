//! What uses an array beside its handle: collective operations under way, and locks in its words.

use crate::base::locked::locked;
use pelago_fabric::sync::{AtomicU32, Ordering};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// What keeps the space that an array lies in.
pub(crate) trait Space: Debug + Send + Sync {}

/// How many collective operations under way use an array. While one does, the array is not reclaimed,
/// whatever was forgotten or dropped; nor is the space that it lies in.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    running: AtomicU32,
    /// Locks that lie in the array.
    pub(crate) locks: Claims,
    _space: Option<Arc<dyn Space>>,
}

/// An operation's use of an array, until it is dropped.
pub(crate) struct InUse(Arc<Usage>);

impl Usage {
    /// Of a new array, in a space or in the world's heap.
    pub(crate) fn new(space: Option<Arc<dyn Space>>) -> Arc<Usage> {
        Arc::new(Usage { running: AtomicU32::new(0), locks: Claims::default(), _space: space })
    }

    /// One more operation begins to use the array.
    pub(crate) fn begin(self: Arc<Self>) -> InUse {
        self.running.fetch_add(1, Ordering::Relaxed);
        InUse(self)
    }

    /// Whether no operation uses the array.
    pub(crate) fn is_over(&self) -> bool {
        // SYNC POINT usage: acquires what the operations have read and written.
        self.running.load(Ordering::Acquire) == 0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        // SYNC POINT usage: releases what the operation has read and written.
        self.0.running.fetch_sub(1, Ordering::Release);
    }
}

/// The raw locks in an array that this PE holds or waits for, by where they begin, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<Vec<usize>>);

impl Claims {
    /// Notes a lock as wanted; false if it is already.
    pub(crate) fn claim(&self, lock: usize) -> bool {
        let mut claims = locked(&self.0);
        let is_new = !claims.contains(&lock);
        if is_new {
            claims.push(lock);
        }
        is_new
    }

    pub(crate) fn is_claimed(&self, lock: usize) -> bool {
        locked(&self.0).contains(&lock)
    }

    pub(crate) fn give_up(&self, lock: usize) {
        locked(&self.0).retain(|&claimed| claimed != lock);
    }

    /// Forgets those that begin in these bytes.
    pub(crate) fn forget(&self, bytes: Range<usize>) {
        locked(&self.0).retain(|lock| !bytes.contains(lock));
    }
}
