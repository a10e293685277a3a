//! Fence and quiet: the order and the completion of one-sided operations.

use crate::world::World;
use pelago_fabric::sync::{Ordering, fence};

impl World {
    /// Orders this PE's operations: puts, atomics and signals before the fence are delivered, to each PE,
    /// before those after it. It does not wait for their completion between PEs that map each other, and does
    /// not order gets. Operations on a [`Context`](crate::Context) have a fence of their own.
    #[inline]
    #[track_caller]
    pub fn fence(&self) {
        // SYNC POINT put-order: releases earlier puts to a PE that acquires a later one (Local::wait_until).
        fence(Ordering::Release);
        if self.core().outstanding.is_needed() {
            self.core().quiet_outstanding();
        }
    }

    /// Waits until all operations that this PE has started are complete and visible to every PE, non-blocking
    /// ones included; not those of a [`Context`](crate::Context).
    #[inline]
    #[track_caller]
    pub fn quiet(&self) {
        // SYNC POINT put-order: as above; the full fence also keeps later loads behind earlier stores.
        fence(Ordering::SeqCst);
        if self.core().outstanding.is_needed() {
            self.core().quiet_outstanding();
        }
    }
}
