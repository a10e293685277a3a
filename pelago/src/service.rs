//! The service thread: over a net that moves by itself, it does for other PEs what needs this one's processor
//! while this PE computes: atomics that the fabric does not execute, signals, parcels, answers.
//!
//! Invariant: it executes no code of the user, and touches nothing while a thread of this PE waits in the
//! runtime, which serves others by itself. It sleeps until the provider's bell rings, and holds no lock
//! meanwhile. Threads of this PE that sleep at its doorbell are woken after each round: see `is_guarded`. It
//! ends before a world that leaves in order shuts its channels.

use crate::channel::Channel;
use crate::last_words::panic_text;
use crate::world::{GaveUp, World};
use pelago_boot::Settings;
use pelago_fabric::Bell;
use pelago_fabric::sync::{AtomicBool, AtomicU32, Ordering, fence};
use pelago_fabric::threads::without_signals;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The thread's name, by which those who count a PE's threads leave it out. The system keeps 15 characters.
pub(crate) const NAME: &str = "pelago-service";

/// How long it leaves a PE alone that makes progress, and so serves others itself: at first, and at most,
/// where what is urgent moves without it or does not. It is twice as long each time that the PE has done so
/// meanwhile.
const NAP: Duration = Duration::from_micros(500);
const NAP_MAX: Duration = Duration::from_millis(4);
const NAP_MAX_URGENT: Duration = Duration::from_millis(1);
/// How long it lets things gather between two rounds, where what is urgent moves without it.
const GATHERING: Duration = Duration::from_micros(200);
/// How long it leaves the provider to others where it cannot sleep now.
const PAUSE: Duration = Duration::from_micros(50);
/// The longest sleep between two rounds.
const SLEEP_BOUND: Duration = Duration::from_secs(1);

/// When the service thread is to watch the network for a thread that sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// From now on: what the sleeper waits for may come over the network.
    Watches,
    /// After its nap, if it is in one: a PE of the same node brings about what the sleeper waits for.
    MayNap,
}

/// A world's service thread, if it has one.
#[derive(Default)]
pub(crate) struct Service(Mutex<Option<Running>>);

struct Running {
    thread: JoinHandle<()>,
    control: Arc<Control>,
}

/// How other threads of the PE call the service thread.
pub(crate) struct Control {
    is_over: AtomicBool,
    /// Whether the thread sleeps until something arrives, or is about to.
    is_on_guard: AtomicBool,
    /// Threads of the PE that sleep and rely on this one. Another one that waits may be kept from making
    /// progress by a lock that one of them has.
    sleepers: AtomicU32,
    /// Whether everything that arrives wakes the thread.
    hears_all: bool,
    /// Readable after a call.
    event: OwnedFd,
}

