//! The call that a wait belongs to, for words: the collective call that the members of a team compare, and
//! the name of the function of another interface. A thread whose local storage is gone, as in an exit
//! handler, labels nothing.

use crate::coll::schedule::Rank;
use crate::notice::{self, Notice};
use crate::team::TeamCore;
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

thread_local! {
    /// The call that this thread compares with other members of a team, and its number in the team.
    static COMPARED: RefCell<Option<(Arc<TeamCore>, Notice, u64)>> = const { RefCell::new(None) };
}

/// Answers the name of the function that the calling thread is in, in another interface.
static NAMES: OnceLock<fn() -> Option<&'static str>> = OnceLock::new();

/// Says how to find the name of the function of another interface that a thread is in.
pub(crate) fn name_calls_by(names: fn() -> Option<&'static str>) {
    // A second world of the process says the same.
    let _ = NAMES.set(names);
}

/// The function that this thread is in, to be put behind what it waits for.
pub(super) fn name() -> String {
    NAMES.get().and_then(|name| name()).map_or_else(String::new, |name| format!(", in {name}"))
}

/// Whether this thread compares a collective call with other members of a team.
pub(super) fn is_compared() -> bool {
    COMPARED.try_with(|compared| compared.borrow().is_some()).unwrap_or(false)
}

/// Labels the waits of this thread with the collective call that they are for, as long as it lives.
pub(crate) struct Labelled(Option<(Arc<TeamCore>, Notice, u64)>);

impl Labelled {
    pub(crate) fn new(team: &Arc<TeamCore>, notice: Notice, number: u64) -> Labelled {
        let label = Some((Arc::clone(team), notice, number));
        Labelled(COMPARED.try_with(|compared| compared.replace(label)).ok().flatten())
    }
}

impl Drop for Labelled {
    fn drop(&mut self) {
        let before = self.0.take();
        let _ = COMPARED.try_with(|compared| compared.replace(before));
    }
}

/// The call that this thread compares, in brackets; nothing if it compares none.
pub(crate) fn compared() -> String {
    let words = COMPARED.try_with(|compared| {
        compared.borrow().as_ref().map(|(team, notice, number)| {
            let pes: Vec<_> = (0..team.len() as Rank).map(|rank| team.pe(rank)).collect();
            let (call, pes) = (notice::describe(notice), pes_of(pes));
            format!(" ({call}, call {number} of the team of {pes})")
        })
    });
    words.ok().flatten().unwrap_or_default()
}

/// PEs in any order, in words.
fn pes_of(mut pes: Vec<crate::Pe>) -> String {
    pes.sort_unstable();
    format!("PEs {}", super::judge::ranges(&pes))
}
