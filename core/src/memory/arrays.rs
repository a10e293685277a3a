//! The symmetric arrays that are alive, by number.
//!
//! Invariant: all PEs allocate in the same order and reclaim the same sets, so an array has the same number
//! everywhere. A number is in one of three states: free, alive, or dropped here and waiting for the others.

use crate::base::call::{ArraySet, DROPPED_WORDS};
use crate::memory::segment::AddressTable;
use crate::memory::usage::Usage;
use std::sync::Arc;

/// Number of an array, the same at every PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayId(u32);

impl ArrayId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The most arrays that can be alive at once.
pub const ARRAYS_MAX: usize = DROPPED_WORDS * 64;

/// Where an array lies in the heap and on each PE, and how it must be aligned.
#[derive(Debug)]
pub struct Block {
    pub offset_bytes: usize,
    pub align_bytes: usize,
    /// The handles of the array point to this table for as long as the array lives.
    pub parts: AddressTable,
    /// Shared with the collective operations that use the array.
    pub usage: Arc<Usage>,
}

/// The block of each array, and the arrays that this PE has dropped.
#[derive(Debug)]
pub struct Arrays {
    blocks: Vec<Option<Block>>,
    free: std::collections::BTreeSet<usize>,
    dropped: ArraySet,
    max: usize,
}

impl Arrays {
    /// An empty table for at most `max` arrays at once; `max` is at most [`ARRAYS_MAX`].
    pub fn new(max: usize) -> Arrays {
        Arrays { blocks: Vec::new(), free: Default::default(), dropped: [0; DROPPED_WORDS], max }
    }

    /// Gives a new array the lowest free number; `None` if all numbers are in use.
    pub fn insert(&mut self, block: Block) -> Option<ArrayId> {
        let id = self.free.pop_first().unwrap_or(self.blocks.len());
        if id == self.max {
            return None;
        }
        if id == self.blocks.len() {
            self.blocks.push(None);
        }
        self.blocks[id] = Some(block);
        Some(ArrayId(id as u32))
    }

    /// How an array must be aligned, in bytes.
    pub fn align_bytes(&self, id: ArrayId) -> usize {
        self.blocks[id.index()].as_ref().map_or(1, |block| block.align_bytes)
    }

    /// Records that an array has moved to a new block and its handles use a new table.
    pub fn relocate(&mut self, id: ArrayId, block: Block) {
        self.blocks[id.index()] = Some(block);
    }

    /// Marks the array as dropped by this PE, which will not use it again.
    pub fn drop_here(&mut self, id: ArrayId) {
        self.dropped[id.index() / 64] |= 1 << (id.index() % 64);
    }

    /// The arrays that this PE has dropped and not yet reclaimed, without those that a collective operation
    /// still uses.
    pub fn dropped(&self) -> ArraySet {
        let mut set = self.dropped;
        for (word, bits) in set.iter_mut().enumerate().filter(|(_, bits)| **bits != 0) {
            for bit in (0..64).filter(|bit| self.dropped[word] & (1 << bit) != 0) {
                let block = self.blocks[word * 64 + bit].as_ref();
                if block.is_some_and(|block| !block.usage.is_over()) {
                    *bits &= !(1 << bit);
                }
            }
        }
        set
    }

    /// Forgets the arrays of `set`, which every PE has dropped, and returns their offsets in bytes.
    pub fn reclaim(&mut self, set: &ArraySet) -> Vec<usize> {
        let mut offsets = Vec::new();
        for (word, &bits) in set.iter().enumerate() {
            for bit in (0..64).filter(|bit| bits & (1 << bit) != 0) {
                let id = word * 64 + bit;
                offsets.extend(self.blocks[id].take().map(|block| block.offset_bytes));
                self.free.insert(id);
                self.dropped[word] &= !(1 << bit);
            }
        }
        offsets
    }

    /// The number of arrays that are alive or wait for other PEs to drop them.
    pub fn count(&self) -> usize {
        self.blocks.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset_bytes: usize) -> Block {
        Block { offset_bytes, align_bytes: 64, parts: AddressTable::default(), usage: Arc::default() }
    }

    fn set(ids: &[usize]) -> ArraySet {
        let mut set = [0; DROPPED_WORDS];
        ids.iter().for_each(|id| set[id / 64] |= 1 << (id % 64));
        set
    }

    #[test]
    fn numbers_are_reused_lowest_first_after_all_have_dropped() {
        let mut arrays = Arrays::new(ARRAYS_MAX);
        let ids: Vec<_> = (0..70).map(|i| arrays.insert(at(i * 64)).unwrap()).collect();
        arrays.drop_here(ids[66]);
        arrays.drop_here(ids[2]);
        assert_eq!(arrays.dropped(), set(&[2, 66]));
        assert_eq!(arrays.reclaim(&set(&[66])), [66 * 64]);
        assert_eq!((arrays.dropped(), arrays.count()), (set(&[2]), 69));
        assert_eq!(arrays.insert(at(9)), Some(ArrayId(66)));
        assert_eq!(arrays.reclaim(&set(&[2])), [2 * 64]);
        assert_eq!(arrays.insert(at(9)), Some(ArrayId(2)));
        assert_eq!(arrays.insert(at(9)), Some(ArrayId(70)));
    }

    #[test]
    fn there_is_an_end_to_numbers() {
        let mut arrays = Arrays::new(ARRAYS_MAX);
        assert!((0..ARRAYS_MAX).all(|i| arrays.insert(at(i)).is_some()));
        assert_eq!(arrays.insert(at(0)), None);
        assert_eq!(arrays.count(), ARRAYS_MAX);
    }
}
