//! Vector clocks: the knowledge of a rank about the progress of the others (C. Fidge and F. Mattern, 1988).
//!
//! Invariant: times of a rank count from 1, when its schedule begins; step i is over at time i + 2. A rank
//! knows a time of another rank if the events there before that time happen before the rank's next step.

use crate::schedule::Rank;
use std::rc::Rc;

/// A time of a rank.
pub(super) type Time = u32;

/// Not known to any rank.
pub(super) const OPEN: Time = Time::MAX;

/// The time of a rank when it begins the step.
pub(super) fn begin(step: usize) -> Time {
    step as Time + 1
}

/// The time of a rank when the step is over, if it is over before the next begins.
pub(super) fn end(step: usize) -> Time {
    step as Time + 2
}

/// The times that a rank knows.
#[derive(Clone)]
pub(super) struct Clock {
    rank: Rank,
    now: Time,
    known: Rc<Vec<Time>>,
}

impl Clock {
    /// The clock of a rank of `n` at the beginning, which knows nothing about the others. `nothing` is n
    /// zeros.
    pub fn new(rank: Rank, nothing: &Rc<Vec<Time>>) -> Clock {
        Clock { rank, now: begin(0), known: Rc::clone(nothing) }
    }

    /// Advances the rank's own time to the beginning of a step.
    pub fn begin(&mut self, step: usize) {
        self.now = begin(step);
    }

    /// Whether this rank knows that `rank` has reached `time`.
    pub fn knows(&self, rank: Rank, time: Time) -> bool {
        if rank == self.rank { self.now >= time } else { self.known[rank] >= time }
    }

    /// Takes over the knowledge of another clock.
    pub fn learn(&mut self, other: &Clock) {
        let known = Rc::make_mut(&mut self.known);
        for (mine, theirs) in known.iter_mut().zip(other.known.iter()) {
            *mine = (*mine).max(*theirs);
        }
        known[other.rank] = known[other.rank].max(other.now);
    }
}

/// The times at which an access is over: at the rank that makes it, and for a put with a signal also at the
/// rank that waits for the signal.
#[derive(Clone, Copy)]
pub(super) struct Over {
    /// The rank that makes the access.
    pub rank: u32,
    /// The step that makes it.
    pub step: u32,
    /// The time at which it is over there.
    pub time: Time,
    /// The rank that waits for the signal; else the rank itself.
    pub peer: u32,
    /// The time at which it is over there.
    pub peer_time: Time,
}

impl Over {
    /// Whether a rank with this clock knows that the access is over.
    pub fn is_known_to(&self, clock: &Clock) -> bool {
        clock.knows(self.rank as Rank, self.time) || clock.knows(self.peer as Rank, self.peer_time)
    }
}
