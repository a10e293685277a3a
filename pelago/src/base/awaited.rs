//! What a PE waits for, so that a wait in vain can say it.

use crate::Pe;
use pelago_fabric::shm::doorbell::Cause;
use std::cell::Cell;

/// What a PE waits for, to be said if it cannot come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaited {
    /// This PE, or all if `None`, in a barrier.
    Barrier { pe: Option<Pe>, round: u64 },
    /// This PE, or others if `None`, in a collective operation of a team.
    Collective { operation: &'static str, pe: Option<Pe> },
    /// A change of a word in symmetric memory.
    Element { index: usize },
    /// Everybody's joining.
    Join,
    /// Everybody's leave.
    Leave,
    /// The completion of an operation over the net.
    Completion { operation: &'static str, pe: Pe },
    /// The completion of all operations that were started.
    Quiet,
    /// Events, one or all of them.
    Events { count: usize },
    /// That a future can go on.
    Future,
    /// The end of the work that a progress thread accompanies.
    EndOfWork,
    /// Room for an operation over the net.
    Room { operation: &'static str, pe: Pe },
    /// The end of the handlers that other threads of this PE run.
    Handlers,
}

impl Awaited {
    /// The PE that is waited for, if it is a certain one.
    pub(crate) fn pe(self) -> Option<Pe> {
        match self {
            Awaited::Barrier { pe, .. } | Awaited::Collective { pe, .. } => pe,
            Awaited::Completion { pe, .. } | Awaited::Room { pe, .. } => Some(pe),
            _ => None,
        }
    }

    pub(crate) fn cause(self) -> Cause {
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

/// As long as it lives, what this thread waits for in a barrier of a team is a barrier of all PEs.
pub(crate) struct Within(());

impl Within {
    pub(crate) fn new(round: u64) -> Within {
        WITHIN.set(round);
        Within(())
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.set(0);
    }
}

/// The barrier of all PEs that this thread is in, as the team's; 0 if it is in none.
pub(crate) fn within() -> u64 {
    WITHIN.get()
}

impl Awaited {
    /// A member's part in a collective operation of a team, or that of others if `pe` is `None`.
    pub(crate) fn member(operation: &'static str, pe: Option<Pe>) -> Awaited {
        match within() {
            0 => Awaited::Collective { operation, pe },
            round if pe.is_some() => Awaited::Barrier { pe, round },
            // Who of them has not come yet is not known, nor who can no longer come.
            _ => Awaited::Collective { operation: ALL_PES, pe },
        }
    }
}

/// How a barrier of all PEs is called as an operation of their team.
pub(crate) const ALL_PES: &str = "barrier of all PEs";
