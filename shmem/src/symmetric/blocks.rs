//! The state of the symmetric heap: the blocks that are in use, on this PE and on all PEs.
//!
//! Invariant: the blocks that all PEs have are the same on every PE, so the next plan follows from them
//! alone. This PE has these blocks, the blocks of its spaces (`extension/space.rs`), and during a call the
//! memory that it holds until the other PEs have agreed.

use super::Memory;
use crate::base::abi::c_void;
use pelago::binding::Heap;
use std::sync::{MutexGuard, PoisonError};

/// An alignment of a block that is sufficient for any type.
pub(crate) const ANY_ALIGN_BYTES: usize = 16;

/// The state.
pub(crate) struct Blocks {
    /// The blocks that are in use on this PE.
    pub(crate) own: Heap,
    /// The blocks that all PEs have.
    common: Heap,
}

/// The change that all PEs make to their heaps if no PE has a conflicting block.
#[derive(Clone, Copy)]
pub(crate) enum Plan {
    /// A new block at an offset; `None` if there is not enough memory.
    Place(Option<usize>),
    /// A block, whose size was `bytes` until now, changes its size and stays in place.
    Stay { offset: usize, bytes: usize },
}

impl Blocks {
    /// A heap of `bytes` bytes, all free.
    pub(crate) fn new(bytes: usize) -> Blocks {
        Blocks { own: Heap::new(0, bytes), common: Heap::new(0, bytes) }
    }

    /// Whether a block of all PEs begins there.
    pub(crate) fn is_common(&self, offset: usize) -> bool {
        self.common.block_bytes(offset).is_some()
    }

    pub(crate) fn plan_alloc(&self, bytes: usize, align_bytes: usize) -> Plan {
        Plan::Place(self.common.best_fit(bytes, align_bytes))
    }

    pub(crate) fn plan_resize(&self, offset: usize, bytes: usize) -> Plan {
        match self.common.can_resize(offset, bytes) {
            true => Plan::Stay { offset, bytes: self.common.block_bytes(offset).unwrap_or(0) },
            false => self.plan_alloc(bytes, ANY_ALIGN_BYTES),
        }
    }

    /// Reserves the memory that a plan needs, if it is free on this PE.
    pub(crate) fn hold(&mut self, plan: Plan, bytes: usize) -> bool {
        match plan {
            Plan::Place(None) => true,
            Plan::Place(Some(place)) => self.own.alloc_at(place, bytes),
            Plan::Stay { offset, bytes: before } => self.own.resize_in_place(offset, bytes.max(before)),
        }
    }

    /// Releases the memory that was reserved.
    pub(crate) fn give_up(&mut self, plan: Plan) {
        match plan {
            Plan::Place(None) => (),
            Plan::Place(Some(place)) => self.own.free(place),
            Plan::Stay { offset, bytes } => assert!(self.own.resize_in_place(offset, bytes), "it shrinks"),
        }
    }

    /// Carries out a plan for which all PEs have reserved memory.
    pub(crate) fn carry_out(&mut self, plan: Plan, bytes: usize) {
        let is_done = match plan {
            Plan::Place(None) => true,
            Plan::Place(Some(place)) => self.common.alloc_at(place, bytes),
            Plan::Stay { offset, .. } => {
                self.own.resize_in_place(offset, bytes) && self.common.resize_in_place(offset, bytes)
            }
        };
        assert!(is_done, "what is free at a PE is free where there are no spaces");
    }

    /// Frees a block of all PEs.
    pub(crate) fn free(&mut self, offset: usize) {
        self.common.free(offset);
        self.own.free(offset);
    }
}

impl Memory {
    /// The blocks of the heap.
    pub(crate) fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of an offset of the heap on this PE.
    pub(crate) fn address(&self, offset: usize) -> *mut c_void {
        self.heap.reach().own.wrapping_add(offset).cast()
    }

    /// The offset in the heap of an address, which need not lie there.
    pub(crate) fn offset(&self, ptr: *mut c_void) -> usize {
        (ptr as usize).wrapping_sub(self.heap.reach().own as usize)
    }

    /// The highest offset at which a block is free on all members of a team, reserved on each of them; `None`
    /// on all if there is none. `tell` exchanges the free offsets.
    ///
    /// In each round, every member proposes its highest free offset below the lowest offset that was proposed
    /// before, and reserves it for the round, so that other threads do not take it. If all members propose
    /// the same offset, it is the result. The lowest offset falls with every round.
    pub(crate) fn hold_at_all(
        &self,
        (bytes, align_bytes): (usize, usize),
        mut tell: impl FnMut(Option<usize>) -> Vec<Option<usize>>,
    ) -> Option<usize> {
        let mut last = usize::MAX;
        loop {
            let mut blocks = self.blocks();
            let place = blocks.own.highest_fit(bytes, align_bytes, last);
            if let Some(place) = place {
                assert!(blocks.own.alloc_at(place, bytes), "a fit is free");
            }
            drop(blocks);
            let told = tell(place);
            if told.iter().all(|&theirs| theirs == place) {
                return place;
            }
            if let Some(place) = place {
                self.blocks().own.free(place);
            }
            // `None` is less than any offset.
            last = told.into_iter().min().flatten()?;
        }
    }
}
