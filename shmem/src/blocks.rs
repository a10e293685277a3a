//! The state of the symmetric heap: the blocks that are in use, on this PE and on all PEs.
//!
//! Invariant: the blocks that all PEs have are the same on every PE, so the next plan follows from them
//! alone. This PE has these blocks, the blocks of its spaces (`extension/space.rs`), and during a call the
//! memory that it holds until the other PEs have agreed.

use crate::memory::ANY_ALIGN_BYTES;
use pelago::binding::Heap;

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
