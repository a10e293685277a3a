//! Waking the threads that sleep at the doorbells of this node's PEs.

use super::Job;
use pelago_fabric::shm::doorbell::Cause;
use pelago_fabric::shm::segment::Block;
use pelago_fabric::sync::{self, Ordering};

impl Job {
    /// Wakes the sleeping PEs of the node after a change that a full fence has followed, such as the arrival
    /// at a barrier. This is one load if no PE sleeps.
    #[inline]
    pub fn ring_sleepers(&self) {
        if self.memory.header().sleepers.any() {
            ring_all(self.memory.blocks(), &[Cause::Meeting, Cause::Data]);
        }
    }

    /// The same after a change that no fence has followed.
    pub fn ring_sleepers_after_change(&self) {
        // SYNC POINT doorbell: orders the change before the look at the sleepers.
        sync::fence(Ordering::SeqCst);
        self.ring_sleepers();
    }

    /// Wakes the sleeping threads of this PE after a change that a full fence has followed.
    pub fn ring_own(&self) {
        self.memory.near_block(self.my_pe()).doorbell.ring_all();
    }

    /// Wakes the threads of this PE that sleep, after another one has changed what they wait for.
    pub fn ring_own_sleepers(&self) {
        let doorbell = &self.memory.near_block(self.my_pe()).doorbell;
        // SYNC POINT doorbell: orders the change before the look at the announcement of a sleeper.
        sync::fence(Ordering::SeqCst);
        if doorbell.has_sleepers() {
            doorbell.ring_all();
        }
    }

    /// Wakes the PEs of the node that sleep until data arrive, after this PE has put some. This is one load
    /// if no PE does.
    #[inline]
    pub fn ring_sleepers_for_data(&self) {
        if self.memory.header().sleepers.for_data().load(Ordering::Relaxed) != 0 {
            ring_all(self.memory.blocks(), &[Cause::Data]);
        }
    }

    /// Alerts mapped PEs that poll in a loop, because the job has failed.
    #[cold]
    pub(super) fn alarm_pollers(&self) {
        let is_mapped = |&pe: &usize| self.memory.is_mapped(pe);
        for slot in (0..self.n_pes).filter(is_mapped).filter_map(|pe| self.memory.slot(pe)) {
            // If the ring is full, the PE finds another message there anyway. The contents of this message do
            // not matter.
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
