//! The layout of the blocks of all ranks, in bytes: all of one size, or each of a size of its own. They lie
//! in the target of an all-gather or a gather, or in the source of a scatter.
//!
//! Invariant: blocks lie in the order of ranks without gaps, so those of a range of ranks are one piece.

use crate::schedule::{Builder, Place, Rank, Remote, Slot};
use crate::shape::{Blocks, Shape};
use std::ops::Range;

/// The layout of the blocks.
pub(crate) struct Layout {
    block: usize,
    /// Where each block starts and the last one ends; empty if all blocks have one size.
    starts: Vec<usize>,
}

impl Layout {
    /// The layout of an operation.
    pub fn of(shape: &Shape) -> Layout {
        let Blocks::Counts(counts) = &shape.blocks else {
            return Layout { block: shape.block_bytes(), starts: Vec::new() };
        };
        let mut end = 0;
        let ends = counts.iter().map(|count| {
            end += count * shape.element_bytes;
            end
        });
        Layout { block: 0, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// Where the block of a rank starts; for n, where the last one ends.
    pub fn start(&self, rank: Rank) -> usize {
        match self.starts.is_empty() {
            true => rank * self.block,
            false => self.starts[rank],
        }
    }

    /// Bytes of the blocks of a range of ranks.
    pub fn bytes(&self, ranks: Range<Rank>) -> usize {
        self.start(ranks.end) - self.start(ranks.start)
    }

    /// Puts this rank's block from its source to its place in another rank's target.
    pub fn put_own(&self, b: &mut Builder, own: Rank, to: Rank, slot: Slot) {
        let into = Remote::Target(self.start(own));
        b.put_signal(to, Place::source(0), into, self.bytes(own..own + 1), slot);
    }

    /// Copies this rank's block from its source to its place in its target.
    pub fn copy_own(&self, b: &mut Builder, own: Rank) {
        b.copy(Place::source(0), Place::target(self.start(own)), self.bytes(own..own + 1));
    }

    /// Puts the blocks of a range of ranks from this rank's target to the same place in another rank's
    /// target.
    pub fn pass_on(&self, b: &mut Builder, ranks: Range<Rank>, to: Rank, slot: Slot) {
        let at = self.start(ranks.start);
        b.put_signal(to, Place::target(at), Remote::Target(at), self.bytes(ranks), slot);
    }
}
