//! The account of the symmetric heap: which of its blocks are in use, here and at all PEs.
//!
//! Invariant: what all PEs have is the same on every PE, so what they would do next follows from it alone.
//! Here there are these blocks, those of this PE's spaces (`extension/space.rs`), and for the length of a
//! call what is held until the others have agreed.

use crate::memory::ANY_ALIGN_BYTES;
use pelago::binding::Heap;

/// The account.
pub(crate) struct Blocks {
    /// What is in use here.
    pub(crate) own: Heap,
    /// The blocks that all PEs have.
    common: Heap,
}

/// What all PEs do with their heaps if nothing is in the way of any.
#[derive(Clone, Copy)]
pub(crate) enum Plan {
    /// A new block at an offset; `None` if there is no room.
    Place(Option<usize>),
    /// A block, of so many bytes until now, changes its size and stays where it is.
    Stay { offset: usize, bytes: usize },
}

impl Blocks {
    /// A heap of so many bytes, all free.
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

    /// Takes the room that a plan needs, if nothing is in the way here.
    pub(crate) fn hold(&mut self, plan: Plan, bytes: usize) -> bool {
        match plan {
            Plan::Place(None) => true,
            Plan::Place(Some(place)) => self.own.alloc_at(place, bytes),
            Plan::Stay { offset, bytes: before } => self.own.resize_in_place(offset, bytes.max(before)),
        }
    }

    /// Gives up what was held.
    pub(crate) fn give_up(&mut self, plan: Plan) {
        match plan {
            Plan::Place(None) => (),
            Plan::Place(Some(place)) => self.own.free(place),
            Plan::Stay { offset, bytes } => assert!(self.own.resize_in_place(offset, bytes), "it shrinks"),
        }
    }

    /// Does what was held for on all PEs.
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

    /// Gives a block of all PEs back.
    pub(crate) fn free(&mut self, offset: usize) {
        self.common.free(offset);
        self.own.free(offset);
    }
}
