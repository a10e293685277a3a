//! The barrier of all PEs: nobody leaves before everybody has come, and all puts issued before it are
//! complete.
//!
//! Three forms, chosen once a world by the number of PEs and cores or by `PELAGO_BARRIER`; the two direct
//! ones are in `pelago_fabric::shm::flags`, the third runs over puts and so over any provider:
//! * flags: every PE raises its own and looks at all others';
//! * counter: the last to come lets all go, for more PEs than cores;
//! * dissemination: in round r each PE signals the PE 2^r further on, after Hensgen, Finkel and Manber
//!   (1988).

use crate::Pe;
use crate::channel::Target;
use crate::route::Route;
use crate::segment::{FLAGS, Memory};
use crate::wait::Awaited;
use crate::world::World;
use pelago_boot::BarrierKind;
use pelago_fabric::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// More PEs than this and looking at everybody's flag costs more than meeting at a counter.
const FLAGS_PES_MAX: usize = 16;

/// The forms, as numbers of a word that is read on every call.
const FLAGS_FORM: u32 = 0;
const COUNTER_FORM: u32 = 1;
const DISSEMINATION_FORM: u32 = 2;
/// This PE has failed or given up: it must not be taken for one that arrives.
const CLOSED_FORM: u32 = 3;
/// This PE is between notify and wait of a split-phase barrier, where there is no other meeting.
const SPLIT_FORM: u32 = 4;

/// A PE's place in the sequence of barriers.
#[derive(Debug)]
pub(crate) struct Barrier {
    form: AtomicU32,
    round: AtomicU64,
}

impl Barrier {
    /// The form in which PEs meet before they have agreed on another: the counter, or what works over a net.
    pub(crate) fn new(has_net: bool) -> Barrier {
        let form = if has_net { DISSEMINATION_FORM } else { COUNTER_FORM };
        Barrier { form: AtomicU32::new(form), round: AtomicU64::new(0) }
    }

    /// Chooses the form for the following barriers between PEs that map each other; all PEs choose alike, at
    /// the same place.
    pub(crate) fn choose(&self, kind: BarrierKind, n_pes: usize, cores: usize) {
        let form = match kind {
            BarrierKind::Flags => FLAGS_FORM,
            BarrierKind::Counter => COUNTER_FORM,
            BarrierKind::Dissemination => DISSEMINATION_FORM,
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
        let round = self.barrier.next_round();
        self.barrier.round.store(round, Ordering::Relaxed);
        self.tally.add(|counts| counts.barriers += 1);
        match self.barrier.form.load(Ordering::Relaxed) {
            FLAGS_FORM => self.barrier_flags(round),
            COUNTER_FORM => self.barrier_counter(round),
            DISSEMINATION_FORM => self.barrier_dissemination(round),
            SPLIT_FORM => self.fail(&format!(
                "PE {}: a barrier, or a call that is one, between notify and wait of a split-phase barrier. \
                 Wait first",
                self.my_pe()
            )),
            _ => self.give_up("a barrier after this PE has failed"),
        }
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

    #[track_caller]
    fn barrier_dissemination(&self, round: u64) {
        let (me, n_pes) = (self.my_pe(), self.n_pes());
        self.quiet();
        for step in 0.. {
            let distance = 1usize << step;
            if distance >= n_pes {
                break;
            }
            assert!(step < FLAGS, "2^{FLAGS} PEs do not exist");
            let to: Pe = (me + distance) % n_pes;
            let from: Pe = (me + n_pes - distance) % n_pes;
            self.signal_round(to, step, round);
            let mine = self.memory.flag(me, step);
            // SYNC POINT dissemination: acquires what the sender did and had heard of.
            self.wait(Awaited::Barrier { pe: Some(from), round }, || mine.load(Ordering::Acquire) >= round);
        }
        // The last signal must not wait until this PE comes to the runtime again.
        self.progress();
    }

    /// Tells `to` that this PE, and those that it has heard of, have come to `round`. Over the net the signal
    /// of a later round cannot overtake this one: the quiet at the start of each barrier completes it.
    #[track_caller]
    fn signal_round(&self, to: Pe, step: usize, round: u64) {
        if let (Some(net), Route::Net) = (&self.net, self.routes.to(to)) {
            let offset_bytes = Memory::flag_offset_bytes(step);
            let target = Target { operation: "barrier", pe: to, offset_bytes };
            let word = round.to_ne_bytes();
            // SAFETY: the flags lie at the start of every heap; without a tracker the source is free when the
            // call returns.
            unsafe { net.put(self, target, word.as_ptr(), word.len(), None) };
            return;
        }
        // SYNC POINT dissemination: releases what this PE did and has heard of, round by round.
        self.memory.flag(to, step).store(round, Ordering::Release);
        // SYNC POINT doorbell: orders the signal before this PE's look at the sleepers.
        fence(Ordering::SeqCst);
        self.ring_sleepers();
    }
}
