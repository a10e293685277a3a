//! The form of the barrier of all PEs, and the number of barriers that this PE has entered.

use pelago_boot::BarrierKind;
use pelago_fabric::sync::{AtomicU32, AtomicU64, Ordering};

/// With more PEs than this, reading every PE's flag costs more than a shared counter.
pub const FLAGS_PES_MAX: usize = 16;

/// The forms, as values of a word that every barrier reads.
pub const FLAGS_FORM: u32 = 0;
pub const COUNTER_FORM: u32 = 1;
/// The team's barrier, in two levels or as a schedule.
pub const TEAM_FORM: u32 = 2;
/// The team's barrier, by dissemination among all PEs.
pub const DISSEMINATION_FORM: u32 = 3;
/// This PE has failed or given up: others must not count it as arrived.
const CLOSED_FORM: u32 = 4;
/// This PE is between notify and wait of a split-phase barrier, where it enters no other barrier.
pub const SPLIT_FORM: u32 = 5;

/// A PE's place in the sequence of barriers.
#[derive(Debug)]
pub struct Barrier {
    pub form: AtomicU32,
    pub round: AtomicU64,
}

impl Barrier {
    /// The form before the PEs have agreed on another: the counter, or the team's barrier.
    pub fn new(has_net: bool) -> Barrier {
        let form = if has_net { TEAM_FORM } else { COUNTER_FORM };
        Barrier { form: AtomicU32::new(form), round: AtomicU64::new(0) }
    }

    /// Chooses the form of the following barriers. All PEs make the same choice, at the same point of their
    /// sequence of barriers.
    pub fn choose(&self, kind: BarrierKind, has_net: bool, n_pes: usize, cores: usize) {
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
    pub fn next_round(&self) -> u64 {
        self.round.load(Ordering::Relaxed) + 1
    }

    /// Closes the barrier: this PE enters none any more.
    pub fn close(&self) {
        self.form.store(CLOSED_FORM, Ordering::Relaxed);
    }

    /// Forbids barriers until `end_split`. Returns the form to restore then, or `None` if they are forbidden
    /// already.
    pub fn begin_split(&self) -> Option<u32> {
        let form = self.form.load(Ordering::Relaxed);
        let is_open = form < CLOSED_FORM;
        // If another thread closes the PE meanwhile, it stays closed.
        let swap = |new| self.form.compare_exchange(form, new, Ordering::Relaxed, Ordering::Relaxed);
        (is_open && swap(SPLIT_FORM).is_ok()).then_some(form)
    }

    /// Permits barriers again.
    pub fn end_split(&self, form: u32) {
        let _ = self.form.compare_exchange(SPLIT_FORM, form, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub fn is_closed(&self) -> bool {
        self.form.load(Ordering::Relaxed) == CLOSED_FORM
    }
}
