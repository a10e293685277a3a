//! The engine of a PE: all that its waits and its progress need.
//!
//! Invariant: everything that the fast path reads is written before other threads of the PE see the engine.

use super::executor::Executors;
use super::policy::{VainTests, WaitPolicy};
use super::service::Service;
use super::sleeps::before_asking;
use super::stall::Stall;
use crate::job::Job;
use crate::job::affinity::Affinity;
use crate::progress::ProgressState;
use crate::progress::departures::Departures;
use crate::progress::meeting_points::MessageBarrier;
use crate::progress::watch::Watch;
use pelago_boot::Settings;
use pelago_fabric::sync::{AtomicBool, AtomicU32, Ordering};
use std::ops::Deref;

/// A PE that waits and makes progress.
pub struct Engine {
    pub state: ProgressState,
    pub policy: WaitPolicy,
    pub message_barrier: MessageBarrier,
    pub departures: Departures,
    /// Dropped after the endpoints, which write its results.
    pub watch: Watch,
    /// Likewise.
    pub stall: Stall,
    /// The core that this PE runs on.
    pub affinity: Affinity,
    /// The thread that serves other PEs while this one computes, if there is one.
    pub service: Service,
    /// The number of threads of this PE that sleep strictly: see `sleeps.rs`.
    pub strict_sleepers: AtomicU32,
    /// The threads that run handlers.
    pub executors: Executors,
    /// The number of collective operations and teams that need progress; waits drive them while it is not 0.
    pub active_operations: AtomicU32,
    /// The number of open endpoints of active messages. While it is 0 no message arrives, and no thread
    /// checks for one.
    pub open_handlers: AtomicU32,
    /// Whether this PE has sent or received a two-sided message, or one has come over the network.
    pub uses_messages: AtomicBool,
    /// Counts the tests of the program that have found nothing.
    pub(super) vain_tests: VainTests,
}

impl Deref for Engine {
    type Target = ProgressState;

    #[inline(always)]
    fn deref(&self) -> &ProgressState {
        &self.state
    }
}

impl Engine {
    /// The engine of a PE that has not communicated with the others yet.
    pub fn new(job: Job, settings: &Settings) -> Engine {
        let net = job.net.as_deref();
        let is_simulated = net.is_some_and(|net| net.virtual_time().is_some());
        // A PE that computes still replies to liveness checks.
        let replies = net.is_some_and(|net| net.moves_by_itself() && (settings.service || !net.is_urgent()));
        Engine {
            policy: WaitPolicy::new(job.memory.blocks().len(), 1, net, settings),
            message_barrier: MessageBarrier::default(),
            departures: Departures::default(),
            // In other cases a PE may not reply only because of the program.
            watch: {
                let limit = settings.peer_timeout.filter(|_| replies);
                Watch::new(limit, before_asking(settings.test_sleeps))
            },
            stall: Stall::new(!is_simulated, settings),
            affinity: Affinity::default(),
            service: Service::default(),
            strict_sleepers: AtomicU32::new(0),
            executors: Executors::default(),
            active_operations: AtomicU32::new(0),
            open_handlers: AtomicU32::new(0),
            uses_messages: AtomicBool::new(false),
            vain_tests: VainTests::default(),
            state: ProgressState::new(job),
        }
    }

    /// Whether collective operations are outstanding.
    #[inline(always)]
    pub fn has_active_operations(&self) -> bool {
        self.active_operations.load(Ordering::Relaxed) != 0
    }

    /// Whether two-sided messages may arrive.
    #[inline(always)]
    pub fn uses_messages(&self) -> bool {
        self.uses_messages.load(Ordering::Relaxed)
    }

    /// Whether active messages may arrive.
    #[inline(always)]
    pub fn has_open_handlers(&self) -> bool {
        self.open_handlers.load(Ordering::Relaxed) != 0
    }
}
