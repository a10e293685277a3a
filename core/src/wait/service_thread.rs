//! The service thread: over a network that makes progress by itself, it executes the requests of other PEs
//! that need this PE's processor, while this PE computes: atomics that the fabric does not execute, signals,
//! parcels, replies.
//!
//! Invariant: it executes no user code, and is idle while a thread of this PE waits in the runtime, because
//! that thread serves other PEs by itself. It sleeps until the provider's doorbell rings, and holds no lock
//! meanwhile. Threads of this PE that sleep at its doorbell are woken after each round: see `is_guarded`. In
//! an orderly end of a world it ends before the endpoints are shut.

use super::engine::Engine;
use super::service::{Control, Running, Service};
use crate::base::error::Result;
use crate::base::panic_message::panic_text;
use crate::endpoint::Endpoint;
use crate::job::GaveUp;
use pelago_fabric::FabricError;
use pelago_fabric::sync::{AtomicBool, AtomicU32, Ordering, fence};
use pelago_fabric::threads::without_signals;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The thread's name, by which code that counts a PE's threads excludes it. The system keeps 15 characters.
pub const NAME: &str = "pelago-service";

/// The initial time for which it is idle after the PE has made progress, and so has served others itself. It
/// is doubled each time that the PE has done so meanwhile.
const NAP: Duration = Duration::from_micros(500);
/// The maximum of that time, if urgent operations make progress without it.
const NAP_MAX: Duration = Duration::from_millis(4);
/// The maximum of that time, if urgent operations need it.
const NAP_MAX_URGENT: Duration = Duration::from_millis(1);
/// The time for which it lets requests accumulate between two rounds, if urgent operations make progress
/// without it.
const GATHERING: Duration = Duration::from_micros(200);
/// The time for which it leaves the provider to other threads if it cannot sleep now.
const PAUSE: Duration = Duration::from_micros(50);

/// The time after which it serves other PEs although a thread of this PE waits, if that thread makes no
/// progress: it executes a function of the program, such as that of a reduction.
const STUCK: Duration = Duration::from_millis(50);

/// Starts the thread if it is useful. `engine` keeps the PE in place for as long as the thread runs.
///
/// # Errors
/// If the system refuses a thread or a descriptor. Without the thread, others would take this PE for lost
/// while it computes.
pub fn spawn<E: Deref<Target = Engine> + Send + 'static>(engine: E, service: &Service) -> Result<()> {
    let Some(net) = engine.net.as_ref().filter(|net| net.moves_by_itself()).map(Arc::clone) else {
        return Ok(());
    };
    let pe = engine.my_pe();
    let refused = |reason: io::Error| FabricError::System {
        pe,
        operation: "starting the service thread".to_owned(),
        reason: reason.to_string(),
        remedy: "Raise the limit of threads or open files (ulimit -u, ulimit -n, pids.max of the control \
                 group), or set PELAGO_SERVICE_THREAD=off",
    };
    let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let event = event.map_err(|reason| refused(reason.into()))?;
    let is_over = AtomicBool::new(false);
    let hears_all = net.is_urgent() && net.wait_descriptor().is_some();
    let (sleepers, is_strict) = (AtomicU32::new(0), engine.policy.is_strict);
    let control = Arc::new(Control { is_over, sleepers, hears_all, is_strict, event });
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
    service.set(Running { thread: spawned.map_err(refused)?, control });
    Ok(())
}

fn serve(engine: &Engine, net: &Arc<Endpoint>, control: &Control) {
    let (descriptor, is_urgent) = (net.wait_descriptor(), net.is_urgent());
    let nap_max = if is_urgent { NAP_MAX_URGENT } else { NAP_MAX };
    let (mut nap, mut last_look) = (NAP, Instant::now());
    while !control.is_over() && !net.is_shut() {
        let (has_looked, has_waiters) = (net.take_looks(), net.has_waiters());
        if has_looked {
            last_look = Instant::now();
        }
        let is_served = has_looked || (has_waiters && last_look.elapsed() < STUCK);
        if is_served && control.sleepers.load(Ordering::Relaxed) == 0 {
            control.sleep(None, nap);
            nap = nap_max.min(2 * nap);
            continue;
        }
        nap = NAP;
        engine.serve_others(net);
        // SYNC POINT doorbell: orders the processed arrivals before the check for this PE's sleepers.
        fence(Ordering::SeqCst);
        engine.ring_own();
        match &descriptor {
            Some(descriptor) => {
                if !is_urgent {
                    control.sleep(None, GATHERING);
                }
                // No doorbell rings for contexts, which make progress in calls if any endpoint does.
                let may_rest = engine.outbox.is_empty() && !(is_urgent && engine.contexts.have_outstanding());
                if !net.has_waiters() && net.may_sleep() && engine.service.begin_guard(net) {
                    match may_rest {
                        true => control.sleep_on_guard(descriptor.as_fd()),
                        false => _ = control.sleep(Some(descriptor.as_fd()), GATHERING),
                    }
                    engine.service.leave_guard();
                } else {
                    control.sleep(None, if has_waiters { NAP } else { PAUSE });
                }
            }
            None => _ = control.sleep(None, GATHERING),
        }
    }
}
