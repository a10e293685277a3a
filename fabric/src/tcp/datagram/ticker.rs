//! The ticker: a timer that runs while datagrams are not acknowledged.
//!
//! A datagram is acknowledged by the next one of the other direction. If there is none until the next tick, a
//! datagram without frames does it. If the oldest bytes of a run are not acknowledged after three ticks, they
//! are sent again over the connection, and no datagrams are sent for a while.
//!
//! The timer is in the poller, so that it wakes the service thread of a PE that computes. It is set with the
//! first datagram after it was idle, so that other datagrams cost no call of the system and no look at a
//! clock.

use super::super::domain::Domain;
use crate::sync::{AtomicBool, Ordering};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// The time between two ticks.
pub(in super::super) const TICK: Duration = Duration::from_millis(4);

/// The ticker of a process.
pub(in super::super) struct Ticker {
    timer: OwnedFd,
    /// Whether a tick is to come.
    is_armed: AtomicBool,
}

impl Ticker {
    pub(in super::super) fn open() -> io::Result<Ticker> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Ticker { timer, is_armed: AtomicBool::new(false) })
    }

    /// The descriptor, which is readable when a tick is due.
    pub(in super::super) fn descriptor(&self) -> RawFd {
        self.timer.as_raw_fd()
    }

    /// Lets a tick come.
    #[inline]
    pub(super) fn arm(&self) {
        if !self.is_armed.load(Ordering::Relaxed) {
            self.set();
        }
    }

    #[cold]
    #[inline(never)]
    fn set(&self) {
        if self.is_armed.swap(true, Ordering::AcqRel) {
            return;
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as _ };
        let time = Itimerspec { it_interval: zero, it_value: once };
        // The arguments are valid, so there is no error.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time);
    }

    /// Takes a tick that is due: another one comes only if the timer is set again. Returns `false` if another
    /// thread has taken it.
    fn take(&self) -> bool {
        let is_due = rustix::io::read(&self.timer, &mut [0; 8]).is_ok();
        if is_due {
            // SYNC POINT tick: before the looks at the queues, each of which is locked for it. A run that a
            // look does not see begins after it, and sets the timer again.
            self.is_armed.swap(false, Ordering::AcqRel);
        }
        is_due
    }
}

impl Domain {
    /// A tick: sends the reports that are owed, and again what was not acknowledged in time.
    #[cold]
    #[inline(never)]
    pub(in super::super) fn tick(&self) {
        let Some(ticker) = self.ticker.as_ref().filter(|ticker| ticker.take()) else { return };
        let peers = self.datagram_peers.lock().clone();
        for peer in peers.into_iter().map(|process| self.peer(process)) {
            if peer.socket().is_none() {
                continue;
            }
            let mut queue = peer.send_queue();
            if queue.tick() {
                log::debug!(
                    target: "fabric",
                    "datagrams to process {} were not acknowledged, and are sent over TCP",
                    peer.process
                );
                self.list_queue(peer, &mut queue);
            }
            if queue.has_open_run() {
                ticker.arm();
            }
        }
        self.flush_unsent();
    }
}
