//! The users of an array besides its handle: collective operations in progress, and locks in its words.

use crate::base::locked::locked;
use pelago_fabric::sync::{AtomicU32, Ordering};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Keeps the space alive that an array lies in.
pub trait Space: Debug + Send + Sync {}

/// The number of collective operations in progress that use an array. While it is not 0, neither the array
/// nor the space that it lies in is reclaimed, even if handles or requests were forgotten or dropped.
#[derive(Debug, Default)]
pub struct Usage {
    running: AtomicU32,
    /// The raw locks in the array's words.
    pub locks: Claims,
    _space: Option<Arc<dyn Space>>,
}

/// An operation's use of an array, which ends when this value is dropped.
pub struct InUse(Arc<Usage>);

impl Usage {
    /// The usage of a new array, in a space or in the world's heap.
    pub fn new(space: Option<Arc<dyn Space>>) -> Arc<Usage> {
        Arc::new(Usage { running: AtomicU32::new(0), locks: Claims::default(), _space: space })
    }

    /// Begins the use of the array by one more operation.
    pub fn begin(self: Arc<Self>) -> InUse {
        self.running.fetch_add(1, Ordering::Relaxed);
        InUse(self)
    }

    /// Whether no operation uses the array.
    pub fn is_over(&self) -> bool {
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

/// The raw locks in an array that this PE holds or waits for, by their offsets in bytes.
#[derive(Debug, Default)]
pub struct Claims(Mutex<Vec<usize>>);

impl Claims {
    /// Records that this PE acquires a lock; `false` if it holds the lock or waits for it already.
    pub fn claim(&self, lock: usize) -> bool {
        let mut claims = locked(&self.0);
        let is_new = !claims.contains(&lock);
        if is_new {
            claims.push(lock);
        }
        is_new
    }

    pub fn is_claimed(&self, lock: usize) -> bool {
        locked(&self.0).contains(&lock)
    }

    pub fn give_up(&self, lock: usize) {
        locked(&self.0).retain(|&claimed| claimed != lock);
    }

    /// Forgets the locks that begin in these bytes.
    pub fn forget(&self, bytes: Range<usize>) {
        locked(&self.0).retain(|lock| !bytes.contains(lock));
    }
}
