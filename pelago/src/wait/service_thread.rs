//! The service thread: over a net that moves by itself, it does for other PEs what needs this one's processor
//! while this PE computes: atomics that the fabric does not execute, signals, parcels, answers.
//!
//! Invariant: it executes no code of the user, and touches nothing while a thread of this PE waits in the
//! runtime, which serves others by itself. It sleeps until the provider's bell rings, and holds no lock
//! meanwhile. Threads of this PE that sleep at its doorbell are woken after each round: see `is_guarded`. It
//! ends before a world that leaves in order shuts its endpoints.

use super::engine::Engine;
use super::service::{Control, Running, Service};
use crate::base::panic_message::panic_text;
use crate::endpoint::Endpoint;
use crate::job::GaveUp;
use pelago_fabric::Bell;
use pelago_fabric::sync::{AtomicBool, AtomicU32, Ordering, fence};
use pelago_fabric::threads::without_signals;
use rustix::event::{EventfdFlags, eventfd};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
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

/// Starts the thread where there is a use for it. `engine` keeps the PE in place for as long as the thread
/// runs.
pub(crate) fn spawn<E: Deref<Target = Engine> + Send + 'static>(engine: E, service: &Service) {
    let Some(net) = engine.net.as_ref().filter(|net| net.moves_by_itself()).map(Arc::clone) else { return };
    let Ok(event) = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK) else { return };
    let [is_over, is_on_guard] = [false; 2].map(AtomicBool::new);
    let (sleepers, hears_all) = (AtomicU32::new(0), net.is_urgent());
    let control = Arc::new(Control { is_over, is_on_guard, sleepers, hears_all, event });
    let theirs = Arc::clone(&control);
    let body = move || {
        let engine = engine;
        let outcome = catch_unwind(AssertUnwindSafe(|| serve(&engine, &net, &theirs)));
        if let Err(payload) = outcome
            && !payload.is::<GaveUp>()
        {
            engine.end_process(panic_text(&*payload));
        }
    };
    let spawned = without_signals(|| std::thread::Builder::new().name(NAME.to_owned()).spawn(body));
    if let Ok(thread) = spawned {
        service.set(Running { thread, control });
    }
}

fn serve(engine: &Engine, net: &Arc<Endpoint>, control: &Control) {
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
        engine.serve_others(net);
        // SYNC POINT doorbell: orders what has arrived before the look at this PE's sleepers.
        fence(Ordering::SeqCst);
        engine.ring_own();
        match &bell {
            Some(Bell { descriptor, is_urgent }) => {
                if !is_urgent {
                    control.sleep(None, GATHERING);
                }
                // No bell rings for contexts, which move in calls as well where anything does.
                let may_rest =
                    engine.outbox.is_empty() && !(*is_urgent && engine.contexts.have_outstanding());
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
