//! The conditions that a PE waits for, so that a wait that cannot end can report its condition.

use crate::Pe;
use crate::base::trace::{Category, Event};
use pelago_fabric::shm::doorbell::Cause;
use std::cell::Cell;

/// The condition that a PE waits for. It is reported if it cannot come true.
#[derive(Clone, Copy, Debug)]
pub enum Awaited {
    /// A barrier: the arrival of this PE, or of all PEs if `None`.
    Barrier { pe: Option<Pe>, round: u64 },
    /// A collective operation of a team: the part of this PE, or of any other members if `None`.
    Collective { operation: &'static str, pe: Option<Pe> },
    /// A change of a word in symmetric memory.
    Element { index: usize },
    /// All PEs join the job.
    Join,
    /// All PEs leave the job.
    Leave,
    /// The completion of an operation over the network.
    Completion { operation: &'static str, pe: Pe },
    /// The completion of all operations that were started.
    Quiet,
    /// One or all of several events.
    Events { count: usize },
    /// Progress of a future.
    Future,
    /// The end of the work for which a progress thread runs.
    EndOfWork,
    /// Space in a queue of the provider for an operation over the network.
    Room { operation: &'static str, pe: Pe },
    /// A message from this PE, or from any other if `None`; or that this PE receives one.
    Message { is_send: bool, pe: Option<Pe> },
    /// The end of the handlers that other threads of this PE run.
    Handlers,
}

impl Awaited {
    /// The PE that is waited for, if the condition depends on one PE.
    pub fn pe(self) -> Option<Pe> {
        match self {
            Awaited::Barrier { pe, .. } | Awaited::Collective { pe, .. } | Awaited::Message { pe, .. } => pe,
            Awaited::Completion { pe, .. } | Awaited::Room { pe, .. } => Some(pe),
            _ => None,
        }
    }

    /// The wait as an event of the record: its cause, and the operation that it is for.
    pub fn event(self) -> Event {
        let (name, detail) = match self {
            Awaited::Barrier { .. } => ("barrier", ""),
            Awaited::Collective { operation, .. } => ("collective operation", operation),
            Awaited::Element { .. } => ("value in symmetric memory", ""),
            Awaited::Join => ("all PEs to join", ""),
            Awaited::Leave => ("all PEs to leave", ""),
            Awaited::Completion { operation, .. } => ("completion", operation),
            Awaited::Quiet => ("quiet", ""),
            Awaited::Events { .. } => ("events", ""),
            Awaited::Future => ("future", ""),
            Awaited::EndOfWork => ("end of the progress thread's work", ""),
            Awaited::Room { operation, .. } => ("space in a queue", operation),
            Awaited::Message { is_send: true, .. } => ("receiver of a message", ""),
            Awaited::Message { is_send: false, .. } => ("message", ""),
            Awaited::Handlers => ("handlers", ""),
        };
        Event { peer: self.pe(), ..Event::new(Category::Wait, name).detailed(detail) }
    }

    pub fn cause(self) -> Cause {
        match self {
            Awaited::Barrier { .. } | Awaited::Collective { .. } => Cause::Meeting,
            Awaited::Join | Awaited::Leave | Awaited::EndOfWork => Cause::Meeting,
            _ => Cause::Data,
        }
    }
}

thread_local! {
    /// See [`within`].
    static WITHIN: Cell<u64> = const { Cell::new(0) };
}

/// While this value lives, waits of this thread in a barrier of a team count as waits in a barrier of all
/// PEs.
pub struct Within(());

impl Within {
    pub fn new(round: u64) -> Within {
        WITHIN.set(round);
        Within(())
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.set(0);
    }
}

/// The number of the barrier of all PEs that this thread executes as a barrier of its team; 0 if it executes
/// none.
pub fn within() -> u64 {
    WITHIN.get()
}

impl Awaited {
    /// The part of member `pe` in a collective operation of a team, or the part of any other members if
    /// `None`.
    pub fn member(operation: &'static str, pe: Option<Pe>) -> Awaited {
        match within() {
            0 => Awaited::Collective { operation, pe },
            round if pe.is_some() => Awaited::Barrier { pe, round },
            // This PE does not know which members have not arrived yet, nor which can no longer arrive.
            _ => Awaited::Collective { operation: ALL_PES, pe },
        }
    }
}

/// The name of a barrier of all PEs, as an operation of their team.
pub const ALL_PES: &str = "barrier of all PEs";
