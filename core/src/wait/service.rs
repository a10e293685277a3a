//! The interface to the service thread of a PE, by which the PE's other threads call it, stop it and rely on
//! it. The thread itself is in [`service_thread`](super::service_thread).

use crate::base::descriptors::poll_for;
use crate::base::locked::locked;
use crate::endpoint::Endpoint;
use pelago_fabric::sync::{AtomicBool, AtomicU32, Ordering, fence};
use rustix::event::{PollFd, PollFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// How soon the service thread must watch the network for a thread that sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// From now on: the sleeper may wait for an event of the network.
    Watches,
    /// After its current nap, if there is one: a PE of the same node makes the sleeper's condition true.
    MayNap,
}

/// A world's service thread, if it has one.
#[derive(Default)]
pub struct Service {
    running: Mutex<Option<Running>>,
    /// Whether the thread sleeps until a message arrives, or is about to.
    is_on_guard: AtomicBool,
}

pub(super) struct Running {
    pub(super) thread: JoinHandle<()>,
    pub(super) control: Arc<Control>,
}

/// The state by which other threads of the PE control the service thread.
pub struct Control {
    pub(super) is_over: AtomicBool,
    /// The number of threads of the PE that sleep and rely on this one. One of them may hold a lock that
    /// keeps another waiting thread from making progress.
    pub(super) sleepers: AtomicU32,
    /// Whether every arrival wakes the thread.
    pub(super) hears_all: bool,
    /// Whether the thread sleeps until it is woken: see `sleeps.rs`.
    pub(super) is_strict: bool,
    /// Readable after a call.
    pub(super) event: OwnedFd,
}

impl Control {
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        // Relaxed, because this store publishes no other data: the caller waits for the thread's end.
        self.is_over.store(true, Ordering::Relaxed);
        self.call();
    }

    /// Ends the thread's sleep, or its next one.
    pub(super) fn call(&self) {
        // The counter of calls overflows only after 2^64 - 2 of them.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Sleeps, but not longer than `bound`: until a call, or until one of the others is readable. Returns
    /// whether one of these has ended the sleep. After the end there is no sleep: an earlier one may have
    /// consumed the call that ends the thread.
    pub(super) fn sleep(&self, others: Option<BorrowedFd<'_>>, bound: Duration) -> bool {
        if self.is_over() {
            return true;
        }
        let mut fds = [self.event.as_fd(), others.unwrap_or(self.event.as_fd())]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let count = 1 + usize::from(others.is_some());
        poll_for(&mut fds[..count], bound);
        if fds[0].revents().contains(PollFlags::IN) {
            // This consumes the call.
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
        fds[..count].iter().any(|fd| !fd.revents().is_empty())
    }
}

/// A thread that sleeps and relies on the service thread.
pub struct Relying(Option<Arc<Control>>);

impl Drop for Relying {
    fn drop(&mut self) {
        if let Some(control) = &self.0 {
            control.sleepers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Service {
    /// Ends the thread, and returns whether there was one.
    pub fn stop(&self) -> bool {
        let running = self.running().take();
        let Some(Running { thread, control }) = running else { return false };
        control.stop();
        // The thread has caught its own panics.
        let _ = thread.join();
        true
    }

    /// Records that this thread is about to sleep and relies on the service thread, until the result is
    /// dropped.
    pub fn rely(&self) -> Relying {
        let control = self.running().as_ref().map(|running| Arc::clone(&running.control));
        if let Some(control) = &control {
            control.sleepers.fetch_add(1, Ordering::Relaxed);
        }
        Relying(control)
    }

    /// Whether the service thread processes arrivals over the network and then wakes this PE's sleepers. It
    /// does so until a thread of this PE makes progress again.
    pub fn is_guarded(&self, net: &Endpoint, guard: Guard) -> bool {
        let running = self.running();
        let Some(control) = running.as_ref().map(|running| &running.control).filter(|c| c.hears_all) else {
            return false;
        };
        if guard == Guard::MayNap {
            return true;
        }
        net.forget_looks();
        // SYNC POINT guard: the thread has processed all arrivals before it went on guard, and has woken the
        // sleepers; this sleeper announces itself before it checks again.
        if !self.is_on_guard.load(Ordering::Acquire) {
            control.call();
        }
        true
    }

    /// Lets the service thread send what this thread owes other PEs, if it has gone on with its program by
    /// then. A thread calls this when it has made progress. If the service thread is on guard, nothing else
    /// wakes it: this thread may have received what would have.
    #[inline]
    pub fn hand_over(&self, net: &Endpoint) {
        // Most rounds of progress leave nothing to be sent.
        if !net.owed() {
            return;
        }
        // SYNC POINT debts: orders the look at the guard behind the progress of this thread.
        fence(Ordering::SeqCst);
        if self.is_on_guard.load(Ordering::Relaxed) && net.owes() {
            self.end_guard();
        }
    }

    #[cold]
    fn end_guard(&self) {
        if let Some(running) = &*self.running() {
            running.control.call();
        }
    }

    /// Puts the service thread on guard, unless a thread that has made progress meanwhile owes something.
    /// Returns whether it is on guard.
    pub(super) fn begin_guard(&self, net: &Endpoint) -> bool {
        // SYNC POINT guard: releases the arrivals that were processed before.
        self.is_on_guard.store(true, Ordering::Release);
        // SYNC POINT debts: a thread that has made progress before is seen here, or sees the guard.
        fence(Ordering::SeqCst);
        if net.owes() {
            self.leave_guard();
            return false;
        }
        true
    }

    pub(super) fn leave_guard(&self) {
        self.is_on_guard.store(false, Ordering::Relaxed);
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        locked(&self.running)
    }

    /// Records the running thread.
    pub(super) fn set(&self, running: Running) {
        *self.running() = Some(running);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use std::sync::mpsc::channel;

    /// The thread sleeps several times in a round, and looks whether it is over once.
    #[test]
    fn the_call_that_ends_the_thread_ends_all_its_sleeps() {
        const LONG: Duration = Duration::from_secs(3600);
        let is_over = AtomicBool::new(false);
        let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let sleepers = AtomicU32::new(0);
        let control = Arc::new(Control { is_over, sleepers, hears_all: true, is_strict: true, event });
        control.stop();
        let (report, is_awake) = channel();
        let theirs = Arc::clone(&control);
        let thread = std::thread::spawn(move || {
            theirs.sleep(None, LONG);
            theirs.sleep_on_guard(theirs.event.as_fd());
            report.send(()).unwrap();
        });
        let awake = is_awake.recv_timeout(Duration::from_secs(60));
        awake.expect("waited for the service thread to find that it is over");
        thread.join().unwrap();
    }
}
