//! The doorbell of a PE: it sleeps there when spinning no longer pays, and other PEs wake it.
//!
//! Invariant: a PE that changes something that a sleeper waits for looks for sleepers after the change. A
//! sleeper announces itself, looks once more, and only then sleeps. With a full fence between change and look
//! on both sides, one of the two sees the other. A plain put has no look, so that a ring can be missed.
//! Therefore every sleep is bounded, and the bound is the worst delay. A short two-sided message has a look
//! but no fence: its sender would wait at the fence until the receiver's cache has given up the line of the
//! message. The message is visible soon after the look, long before the sleeper has looked
//! [`Doorbell::LAST_LOOKS`] times after its announcement; else the bound is the delay again. The same holds
//! for a member that shows data, or only reads, in a collective operation.

use crate::sync::{AtomicU32, Ordering, differs, fence};
#[cfg(not(loom))]
use std::time::Duration;

/// The reason of a sleep. Only changes of its kind wake the sleeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Other PEs enter a barrier, join or leave.
    Meeting = 1,
    /// Another PE writes to this PE's memory, or sends it a message.
    Data = 2,
}

/// The numbers of threads of this node that sleep or are about to: all of them, and those that wait for data.
/// One load shows whether there is a sleeper to wake.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Sleepers {
    all: AtomicU32,
    for_data: AtomicU32,
}

impl Sleepers {
    /// The number of threads that wait for data.
    #[inline]
    pub fn for_data(&self) -> &AtomicU32 {
        &self.for_data
    }

    /// Whether any thread sleeps, or is about to.
    #[inline]
    pub fn any(&self) -> bool {
        self.all.load(Ordering::Relaxed) != 0
    }

    fn add(&self, cause: Cause) {
        self.all.fetch_add(1, Ordering::Relaxed);
        if cause == Cause::Data {
            self.for_data.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn remove(&self, cause: Cause) {
        self.all.fetch_sub(1, Ordering::Relaxed);
        if cause == Cause::Data {
            self.for_data.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A PE's doorbell, alone on its cache line. All zero bytes are a doorbell without sleepers. Threads of the
/// PE that sleep at the same time share it: see `withdraw`.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Doorbell {
    /// The [`Cause`]s, as bits, of the sleepers that have not been rung for yet. It is the first field, where
    /// a load costs least.
    sleeping: AtomicU32,
    epoch: AtomicU32,
}

/// A sleeper's announcement, to be withdrawn with [`Doorbell::withdraw`].
#[derive(Clone, Copy, Debug)]
pub struct Announcement {
    epoch: u32,
    cause: Cause,
}

impl Doorbell {
    /// The number of looks of a sleeper between its announcement and its sleep: 1 to 4 microseconds.
    pub const LAST_LOOKS: u32 = 32;

    /// Announces a sleeper: at the doorbell, in the node's count, and in `waiters`, the count of threads that
    /// wait for the same word, if there is one. Before it sleeps, the caller then checks
    /// [`LAST_LOOKS`](Doorbell::LAST_LOOKS) times whether its wait is over.
    pub fn announce(&self, sleepers: &Sleepers, waiters: Option<&AtomicU32>, cause: Cause) -> Announcement {
        // SYNC POINT doorbell-epoch: acquires the clearing of the bit by a ring whose epoch is seen here.
        let epoch = self.epoch.load(Ordering::Acquire);
        self.sleeping.fetch_or(cause as u32, Ordering::Relaxed);
        sleepers.add(cause);
        if let Some(waiters) = waiters {
            waiters.fetch_add(1, Ordering::Relaxed);
        }
        // SYNC POINT doorbell: orders the announcement before the sleeper's last looks.
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

    /// Whether the doorbell has rung since the announcement. The loom models poll this instead of sleeping.
    pub fn has_rung(&self, announced: Announcement) -> bool {
        self.epoch.load(Ordering::Relaxed) != announced.epoch
    }

    /// Whether a ring would still wake the sleeper that has made this announcement: it has not rung, and no
    /// other thread of this PE has withdrawn an announcement for the same cause.
    pub fn is_awaited(&self, announced: Announcement) -> bool {
        !self.has_rung(announced) && self.sleeping.load(Ordering::Relaxed) & announced.cause as u32 != 0
    }

    /// Withdraws the announcement, after waking or instead of sleeping. Another thread of this PE that sleeps
    /// for the same cause is then not rung for any more: it wakes within the bound of its sleep.
    pub fn withdraw(&self, sleepers: &Sleepers, waiters: Option<&AtomicU32>, announced: Announcement) {
        if let Some(waiters) = waiters {
            waiters.fetch_sub(1, Ordering::Relaxed);
        }
        self.sleeping.fetch_and(!(announced.cause as u32), Ordering::Relaxed);
        sleepers.remove(announced.cause);
    }

    /// Whether a thread sleeps here, or is about to, that has not been rung for yet.
    #[inline(always)]
    pub fn has_sleepers(&self) -> bool {
        differs::<0>(&self.sleeping)
    }

    /// Wakes the threads that sleep here, for any cause.
    #[inline]
    pub fn ring_all(&self) {
        if self.has_sleepers() {
            self.ring_sleepers();
        }
    }

    #[cold]
    #[inline(never)]
    fn ring_sleepers(&self) {
        self.ring(Cause::Meeting);
        self.ring(Cause::Data);
    }

    /// Wakes the threads that sleep here for this cause. They are woken once: after that a ring costs one
    /// load again.
    pub fn ring(&self, cause: Cause) {
        let bit = cause as u32;
        let is_meant = self.sleeping.load(Ordering::Relaxed) & bit != 0;
        if !is_meant || self.sleeping.fetch_and(!bit, Ordering::Relaxed) & bit == 0 {
            return;
        }
        // SYNC POINT doorbell-epoch: releases the clearing of the bit.
        self.epoch.fetch_add(1, Ordering::Release);
        #[cfg(not(loom))]
        wake(&self.epoch);
    }
}

#[cfg(not(loom))]
fn wake(epoch: &AtomicU32) {
    use rustix::thread::futex;
    // It is not an error if no thread sleeps. After any other error the sleeper wakes at its bound.
    let _ = futex::wake(epoch, futex::Flags::empty(), i32::MAX as u32);
}
