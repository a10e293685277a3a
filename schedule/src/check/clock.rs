//! What a rank knows of the progress of the others: vector clocks (C. Fidge and F. Mattern, 1988).
//!
//! Invariant: times of a rank count from 1, when its schedule begins; step i is over at time i + 2. A rank
//! knows a time of another if what happens there before that time happens before what the rank does next.

use crate::schedule::Rank;
use std::rc::Rc;

/// A time of a rank.
pub(super) type Time = u32;

/// Not known to anybody.
pub(super) const OPEN: Time = Time::MAX;

/// The time of a rank when it begins the step.
pub(super) fn begin(step: usize) -> Time {
    step as Time + 1
}

/// The time of a rank when the step is over, if it is over before the next begins.
pub(super) fn end(step: usize) -> Time {
    step as Time + 2
}

/// What a rank knows.
#[derive(Clone)]
pub(super) struct Clock {
    rank: Rank,
    now: Time,
    known: Rc<Vec<Time>>,
}

impl Clock {
    /// What a rank of `n` knows at the beginning: nothing of the others. `nothing` is n zeros.
    pub fn new(rank: Rank, nothing: &Rc<Vec<Time>>) -> Clock {
        Clock { rank, now: begin(0), known: Rc::clone(nothing) }
    }

    /// The own time goes on to the beginning of a step.
    pub fn begin(&mut self, step: usize) {
        self.now = begin(step);
    }

    /// Whether `rank` has come to `time`, as far as this one knows.
    pub fn knows(&self, rank: Rank, time: Time) -> bool {
        if rank == self.rank { self.now >= time } else { self.known[rank] >= time }
    }

    /// Learns what another knew.
    pub fn learn(&mut self, other: &Clock) {
        let known = Rc::make_mut(&mut self.known);
        for (mine, theirs) in known.iter_mut().zip(other.known.iter()) {
            *mine = (*mine).max(*theirs);
        }
        known[other.rank] = known[other.rank].max(other.now);
    }
}

/// When an access is over: at the rank that makes it, and for a put with a signal where that is waited for.
#[derive(Clone, Copy)]
pub(super) struct Over {
    /// Who makes the access.
    pub rank: u32,
    /// In which step.
    pub step: u32,
    /// When it is over there.
    pub time: Time,
    /// Who waits for the signal; else the rank itself.
    pub peer: u32,
    /// When it is over there.
    pub peer_time: Time,
}

impl Over {
    /// Whether a rank with this clock knows that it is over.
    pub fn is_known_to(&self, clock: &Clock) -> bool {
        clock.knows(self.rank as Rank, self.time) || clock.knows(self.peer as Rank, self.peer_time)
    }
}
