//! The barrier of all PEs: nobody leaves before everybody has come, and all puts issued before it are
//! complete.
//!
//! Where all PEs map each other it has two direct forms, in `pelago_fabric::shm::flags`:
//! * flags: every PE raises its own and looks at all others';
//! * counter: the last to come lets all go, for more PEs than cores.
//!
//! Elsewhere, and with `PELAGO_BARRIER=dissemination`, it is the barrier of a team of all PEs (`coll`). That
//! team has no other operations, so no collective operation of a program is taken for this barrier.

use crate::Pe;
use crate::team::TeamCore;
use crate::vote::Vote;
use crate::wait::Awaited;
use crate::world::World;
use pelago_boot::BarrierKind;
use pelago_fabric::sync::{AtomicU32, AtomicU64, Ordering};
use std::cell::Cell;
use std::sync::Arc;

/// More PEs than this and looking at everybody's flag costs more than meeting at a counter.
const FLAGS_PES_MAX: usize = 16;

/// The forms, as numbers of a word that is read on every call.
const FLAGS_FORM: u32 = 0;
const COUNTER_FORM: u32 = 1;
/// The team's, in two levels or as a schedule.
const TEAM_FORM: u32 = 2;
/// The team's, by dissemination among all PEs.
const DISSEMINATION_FORM: u32 = 3;
/// This PE has failed or given up: it must not be taken for one that arrives.
const CLOSED_FORM: u32 = 4;
/// This PE is between notify and wait of a split-phase barrier, where there is no other meeting.
const SPLIT_FORM: u32 = 5;

/// A PE's place in the sequence of barriers.
#[derive(Debug)]
pub(crate) struct Barrier {
    form: AtomicU32,
    round: AtomicU64,
}

impl Barrier {
    /// The form in which PEs meet before they have agreed on another: the counter, or the team's.
    pub(crate) fn new(has_net: bool) -> Barrier {
        let form = if has_net { TEAM_FORM } else { COUNTER_FORM };
        Barrier { form: AtomicU32::new(form), round: AtomicU64::new(0) }
    }

    /// Chooses the form for the following barriers; all PEs choose alike, at the same place.
    pub(crate) fn choose(&self, kind: BarrierKind, has_net: bool, n_pes: usize, cores: usize) {
        let form = match kind {
            BarrierKind::Dissemination => DISSEMINATION_FORM,
            _ if has_net => TEAM_FORM,
            BarrierKind::Flags => FLAGS_FORM,
            BarrierKind::Counter => COUNTER_FORM,
            BarrierKind::Auto if n_pes <= cores.min(FLAGS_PES_MAX) => FLAGS_FORM,
            BarrierKind::Auto => COUNTER_FORM,
        };
        self.form.store(form, Ordering::Relaxed);
    }

    /// The number of the next barrier.
    pub(crate) fn next_round(&self) -> u64 {
        self.round.load(Ordering::Relaxed) + 1
    }

    /// This PE enters no barrier any more.
    pub(crate) fn close(&self) {
        self.form.store(CLOSED_FORM, Ordering::Relaxed);
    }

    /// Until `end_split` no barrier can be entered; the form to give back then, or `None` if this is so
    /// already.
    pub(crate) fn begin_split(&self) -> Option<u32> {
        let form = self.form.load(Ordering::Relaxed);
        let is_open = form < CLOSED_FORM;
        // A PE that is closed meanwhile, by another thread, stays so.
        let swap = |new| self.form.compare_exchange(form, new, Ordering::Relaxed, Ordering::Relaxed);
        (is_open && swap(SPLIT_FORM).is_ok()).then_some(form)
    }

    /// Barriers can be entered again.
    pub(crate) fn end_split(&self, form: u32) {
        let _ = self.form.compare_exchange(SPLIT_FORM, form, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.form.load(Ordering::Relaxed) == CLOSED_FORM
    }
}

impl World {
    /// Whether this many PEs should meet at a counter rather than look at each other's words.
    #[inline]
    pub(crate) fn meets_at_counter(&self, n: usize) -> bool {
        n > FLAGS_PES_MAX || self.n_pes() > self.cores()
    }

    /// Waits until every PE has come here. All operations that the PEs issued before, except through a
    /// [`Context`](crate::Context), are complete and visible to all. Collective.
    ///
    /// # Panics
    /// If a PE that has not come has left the job or failed, so that the barrier cannot end.
    #[inline]
    #[track_caller]
    pub fn barrier(&self) {
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
    pub(crate) fn barrier_voting(&self, vote: impl FnOnce() -> Vote) -> Option<Vote> {
        if self.barrier.form.load(Ordering::Relaxed) != TEAM_FORM {
            self.barrier();
            return None;
        }
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
        self.tally.add(|counts| counts.barriers += 1);
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

    /// Out of line, so that who does not wait has nothing to prepare, nor to keep for it.
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

thread_local! {
    /// See [`within`].
    static WITHIN: Cell<u64> = const { Cell::new(0) };
}

/// As long as it lives, what this thread waits for in a barrier of a team is a barrier of all PEs.
struct Within(());

impl Within {
    fn new(round: u64) -> Within {
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
