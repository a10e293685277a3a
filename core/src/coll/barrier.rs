//! The barrier of all PEs: no PE leaves before all PEs have entered, and all puts issued before it are
//! complete.
//!
//! Where all PEs map each other it has two direct forms, in `pelago_fabric::shm::flags`:
//! * flags: every PE raises its own and looks at all others';
//! * counter: the last to come lets all go, for more PEs than cores.
//!
//! Elsewhere, and with `PELAGO_BARRIER=dissemination`, it is the barrier of a team of all PEs (`coll`). That
//! team has no other operations, so no collective operation of a program is taken for this barrier.

use crate::base::awaited::{ALL_PES, Awaited, Within};
use crate::base::trace::{Category, Event};
use crate::base::vote::Vote;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use crate::job::barrier_form::{COUNTER_FORM, DISSEMINATION_FORM, FLAGS_FORM, SPLIT_FORM, TEAM_FORM};
use pelago_fabric::sync::Ordering;
use std::sync::Arc;

impl Teams {
    /// The barrier of all PEs: see `World::barrier`.
    #[inline(always)]
    #[track_caller]
    pub fn barrier(&self) {
        match self.tally.is_on() {
            true => self.barrier_watched(),
            false => self.pass_barrier(),
        }
    }

    /// A barrier that is counted or recorded.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn barrier_watched(&self) {
        self.tally.add(|counts| counts.barriers += 1);
        let _span = self.tally.span(|| Event::new(Category::Collective, ALL_PES));
        self.pass_barrier();
    }

    #[inline(always)]
    #[track_caller]
    fn pass_barrier(&self) {
        let round = self.begin_barrier();
        match self.barrier.form.load(Ordering::Relaxed) {
            FLAGS_FORM => self.barrier_flags(round),
            COUNTER_FORM => self.barrier_counter(round),
            TEAM_FORM | DISSEMINATION_FORM => self.barrier_of_team(round),
            SPLIT_FORM => self.fail(&format!(
                "PE {}: a barrier, or a call that is one, between notify and wait of a split-phase barrier. \
                 Wait first",
                self.my_pe()
            )),
            _ => self.give_up("a barrier after this PE has failed"),
        }
    }

    /// A barrier in which the PEs vote: the votes of all, joined; `None` if it was one without votes.
    #[track_caller]
    pub fn barrier_voting(&self, vote: impl FnOnce() -> Vote) -> Option<Vote> {
        if self.barrier.form.load(Ordering::Relaxed) != TEAM_FORM {
            self.barrier();
            return None;
        }
        self.tally.add(|counts| counts.barriers += 1);
        let _span = self.tally.span(|| Event::new(Category::Collective, ALL_PES).detailed("with votes"));
        let round = self.begin_barrier();
        let _within = Within::new(round);
        self.quiet();
        let team = self.all_pes();
        let outcome = team.vote_in_levels(self, round, vote());
        if outcome.is_none() {
            team.meet_slowly(self);
        }
        outcome
    }

    /// Counts a barrier: its number.
    #[inline(always)]
    fn begin_barrier(&self) -> u64 {
        let round = self.barrier.next_round();
        self.barrier.round.store(round, Ordering::Relaxed);
        round
    }

    /// The team of all PEs whose barriers are those of the world.
    fn all_pes(&self) -> &Arc<TeamCore> {
        self.barrier_team.as_ref().expect("it was made where the barrier needs a team")
    }

    #[inline]
    #[track_caller]
    fn barrier_flags(&self, round: u64) {
        let blocks = self.memory.blocks();
        blocks[self.my_pe()].arrival.arrive(round);
        self.ring_sleepers();
        if !blocks.iter().all(|block| block.arrival.has_arrived(round)) {
            self.await_arrivals(round);
        }
    }

    /// Out of line, so that a caller that does not wait neither prepares nor saves anything for it.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn await_arrivals(&self, round: u64) {
        for (pe, block) in self.memory.blocks().iter().enumerate() {
            if !block.arrival.has_arrived(round) {
                self.wait(Awaited::Barrier { pe: Some(pe), round }, || block.arrival.has_arrived(round));
            }
        }
    }

    #[track_caller]
    fn barrier_counter(&self, round: u64) {
        let meeting = &self.memory.header().meeting;
        if meeting.arrive(self.n_pes() as u32, round) {
            self.ring_sleepers();
        } else {
            self.wait(Awaited::Barrier { pe: None, round }, || meeting.is_over(round));
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn barrier_of_team(&self, round: u64) {
        let _within = Within::new(round);
        self.quiet();
        let team = self.all_pes();
        match self.barrier.form.load(Ordering::Relaxed) {
            DISSEMINATION_FORM => team.meet_by_dissemination(self),
            _ => team.meet_slowly(self),
        }
    }
}
