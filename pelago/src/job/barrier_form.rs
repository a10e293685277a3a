//! The form of the barrier of all PEs, and how many of them this PE has entered.

use pelago_boot::BarrierKind;
use pelago_fabric::sync::{AtomicU32, AtomicU64, Ordering};

/// More PEs than this and looking at everybody's flag costs more than meeting at a counter.
pub(crate) const FLAGS_PES_MAX: usize = 16;

/// The forms, as numbers of a word that is read on every call.
pub(crate) const FLAGS_FORM: u32 = 0;
pub(crate) const COUNTER_FORM: u32 = 1;
/// The team's, in two levels or as a schedule.
pub(crate) const TEAM_FORM: u32 = 2;
/// The team's, by dissemination among all PEs.
pub(crate) const DISSEMINATION_FORM: u32 = 3;
/// This PE has failed or given up: it must not be taken for one that arrives.
const CLOSED_FORM: u32 = 4;
/// This PE is between notify and wait of a split-phase barrier, where there is no other meeting.
pub(crate) const SPLIT_FORM: u32 = 5;

/// A PE's place in the sequence of barriers.
#[derive(Debug)]
pub(crate) struct Barrier {
    pub(crate) form: AtomicU32,
    pub(crate) round: AtomicU64,
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
