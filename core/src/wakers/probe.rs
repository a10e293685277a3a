//! The check whether an event has come, for code that keeps many events.

use crate::Pe;
use crate::coll::engine::Progress;
use crate::endpoint::completion_counter::CompletionCounter;
use crate::messages::replies::Slot;
use crate::msg::request::Completed;
use crate::wait::engine::Engine;
use std::sync::Arc;

/// A look at an event, which may outlive it.
#[derive(Clone)]
pub struct Probe(Kind);

#[derive(Clone)]
enum Kind {
    /// It has come already: between PEs that map each other, transfers are complete when they are started.
    Now,
    /// The sources of all operations that a counter counts are free.
    Sent(CompletionCounter),
    /// All of them are complete.
    Done(CompletionCounter),
    /// A collective operation is over here.
    Collective(Arc<Progress>),
    /// A remote procedure has answered.
    Reply(Arc<Slot>),
    /// A two-sided message was sent or received.
    Message(Arc<Completed>),
    /// All of these.
    All(Arc<[Probe]>),
}

impl Probe {
    pub fn sent(counter: Option<&CompletionCounter>) -> Probe {
        Probe(counter.map_or(Kind::Now, |counter| Kind::Sent(counter.clone())))
    }

    pub fn done(counter: Option<&CompletionCounter>) -> Probe {
        Probe(counter.map_or(Kind::Now, |counter| Kind::Done(counter.clone())))
    }

    pub fn collective(progress: &Arc<Progress>) -> Probe {
        Probe(Kind::Collective(Arc::clone(progress)))
    }

    pub fn reply(slot: &Arc<Slot>) -> Probe {
        Probe(Kind::Reply(Arc::clone(slot)))
    }

    pub fn message(completed: Arc<Completed>) -> Probe {
        Probe(Kind::Message(completed))
    }

    pub fn all(probes: impl Iterator<Item = Probe>) -> Probe {
        Probe(Kind::All(probes.collect()))
    }

    /// Whether it has come.
    pub fn has_come(&self) -> bool {
        match &self.0 {
            Kind::Now => true,
            Kind::Sent(counter) => counter.is_sent(),
            Kind::Done(counter) => counter.is_done(),
            Kind::Collective(progress) => progress.is_done(),
            Kind::Reply(slot) => slot.has_come(),
            Kind::Message(completed) => completed.is_complete(),
            Kind::All(probes) => probes.iter().all(Probe::has_come),
        }
    }

    /// Whether it has come; if so, later stores of this thread are ordered behind the stores that the event
    /// releases.
    pub fn look(&self, engine: &Engine) -> bool {
        let has_come = self.has_come();
        if has_come {
            engine.order_stores();
        }
        has_come
    }

    /// A PE without which it cannot come, as far as that is known.
    pub fn awaits(&self) -> Option<Pe> {
        match &self.0 {
            Kind::Collective(progress) if !progress.is_done() => progress.awaits(),
            Kind::Message(completed) if !completed.is_complete() => completed.pe,
            Kind::All(probes) => probes.iter().find_map(Probe::awaits),
            _ => None,
        }
    }
}
