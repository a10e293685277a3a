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
use crate::segment::FLAGS;
use crate::wait::Awaited;
use crate::world::World;
use pelago_boot::BarrierKind;
use pelago_fabric::sync::{Ordering, fence};
use std::cell::Cell;

/// More PEs than this and looking at everybody's flag costs more than meeting at a counter.
const FLAGS_PES_MAX: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Flags,
    Counter,
    Dissemination,
    /// This PE has failed or given up: it must not be taken for one that arrives.
    Closed,
}

/// A PE's place in the sequence of barriers.
#[derive(Debug)]
pub(crate) struct Barrier {
    form: Cell<Form>,
    round: Cell<u64>,
}

impl Barrier {
    /// The form in which PEs meet before they have agreed on another.
    pub(crate) fn new() -> Barrier {
        Barrier { form: Cell::new(Form::Counter), round: Cell::new(0) }
    }

    /// Chooses the form for the following barriers; all PEs choose alike, at the same place.
    pub(crate) fn choose(&self, kind: BarrierKind, n_pes: usize, cores: usize) {
        self.form.set(match kind {
            BarrierKind::Flags => Form::Flags,
            BarrierKind::Counter => Form::Counter,
            BarrierKind::Dissemination => Form::Dissemination,
            BarrierKind::Auto if n_pes <= cores.min(FLAGS_PES_MAX) => Form::Flags,
            BarrierKind::Auto => Form::Counter,
        });
    }

    /// The number of the next barrier.
    pub(crate) fn next_round(&self) -> u64 {
        self.round.get() + 1
    }

    /// This PE enters no barrier any more.
    pub(crate) fn close(&self) {
        self.form.set(Form::Closed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.form.get() == Form::Closed
    }
}

impl World {
    /// Waits until every PE has come here. All operations that the PEs issued before are complete and visible
    /// to all. Collective.
    ///
    /// # Panics
    /// If a PE that has not come has left the job or failed, so that the barrier cannot end.
    #[inline]
    pub fn barrier(&self) {
        let round = self.barrier.next_round();
        self.barrier.round.set(round);
        self.tally.add(|counts| counts.barriers += 1);
        match self.barrier.form.get() {
            Form::Flags => self.barrier_flags(round),
            Form::Counter => self.barrier_counter(round),
            Form::Dissemination => self.barrier_dissemination(round),
            Form::Closed => self.give_up("a barrier after this PE has failed"),
        }
    }

    #[inline]
    fn barrier_flags(&self, round: u64) {
        let blocks = self.memory.blocks();
        blocks[self.my_pe()].arrival.arrive(round);
        self.ring_sleepers();
        for (pe, block) in blocks.iter().enumerate() {
            if !block.arrival.has_arrived(round) {
                self.wait(Awaited::Barrier { pe: Some(pe), round }, || block.arrival.has_arrived(round));
            }
        }
    }

    fn barrier_counter(&self, round: u64) {
        let meeting = &self.memory.header().meeting;
        if meeting.arrive(self.n_pes() as u32, round) {
            self.ring_sleepers();
        } else {
            self.wait(Awaited::Barrier { pe: None, round }, || meeting.is_over(round));
        }
    }

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
            // SYNC POINT dissemination: releases what this PE did and has heard of, round by round.
            self.memory.flag(to, step).store(round, Ordering::Release);
            // SYNC POINT doorbell: orders the signal before this PE's look at the sleepers.
            fence(Ordering::SeqCst);
            self.ring_sleepers();
            let mine = self.memory.flag(me, step);
            // SYNC POINT dissemination: acquires what the sender did and had heard of.
            self.wait(Awaited::Barrier { pe: Some(from), round }, || mine.load(Ordering::Acquire) >= round);
        }
    }
}
