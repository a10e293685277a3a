//! The control blocks of a window: what processes of a node share about the part of one of them.
//!
//! ```text
//! word 0: the lock of the window | word 1: ranges in use | word 2: changes of the ranges
//! words 3 to 7: the offsets of blocks for more ranges
//! word 8: whether an accumulate has the part alone | word 16: whether this process accumulates on some part
//! from word 24 on: address and length of each attached range
//! ```
//! A block for more ranges has only those, four times as many as the block before.
//!
//! Invariant: the blocks are in the pool of their PE, all zero at first. Only its process changes the
//! ranges; a range whose length is 0 is empty.

use crate::chapters::library::Mpi;
use pelago_core::Pe;
use pelago_fabric::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The size of the control block of a window that nothing is attached to.
pub const BLOCK_BYTES: usize = 4096;
/// The size of that of a dynamic window.
pub const DYNAMIC_BLOCK_BYTES: usize = 256 << 10;
const LOCK: usize = 0;
const USED: usize = 1;
const CHANGES: usize = 2;
const FIRST_MORE: usize = 3;
const WRITERS: usize = 8;
const READER: usize = 16;
const FIRST_RANGE: usize = 24;
/// The number of ranges in the control block.
const RANGES: usize = (DYNAMIC_BLOCK_BYTES / 8 - FIRST_RANGE) / 2;
/// The number of ranges that are looked through one by one.
const FEW: usize = 32;

/// The size of a block for more ranges; `None` if there can be no such block.
pub fn more_bytes(block: usize) -> Option<usize> {
    (FIRST_MORE + block < WRITERS).then_some(DYNAMIC_BLOCK_BYTES << (2 * (block + 1)))
}

/// The control block of this process: its offset in the region, and its size.
pub struct Control {
    pub offset: usize,
    pub bytes: usize,
}

/// The control block of a process, as this one reaches it.
#[derive(Clone, Copy)]
pub struct Peer {
    pe: Pe,
    offset: usize,
    /// Where it is mapped here, or null.
    words: *const AtomicU64,
    /// Whether this process may use atomics of its processor on the lock.
    is_mapped: bool,
}

impl Peer {
    /// The block at an offset of a PE's region.
    pub fn new(mpi: &Mpi, pe: Pe, offset: usize) -> Peer {
        let is_mapped = mpi.core.memory.is_mapped(pe);
        let has_words = is_mapped || pe == mpi.core.my_pe();
        let words = match has_words {
            true => mpi.core.memory.heap(pe).wrapping_add(offset).cast_const().cast(),
            false => std::ptr::null(),
        };
        Peer { pe, offset, words, is_mapped }
    }

    pub fn pe(&self) -> Pe {
        self.pe
    }

    fn word(&self, index: usize) -> Option<&AtomicU64> {
        // SAFETY: the block is mapped and has more words; it is freed after the window.
        unsafe { self.words.wrapping_add(index).as_ref() }.filter(|_| !self.words.is_null())
    }

    /// The word of the lock, for atomics of this processor.
    pub fn lock(&self) -> Option<&AtomicU64> {
        self.word(LOCK).filter(|_| self.is_mapped)
    }

    /// The offset of the word of the lock in the region.
    pub fn lock_offset(&self) -> usize {
        self.offset + 8 * LOCK
    }

    /// The word of those that are alone on the part when they accumulate.
    pub fn writers(&self) -> Option<&AtomicU64> {
        self.word(WRITERS)
    }

    /// The word in which this process says that it accumulates on a part of some process.
    pub fn reader(&self) -> Option<&AtomicU64> {
        self.word(READER)
    }

    /// Whether there is a place for a range of this process.
    pub fn has_place(&self, place: usize) -> bool {
        self.range_words(place).is_some()
    }

    /// Adds a block at an offset of the region for more ranges of this process.
    pub fn add_block(&self, block: usize, offset: usize) {
        if let Some(word) = self.word(FIRST_MORE + block) {
            word.store(offset as u64, Ordering::Release);
        }
    }

    /// Attaches a range to this process's part of a dynamic window, at a place that is free.
    pub fn attach(&self, place: usize, (start, bytes): (usize, usize)) {
        let Some(([at, length], used)) = self.range_words(place).zip(self.word(USED)) else { return };
        at.store(start as u64, Ordering::Relaxed);
        // SYNC POINT attach: releases the address.
        length.store(bytes as u64, Ordering::Release);
        used.fetch_max(place as u64 + 1, Ordering::Release);
        self.note_change();
    }

    /// Detaches the range at a place.
    pub fn detach(&self, place: usize) {
        if let Some([_, length]) = self.range_words(place) {
            length.store(0, Ordering::Relaxed);
            self.note_change();
        }
    }

