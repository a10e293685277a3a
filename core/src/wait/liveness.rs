//! Whether the condition that a PE waits for can still become true.
//!
//! Invariant: a wait ends with a message that names the waiting PE and its condition when a PE has failed,
//! PEs have left the job, the launcher has exited, or a configured limit has passed.

use super::ends::Ends;
use super::engine::Engine;
use super::executor::BlockedHandlers;
use super::long::Long;
use crate::Pe;
use crate::base::awaited::Awaited;
use pelago_fabric::sync::Ordering;
use pelago_fabric::threads;
use std::time::{Duration, Instant};

/// The number of polls, or sleeps, between two checks that the launcher and the processes of the node are
/// alive.
pub(super) const LOOKS_PER_LAUNCHER_CHECK: u32 = 100;
/// The time that the last message of a PE that has left may take: that PE was not notified of its delivery.
const TIME_FOR_LAST_MESSAGE: Duration = Duration::from_secs(2);
/// The time within which a launcher must end the job after a PE has failed.
const TIME_FOR_LAUNCHER: Duration = Duration::from_secs(2);

/// The checks that a long wait makes from time to time.
#[derive(Default)]
pub(super) struct Care<'a> {
    since: Option<Instant>,
    long: Option<Long<'a>>,
    handlers: BlockedHandlers,
    ends: Ends,
    /// The time at which the awaited PE was first seen to have left.
    left_since: Option<Instant>,
}

impl<'a> Care<'a> {
    /// The time of the first check.
    pub(super) fn since(&self) -> Instant {
        self.since.expect("there has been a look")
    }

    /// The check with this number, counted from 1. Fails if the condition can no longer become true.
    #[track_caller]
    pub(super) fn look(
        &mut self,
        engine: &'a Engine,
        awaited: Awaited,
        looks: u32,
        ready: &mut dyn FnMut() -> bool,
    ) {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.long.get_or_insert_with(|| Long::new(engine, awaited, since)).tick();
        engine.check_limit(awaited, since);
        engine.check_job(awaited, looks);
        if looks.is_multiple_of(LOOKS_PER_LAUNCHER_CHECK) {
            self.ends.look(engine, awaited, since);
        }
        engine.check_liveness(awaited, &mut self.left_since, ready);
        if engine.has_open_handlers() {
            self.handlers.look(engine, &engine.executors, || engine.describe(awaited));
        }
    }
}

impl Engine {
    /// Fails if the wait has exceeded its limit.
    #[track_caller]
    pub(super) fn check_limit(&self, awaited: Awaited, since: Instant) {
        let (limit, setting) = match awaited {
            Awaited::Join => (Some(self.policy.join_limit), "PELAGO_INIT_TIMEOUT"),
            Awaited::EndOfWork => return,
            _ => (self.policy.limit, "PELAGO_WAIT_LIMIT"),
        };
        if let Some(limit) = limit.filter(|&limit| since.elapsed() > limit) {
            let (me, what) = (self.my_pe(), self.describe(awaited));
            self.fail(&format!(
                "PE {me}: has waited {limit:?} for {what}, which is the limit set by {setting}"
            ));
        }
    }

    /// Gives up if the job is failing. When a PE dies, the launcher ends the others by itself, and knows the
    /// reason. So under a launcher a PE gives up only if that does not happen.
    pub(super) fn check_job(&self, awaited: Awaited, looks: u32) {
        let in_vain = || format!("gave up waiting for {}", self.describe(awaited));
        if let Some((age, pe, reason)) = self.known_failure()
            && (!self.is_launched() || age > TIME_FOR_LAUNCHER)
        {
            self.give_up(&format!("{}: PE {pe} failed: {reason}", in_vain()));
        }
        if looks.is_multiple_of(LOOKS_PER_LAUNCHER_CHECK) && self.is_launcher_gone() {
            self.give_up(&format!("{}: the launcher is gone", in_vain()));
        }
    }

    /// Fails if the condition can no longer become true.
    #[track_caller]
    pub(super) fn check_liveness(
        &self,
        awaited: Awaited,
        left_since: &mut Option<Instant>,
        ready: &mut dyn FnMut() -> bool,
    ) {
        let me = self.my_pe();
        let has_left = |pe: Pe| self.has_left(pe);
        let has_sent_all = |pe: Pe| self.upper.get().is_none_or(|upper| upper.has_sent_all(pe));
        let mut has_said_all = |pe: Pe| {
            let is_far =
                self.net.as_ref().is_some_and(|net| net.moves_by_itself()) && !self.memory.is_mapped(pe);
            !is_far || left_since.get_or_insert_with(Instant::now).elapsed() > TIME_FOR_LAST_MESSAGE
        };
        // The wait cannot end because this PE has left, or because all others have left.
        let in_vain: Option<Option<Pe>> = match awaited {
            // A PE that leaves stays reachable until all have left.
            Awaited::Completion { .. } | Awaited::Room { .. } | Awaited::Quiet => None,
            Awaited::Join | Awaited::Leave => None,
            Awaited::Events { .. } | Awaited::Future | Awaited::EndOfWork | Awaited::Handlers => None,
            Awaited::Message { pe: Some(pe), is_send: true } if self.still_receives(pe) => None,
            Awaited::Message { pe: Some(pe), .. } => (has_left(pe) && has_sent_all(pe)).then_some(Some(pe)),
            Awaited::Barrier { pe: Some(pe), .. } | Awaited::Collective { pe: Some(pe), .. } => {
                (has_left(pe) && has_said_all(pe)).then_some(Some(pe))
            }
            Awaited::Barrier { pe: None, .. } => self.first_to_leave().map(Some),
            Awaited::Element { .. }
            | Awaited::Collective { pe: None, .. }
            | Awaited::Message { pe: None, .. } => {
                let is_message = matches!(awaited, Awaited::Message { .. });
                let has_left = |pe: Pe| has_left(pe) && (!is_message || has_sent_all(pe));
                let mut others = (0..self.n_pes()).filter(|&pe| pe != me);
                let is_alone = others.all(has_left)
                    && self.is_all_quiet()
                    && !has_siblings(self.bears_threads.load(Ordering::Relaxed));
                is_alone.then_some(None)
            }
        };
        // A PE that leaves may have done its part just before, so check the condition a last time.
        if let Some(pe) = in_vain {
            self.take_arrivals();
            // While another thread advances the operations, this one cannot check, and tries again later.
            let has_looked = self.upper.get().is_none_or(|upper| upper.advance_operations());
            if !ready() && has_looked {
                self.wait_in_vain(&self.describe(awaited), pe);
            }
        }
    }

    /// Processes the events of the network, if there is one.
    #[track_caller]
    pub(crate) fn take_arrivals(&self) {
        if self.net.is_some() {
            self.progress();
        }
    }
}

/// Whether this process has other threads that may belong to the same PE, or whether this is unknown. These
/// are threads of the same name, because a thread inherits the name of the thread that starts it; or all
/// threads, if the PE is a process that has declared so. The runtime's own threads do not count.
fn has_siblings(any: bool) -> bool {
    let own_name = std::fs::read("/proc/thread-self/comm");
    let (Ok(own_name), Ok(tasks)) = (own_name, std::fs::read_dir("/proc/self/task")) else { return true };
    let names = tasks.filter_map(|task| std::fs::read(task.ok()?.path().join("comm")).ok());
    let is_sibling =
        |name: &Vec<u8>| *name == own_name || any && !name.starts_with(threads::PREFIX.as_bytes());
    names.filter(is_sibling).count() > 1
}
