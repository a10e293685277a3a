//! The doorbell of a PE: where it sleeps when spinning no longer pays, and how others wake it.
//!
//! Invariant: whoever changes something that a sleeper waits for looks for sleepers after the change; a
//! sleeper announces itself, looks once more, and only then sleeps. With a full fence between change and look
//! on both sides, one of them sees the other. A plain put has no such fence, so a ring can be missed: every
//! sleep is bounded, and the bound is the worst delay.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::time::Duration;

/// What a sleeper waits for, so that it is woken by changes of that kind only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// That other PEs come to a barrier, join or leave.
    Meeting = 1,
    /// That another PE writes to this PE's memory, or sends it a message.
    Data = 2,
}

/// How many PEs of a node sleep or are about to, by cause, in one word: one load tells a ringer that there is
/// nobody to wake.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Sleepers {
    by_cause: AtomicU64,
}

impl Sleepers {
    /// Whether somebody waits for data.
    #[inline]
    pub fn any_for_data(&self) -> bool {
        self.by_cause.load(Ordering::Relaxed) >= one(Cause::Data)
    }

    /// Whether somebody waits for anything.
    #[inline]
    pub fn any(&self) -> bool {
        self.by_cause.load(Ordering::Relaxed) != 0
    }
}

/// One sleeper in the word of counts: data in the upper half, meetings in the lower.
const fn one(cause: Cause) -> u64 {
    match cause {
        Cause::Meeting => 1,
        Cause::Data => 1 << 32,
    }
}

/// A PE's doorbell, alone on its cache line, for one sleeper at a time. All zero bytes are a quiet one.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Doorbell {
    epoch: AtomicU32,
    /// 0, or the [`Cause`] of the sleeper for whom nobody has rung yet.
    sleeping: AtomicU32,
}

/// A sleeper's announcement, to be withdrawn with [`Doorbell::withdraw`].
#[derive(Clone, Copy, Debug)]
pub struct Announcement {
    epoch: u32,
    cause: Cause,
}

impl Doorbell {
    /// Announces a sleeper, at the doorbell and in the node's count. The caller then looks once more at what
    /// it waits for, before it sleeps.
    pub fn announce(&self, sleepers: &Sleepers, cause: Cause) -> Announcement {
        let epoch = self.epoch.load(Ordering::Relaxed);
        self.sleeping.store(cause as u32, Ordering::Relaxed);
        sleepers.by_cause.fetch_add(one(cause), Ordering::Relaxed);
        // SYNC POINT doorbell: orders the announcement before the sleeper's last look.
        fence(Ordering::SeqCst);
        Announcement { epoch, cause }
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
    pub fn withdraw(&self, sleepers: &Sleepers, announced: Announcement) {
        self.sleeping.store(0, Ordering::Relaxed);
        sleepers.by_cause.fetch_sub(one(announced.cause), Ordering::Relaxed);
    }

    /// Wakes who sleeps here for this cause. It is woken once: after that a ring costs one load again.
    pub fn ring(&self, cause: Cause) {
        let is_meant = self.sleeping.load(Ordering::Relaxed) == cause as u32;
        if !is_meant || self.sleeping.swap(0, Ordering::Relaxed) == 0 {
            return;
        }
        self.epoch.fetch_add(1, Ordering::Relaxed);
        #[cfg(not(loom))]
        wake(&self.epoch);
    }
}

#[cfg(not(loom))]
fn wake(epoch: &AtomicU32) {
    use rustix::thread::futex;
    // Nobody asleep is no error; any other error leaves the sleeper to its bound.
    let _ = futex::wake(epoch, futex::Flags::empty(), i32::MAX as u32);
}