impl Control {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        // Nothing is handed over by this: the caller waits for the thread's end.
        self.is_over.store(true, Ordering::Relaxed);
        self.call();
    }

    /// Ends the thread's sleep, or its next one.
    fn call(&self) {
        // The counter of calls has room for 2^64 - 2 of them.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Sleeps, but not longer than `bound`: until a call comes, or one of the others is readable.
    fn sleep(&self, others: Option<BorrowedFd<'_>>, bound: Duration) {
        let mut fds = [self.event.as_fd(), others.unwrap_or(self.event.as_fd())]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let count = 1 + usize::from(others.is_some());
        let bound = Timespec { tv_sec: bound.as_secs() as i64, tv_nsec: bound.subsec_nanos().into() };
        // Whatever comes of it, the caller looks again: to be interrupted is to sleep less.
        let _ = poll(&mut fds[..count], Some(&bound));
        if fds[0].revents().contains(PollFlags::IN) {
            // The call is taken.
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
    }
}

/// A thread that sleeps and relies on the service thread.
pub(crate) struct Relying(Option<Arc<Control>>);

impl Drop for Relying {
    fn drop(&mut self) {
        if let Some(control) = &self.0 {
            control.sleepers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl World {
    /// Starts the thread where there is a use for it, and the settings let it.
    pub(crate) fn start_service(&self, settings: &Settings) {
        if settings.service {
            self.spawn_service();
        }
    }

    /// The same, whatever the settings say.
    pub(crate) fn spawn_service(&self) {
        let Some(net) = self.net.as_ref().filter(|net| net.moves_by_itself()) else { return };
        let Ok(event) = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK) else { return };
        let [is_over, is_on_guard] = [false; 2].map(AtomicBool::new);
        let (sleepers, hears_all) = (AtomicU32::new(0), net.is_urgent());
        let control = Arc::new(Control { is_over, is_on_guard, sleepers, hears_all, event });
        let (world, net, theirs) = (self.shared(), Arc::clone(net), Arc::clone(&control));
        let body = move || {
            let world = world;
            let outcome = catch_unwind(AssertUnwindSafe(|| serve(&world, &net, &theirs)));
            if let Err(payload) = outcome
                && !payload.is::<GaveUp>()
            {
                world.end_process(panic_text(&*payload));
            }
        };
        let spawned = without_signals(|| std::thread::Builder::new().name(NAME.to_owned()).spawn(body));
        if let Ok(thread) = spawned {
            *self.service() = Some(Running { thread, control });
        }
    }

    /// Ends the thread: whether there was one.
    pub(crate) fn stop_service(&self) -> bool {
        let running = self.service().take();
        let Some(Running { thread, control }) = running else { return false };
        control.stop();
        // It has caught whatever it might have panicked with.
        let _ = thread.join();
        true
    }

    /// Says that this thread is about to sleep and relies on the service thread, until the answer is dropped.
    pub(crate) fn rely_on_service(&self) -> Relying {
        let control = self.service().as_ref().map(|running| Arc::clone(&running.control));
        if let Some(control) = &control {
            control.sleepers.fetch_add(1, Ordering::Relaxed);
        }
        Relying(control)
    }

    /// Whether the service thread takes what arrives over the net, and wakes this PE's sleepers then. It does
    /// so until a thread of this PE makes progress again.
    pub(crate) fn is_guarded(&self, net: &Channel, guard: Guard) -> bool {
        let service = self.service();
        let Some(control) = service.as_ref().map(|running| &running.control).filter(|c| c.hears_all) else {
            return false;
        };
        if guard == Guard::MayNap {
            return true;
        }
        net.forget_looks();
        // SYNC POINT guard: what has arrived before the thread went on guard, it has taken, and it has woken
        // the sleepers; this one announces itself before it looks again.
        if !control.is_on_guard.load(Ordering::Acquire) {
            control.call();
        }
        true
    }

    fn service(&self) -> std::sync::MutexGuard<'_, Option<Running>> {
        self.service.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(world: &World, net: &Arc<Channel>, control: &Control) {
    let bell = net.bell();
    let nap_max = if net.is_urgent() { NAP_MAX_URGENT } else { NAP_MAX };
    let mut nap = NAP;
    while !control.is_over() && !net.is_shut() {
        if net.has_looked() && control.sleepers.load(Ordering::Relaxed) == 0 {
            control.sleep(None, nap);
            nap = nap_max.min(2 * nap);
            continue;
        }
        nap = NAP;
        world.serve_others(net);
        // SYNC POINT doorbell: orders what has arrived before the look at this PE's sleepers.
        fence(Ordering::SeqCst);
        world.ring_own();
        match &bell {
            Some(Bell { descriptor, is_urgent }) => {
                if !is_urgent {
                    control.sleep(None, GATHERING);
                }
                // No bell rings for contexts, which move in calls as well where anything does.
                let may_rest = world.has_sent_all() && !(*is_urgent && world.has_contexts_unquiet());
                let bound = if may_rest { SLEEP_BOUND } else { GATHERING };
                if !net.has_waiters() && net.may_sleep() {
                    // SYNC POINT guard: releases what was taken before.
                    control.is_on_guard.store(true, Ordering::Release);
                    control.sleep(Some(descriptor.as_fd()), bound);
                    control.is_on_guard.store(false, Ordering::Relaxed);
                } else {
                    control.sleep(None, PAUSE);
                }
            }
            None => control.sleep(None, GATHERING),
        }
    }
}
