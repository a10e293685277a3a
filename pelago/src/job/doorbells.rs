//! Waking the threads that sleep at the doorbells of this node's PEs.

use super::Job;
use pelago_fabric::shm::doorbell::Cause;
use pelago_fabric::shm::segment::Block;
use pelago_fabric::sync::Ordering;

impl Job {
    /// Wakes the PEs of the node that sleep, after this PE has come to a meeting. One load when nobody
    /// sleeps.
    #[inline]
    pub(crate) fn ring_sleepers(&self) {
        if self.memory.header().sleepers.any() {
            ring_all(self.memory.blocks(), &[Cause::Meeting, Cause::Data]);
        }
    }

    /// Wakes the threads of this PE that sleep.
    pub(crate) fn ring_own(&self) {
        self.memory.near_block(self.my_pe()).doorbell.ring_all();
    }

    /// Wakes the PEs of the node that wait for data, after this PE has put some. One load when nobody does.
    #[inline]
    pub(crate) fn ring_sleepers_for_data(&self) {
        if self.memory.header().sleepers.for_data().load(Ordering::Relaxed) != 0 {
            ring_all(self.memory.blocks(), &[Cause::Data]);
        }
    }

    /// Lets PEs that are mapped and poll in a loop look up, as the job has failed.
    #[cold]
    pub(super) fn alarm_pollers(&self) {
        let is_mapped = |&pe: &usize| self.memory.is_mapped(pe);
        for slot in (0..self.n_pes).filter(is_mapped).filter_map(|pe| self.memory.slot(pe)) {
            // Where there is no room something lies that is looked at anyway; what it says nobody asks.
            self.memory.segment().inbox(slot).send(self.me, u64::MAX, &[]);
        }
    }
}

#[cold]
fn ring_all(blocks: &[Block], causes: &[Cause]) {
    for block in blocks {
        causes.iter().for_each(|&cause| block.doorbell.ring(cause));
    }
}