    fn note_change(&self) {
        if let Some(changes) = self.word(CHANGES) {
            // SYNC POINT attach: releases the ranges.
            changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether attached memory has all bytes of a range, also where it consists of several pieces that follow
    /// each other; `None` if that is not known here. `known` is what this process knows of the ranges.
    pub fn has_attached(&self, known: &Known, start: usize, bytes: usize) -> Option<bool> {
        // SYNC POINT attach: acquires the ranges.
        let changes = self.word(CHANGES)?.load(Ordering::Acquire);
        let Some(end) = start.checked_add(bytes) else { return Some(false) };
        let used = self.used();
        let mut sorted = known.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used > FEW && sorted.is_due(changes) {
            sorted.ranges = (0..used).filter_map(|i| self.range(i)).filter(|&(_, bytes)| bytes > 0).collect();
            sorted.ranges.sort_unstable();
        }
        let piece = |at: usize| match used > FEW && sorted.is_of(changes) {
            true => sorted.piece(at),
            false => {
                (0..used).filter_map(|i| self.range(i)).find(|&(first, n)| first <= at && at - first < n)
            }
        };
        let mut at = start;
        while at < end {
            match piece(at) {
                Some((first, n)) => at = first + n,
                None => return Some(false),
            }
        }
        Some(true)
    }

    fn used(&self) -> usize {
        // SYNC POINT attach: acquires the ranges.
        self.word(USED).map_or(0, |used| used.load(Ordering::Acquire) as usize)
    }

    fn range_words(&self, i: usize) -> Option<[&AtomicU64; 2]> {
        if i < RANGES {
            return Some([self.word(FIRST_RANGE + 2 * i)?, self.word(FIRST_RANGE + 2 * i + 1)?]);
        }
        let (mut block, mut i) = (0, i - RANGES);
        while i >= more_bytes(block)? / 16 {
            i -= more_bytes(block)? / 16;
            block += 1;
        }
        // SYNC POINT attach: acquires the block.
        let offset = self.word(FIRST_MORE + block)?.load(Ordering::Acquire) as usize;
        let words = self.words.wrapping_byte_sub(self.offset).wrapping_byte_add(offset + 16 * i);
        // SAFETY: the block lies in the region, which is mapped as that of the window is, and has the words.
        let words = unsafe { [words.as_ref()?, words.wrapping_add(1).as_ref()?] };
        (offset > 0).then_some(words)
    }

    fn range(&self, i: usize) -> Option<(usize, usize)> {
        let [at, length] = self.range_words(i)?;
        // SYNC POINT attach: acquires the address.
        let bytes = length.load(Ordering::Acquire) as usize;
        Some((at.load(Ordering::Relaxed) as usize, bytes))
    }
}

/// The ranges of another process, or of this one, as far as this process knows them.
#[derive(Default)]
pub struct Known(Mutex<Sorted>);

/// Ranges by address, and the number of changes after which they were so.
#[derive(Default)]
struct Sorted {
    changes: u64,
    /// Whether the ranges are those of that number of changes.
    is_known: bool,
    ranges: Vec<(usize, usize)>,
}

impl Sorted {
    /// Whether the ranges are to be sorted now: at the second question after a change, so that changes and
    /// questions in turn do not sort them each time.
    fn is_due(&mut self, changes: u64) -> bool {
        let is_due = self.changes == changes && !self.is_known;
        self.is_known = self.changes == changes;
        self.changes = changes;
        is_due
    }

    fn is_of(&self, changes: u64) -> bool {
        self.is_known && self.changes == changes
    }

    /// The range that has the byte at an address.
    fn piece(&self, at: usize) -> Option<(usize, usize)> {
        let behind = self.ranges.partition_point(|&(first, _)| first <= at);
        let &(first, bytes) = self.ranges.get(behind.checked_sub(1)?)?;
        (at - first < bytes).then_some((first, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_sorted_at_the_second_question_after_a_change() {
        let mut sorted = Sorted::default();
        let asked = [7, 7, 7, 8, 9, 9, 9].map(|changes| (sorted.is_due(changes), sorted.is_of(changes)));
        let (no, now, yes) = ((false, false), (true, true), (false, true));
        assert_eq!(asked, [no, now, yes, no, no, now, yes]);
    }

    #[test]
    fn the_range_of_an_address_is_found() {
        let sorted = Sorted { ranges: vec![(10, 5), (15, 1), (40, 2)], ..Sorted::default() };
        let found = [9, 10, 14, 15, 16, 41, 42].map(|at| sorted.piece(at).map(|(first, _)| first));
        assert_eq!(found, [None, Some(10), Some(10), Some(15), None, Some(40), None]);
    }
}
