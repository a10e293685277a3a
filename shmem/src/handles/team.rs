//! The teams of the interface: a team of the runtime, and what belongs to it.

use super::Handles;
use crate::base::abi::{Ctx, TeamHandle, c_int};
use pelago::sync::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The teams that the program has created.
pub(crate) static TEAMS: Handles<Team> = Handles::new();

/// A team of the interface.
pub(crate) struct Team {
    pub(crate) team: pelago::Team<'static>,
    pub(crate) num_contexts: c_int,
    /// Contexts that are destroyed with it.
    contexts: Mutex<Vec<Ctx>>,
    /// The number of collective operations in progress (an extension).
    pub(crate) requests: AtomicUsize,
    /// The number of spaces that were created on it (an extension).
    pub(crate) spaces: AtomicUsize,
}

impl Team {
    pub(crate) fn new(team: pelago::Team<'static>, num_contexts: c_int) -> Team {
        let none = || AtomicUsize::new(0);
        Team { team, num_contexts, contexts: Mutex::default(), requests: none(), spaces: none() }
    }

    /// The contexts that are destroyed with this team.
    pub(crate) fn contexts(&self) -> MutexGuard<'_, Vec<Ctx>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a handle is still the handle of a team.
pub(crate) fn is_alive(handle: TeamHandle) -> bool {
    matches!(handle, TeamHandle::WORLD | TeamHandle::SHARED | TeamHandle::NODE) || TEAMS.get(handle.0).is_ok()
}
