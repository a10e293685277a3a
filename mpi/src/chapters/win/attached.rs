//! The memory that a process attaches to a dynamic window, as it keeps account of it itself. Others see the
//! ranges in the control block.
//!
//! Invariant: the ranges are those of the control block, each at its place there, and do not overlap.

use super::control::{Peer, more_bytes};
use crate::chapters::library::Mpi;
use std::collections::BTreeMap;

/// The memory that a process has attached.
#[derive(Default)]
pub struct Attached {
    /// The length of each range and its place in the control block, by address.
    ranges: BTreeMap<usize, (usize, usize)>,
    /// Places that were used.
    free: Vec<usize>,
    /// Where attaches of no bytes begin.
    empty: Vec<usize>,
    /// The blocks of the pool for ranges that the control block has no room for: offset and length.
    blocks: Vec<(usize, usize)>,
}

impl Attached {
    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether a range overlaps attached memory.
    pub fn overlaps(&self, start: usize, bytes: usize) -> bool {
        let before = self.ranges.range(..start.saturating_add(bytes)).next_back();
        bytes > 0 && before.is_some_and(|(&at, &(length, _))| start < at.saturating_add(length))
    }

    /// Attaches a range that overlaps none; `false` if there is no room to note it.
    pub fn attach(&mut self, mpi: &Mpi, own: &Peer, (start, bytes): (usize, usize)) -> bool {
        if bytes == 0 {
            self.empty.push(start);
            return true;
        }
        let place = self.free.last().copied().unwrap_or(self.ranges.len());
        if !own.has_place(place) && !self.add_block(mpi, own) {
            return false;
        }
        self.free.pop();
        own.attach(place, (start, bytes));
        self.ranges.insert(start, (bytes, place));
        true
    }

    /// Adds a block for more ranges.
    fn add_block(&mut self, mpi: &Mpi, own: &Peer) -> bool {
        let Some(bytes) = more_bytes(self.blocks.len()) else { return false };
        let Some(offset) = mpi.core.pool_alloc_for_program(bytes) else { return false };
        own.add_block(self.blocks.len(), offset);
        self.blocks.push((offset, bytes));
        true
    }

    /// Detaches what begins at an address; `false` if nothing does.
    pub fn detach(&mut self, own: &Peer, start: usize) -> bool {
        if let Some((_, place)) = self.ranges.remove(&start) {
            own.detach(place);
            self.free.push(place);
            return true;
        }
        let place = self.empty.iter().position(|&at| at == start);
        place.map(|place| self.empty.swap_remove(place)).is_some()
    }

    /// Gives the blocks back to the pool.
    pub fn free_blocks(&mut self, mpi: &Mpi) {
        self.blocks.drain(..).for_each(|(offset, bytes)| mpi.core.pool_free(offset, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_do_not_overlap() {
        let ranges = [(100, (10, 0)), (200, (50, 1))].into();
        let attached = Attached { ranges, ..Attached::default() };
        for (start, bytes) in [(0, 100), (110, 90), (250, 1), (120, 0), (205, 0), (usize::MAX, 1)] {
            assert!(!attached.overlaps(start, bytes), "{bytes} bytes at {start}");
        }
        for (start, bytes) in [(0, 101), (109, 1), (105, 2), (110, 91), (249, 9), (0, usize::MAX)] {
            assert!(attached.overlaps(start, bytes), "{bytes} bytes at {start}");
        }
    }
}
