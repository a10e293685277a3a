//! Fence and quiet over the network: the completion of the operations that were started there.

use crate::wait::engine::Engine;
use pelago_fabric::sync::{Ordering, fence};

impl Engine {
    /// Completes all operations of the PE except those of contexts: see `World::quiet`.
    #[inline]
    #[track_caller]
    pub fn quiet(&self) {
        // SYNC POINT put-order: releases earlier puts to a PE that acquires a later one by
        // `Local::wait_until`. The full fence also keeps later loads behind earlier stores.
        fence(Ordering::SeqCst);
        if self.outstanding.is_needed() {
            self.quiet_outstanding();
        }
    }

    /// The order of outstanding operations over the network is not known, so a fence is a quiet as well.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub fn quiet_outstanding(&self) {
        if let Some(net) = self.net.as_ref().filter(|_| self.outstanding.is_unquiet()) {
            net.quiet(self);
            // SYNC POINT put-order: orders the operations that progress has executed here before those that
            // follow.
            fence(Ordering::SeqCst);
        }
        self.ring_sleepers_for_data();
    }

    /// The part of a quiet that concerns mapped memory.
    #[track_caller]
    pub fn order_stores(&self) {
        // SYNC POINT put-order: as in `quiet`.
        fence(Ordering::SeqCst);
        self.ring_sleepers_for_data();
    }
}
