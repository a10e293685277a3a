//! Fence and quiet: the order and the completion of one-sided operations.
//!
//! On mapped memory a put is complete when its stores are visible, so what remains is to order stores.

use crate::world::World;
use pelago_fabric::sync::{Ordering, fence};

impl World {
    /// Orders this PE's puts: those before the fence are delivered, to each PE, before those after it. It
    /// does not wait for their completion, and does not order gets.
    #[inline]
    pub fn fence(&self) {
        // SYNC POINT put-order: releases earlier puts to whoever acquires a later one (Local::wait_until).
        fence(Ordering::Release);
        self.ring_sleepers_for_data();
    }

    /// Waits until all operations that this PE has issued are complete and visible to every PE, non-blocking
    /// ones included.
    #[inline]
    pub fn quiet(&self) {
        // SYNC POINT put-order: as above; the full fence also keeps later loads behind earlier stores.
        fence(Ordering::SeqCst);
        self.ring_sleepers_for_data();
    }
}
