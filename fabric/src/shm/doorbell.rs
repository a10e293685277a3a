//! The doorbell of a PE: where it sleeps when spinning no longer pays, and how others wake it.
//!
//! Invariant: whoever changes something that a sleeper waits for rings after the change; a sleeper announces
//! itself, looks once more, and only then sleeps. As the change and the look at the announcement are not
//! fenced on the fast path, a ring can be missed: every sleep is therefore bounded, and the bound is the
//! worst delay.

use crate::sync::{AtomicU32, Ordering};
#[cfg(not(loom))]
use std::time::Duration;

/// A PE's doorbell, alone on its cache line. All zero bytes are a quiet one.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Doorbell {
    epoch: AtomicU32,
    sleeping: AtomicU32,
}

/// A sleeper's announcement, to be withdrawn with [`Doorbell::withdraw`].
#[derive(Clone, Copy, Debug)]
pub struct Announcement {
    epoch: u32,
}

impl Doorbell {
    /// Announces a sleeper, at the doorbell and in the node's count. The caller then looks once more at what
    /// it waits for, before it sleeps.
    pub fn announce(&self, sleepers: &AtomicU32) -> Announcement {
        let epoch = self.epoch.load(Ordering::Relaxed);
        sleepers.fetch_add(1, Ordering::Relaxed);
        // SYNC POINT doorbell: orders the announcement before the sleeper's last look (with `ring`'s load).
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        Announcement { epoch }
    }

    /// Sleeps until the doorbell rings after the announcement, or until the bound has passed.
    #[cfg(not(loom))]
    pub fn sleep(&self, announced: Announcement, bound: Duration) {
        use rustix::thread::futex;
        let timeout = futex::Timespec { tv_sec: 0, tv_nsec: bound.subsec_nanos().into() };
        // Any outcome, a signal or a late ring as well, makes the caller look again.
        let _ = futex::wait(&self.epoch, futex::Flags::empty(), announced.epoch, Some(&timeout));
    }

    /// Whether the doorbell has rung since the announcement (the loom models sleep by asking).
    pub fn has_rung(&self, announced: Announcement) -> bool {
        self.epoch.load(Ordering::Relaxed) != announced.epoch
    }

    /// Withdraws the announcement, after waking or instead of sleeping.
    pub fn withdraw(&self, sleepers: &AtomicU32) {
        self.sleeping.fetch_sub(1, Ordering::Relaxed);
        sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes all who sleep here; without a sleeper it costs one load. Returns whether somebody was woken.
    pub fn ring(&self) -> bool {
        // SYNC POINT doorbell: orders the ringer's change before its look at the announcement.
        if self.sleeping.load(Ordering::SeqCst) == 0 {
            return false;
        }
        self.epoch.fetch_add(1, Ordering::Relaxed);
        #[cfg(not(loom))]
        let _ =
            rustix::thread::futex::wake(&self.epoch, rustix::thread::futex::Flags::empty(), i32::MAX as u32);
        true
    }
}
