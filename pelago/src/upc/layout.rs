//! Block-cyclic layout: the owner of each element of a shared array, and its position in the owner's part.
//! This is pure arithmetic.
//!
//! Invariant: blocks of one size are distributed over the PEs in turn, block b to PE b mod n. The blocks of a
//! PE lie in its part one after the other, so that a PE's elements of any range of indices form one range of
//! its part. Source: UPC Language Specifications 1.3, sections 6.5.1 and 7.2.3.

use crate::Pe;
use std::ops::Range;

/// The block size of a shared array: the number of consecutive elements on one PE, before the elements of the
/// next PE begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlockSize {
    /// One block for each PE, all of one size; the last may be shorter (UPC's `[*]`).
    #[default]
    Even,
    /// Blocks of one element (UPC's default, `[1]`).
    Cyclic,
    /// Blocks of this number of elements (UPC's `[n]`); at least 1.
    Of(usize),
    /// All elements on PE 0 (UPC's `[]`).
    Indefinite,
}

/// The layout of a shared array: the owner and the position of each element.
///
/// ```
/// use pelago::upc::{BlockSize, Layout};
/// let layout = Layout::new(10, BlockSize::Of(2), 3).unwrap(); // 0 1 | 2 3 | 4 5 | 6 7 | 8 9
/// assert_eq!((layout.owner(7), layout.phase(7), layout.local(7)), (0, 1, 3));
/// assert_eq!((0..3).map(|pe| layout.count_on(pe)).collect::<Vec<_>>(), [4, 4, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    len: usize,
    block: Divisor,
    n_pes: Divisor,
    is_indefinite: bool,
}

/// A divisor. Division by a power of two is a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Divisor {
    value: usize,
    /// The exponent if the divisor is a power of two, or else this constant.
    shift: u32,
}

const NO_POWER: u32 = u32::MAX;

impl Divisor {
    fn new(value: usize) -> Divisor {
        let shift = if value.is_power_of_two() { value.trailing_zeros() } else { NO_POWER };
        Divisor { value, shift }
    }

    /// Quotient and remainder.
    #[inline]
    fn divide(self, number: usize) -> (usize, usize) {
        match self.shift {
            NO_POWER => (number / self.value, number % self.value),
            shift => (number >> shift, number & (self.value - 1)),
        }
    }
}

impl Layout {
    /// The layout of `len` elements over `n_pes` PEs; `None` if there are no PEs, or if a block has no
    /// elements.
    pub fn new(len: usize, block_size: BlockSize, n_pes: usize) -> Option<Layout> {
        let block = match block_size {
            BlockSize::Cyclic => 1,
            BlockSize::Of(count) => count,
            BlockSize::Even if n_pes > 0 => len.div_ceil(n_pes).max(1),
            BlockSize::Even | BlockSize::Indefinite => len.max(1),
        };
        let (is_sound, is_indefinite) = (block > 0 && n_pes > 0, block_size == BlockSize::Indefinite);
        is_sound.then(|| Layout {
            len,
            block: Divisor::new(block),
            n_pes: Divisor::new(n_pes),
            is_indefinite,
        })
    }

    /// The number of elements on all PEs together.
    #[expect(clippy::len_without_is_empty, reason = "the length of an array, which stays as it is")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of PEs that the elements are distributed over.
    pub fn n_pes(&self) -> usize {
        self.n_pes.value
    }

    /// The number of elements of a block. In an indefinite layout it is the number of all elements, or 1 if
    /// there are none.
    pub fn block(&self) -> usize {
        self.block.value
    }

    /// Whether all elements lie on PE 0, without blocks.
    pub fn is_indefinite(&self) -> bool {
        self.is_indefinite
    }

    /// The PE that owns an element (UPC's `upc_threadof`), and the element's position in that PE's part.
    #[inline]
    pub fn locate(&self, index: usize) -> (Pe, usize) {
        let (block, phase) = self.block.divide(index);
        let (row, owner) = self.n_pes.divide(block);
        (owner, row * self.block.value + phase)
    }

    /// The PE that owns an element (UPC's `upc_threadof`).
    pub fn owner(&self, index: usize) -> Pe {
        self.locate(index).0
    }

    /// The position of an element in its owner's part.
    pub fn local(&self, index: usize) -> usize {
        self.locate(index).1
    }

    /// The position of an element in its block (UPC's `upc_phaseof`); 0 if there are no blocks.
    pub fn phase(&self, index: usize) -> usize {
        if self.is_indefinite { 0 } else { self.block.divide(index).1 }
    }

    /// The index of the element at position `local` in the part of `pe`; `None` if there is none.
    pub fn index_of(&self, pe: Pe, local: usize) -> Option<usize> {
        if pe >= self.n_pes.value {
            return None;
        }
        let (row, phase) = self.block.divide(local);
        let block = row.checked_mul(self.n_pes.value)?.checked_add(pe)?;
        let index = block.checked_mul(self.block.value)?.checked_add(phase)?;
        (index < self.len).then_some(index)
    }

    /// The number of elements of `pe` (UPC's `upc_affinitysize`, in elements); 0 if there is no such PE.
    pub fn count_on(&self, pe: Pe) -> usize {
        self.count_before(self.len, pe)
    }

    /// The number of elements that each PE's part has space for. It is the number of elements of PE 0,
    /// because no PE has more.
    pub fn part_len(&self) -> usize {
        self.count_on(0)
    }

    /// The elements of a range of indices that `pe` owns, as a range of its part.
    pub fn local_range(&self, pe: Pe, range: Range<usize>) -> Range<usize> {
        self.count_before(range.start, pe)..self.count_before(range.end, pe)
    }

    /// The number of the first `index` elements that `pe` owns.
    fn count_before(&self, index: usize, pe: Pe) -> usize {
        if pe >= self.n_pes.value {
            return 0;
        }
        let (blocks, rest) = self.block.divide(index);
        let (rows, last) = self.n_pes.divide(blocks);
        let rest = if pe == last { rest } else { 0 };
        (rows + usize::from(pe < last)) * self.block.value + rest
    }

    /// The elements of a range that `pe` owns: index and position in its part, both ascending.
    pub fn affine(&self, pe: Pe, range: Range<usize>) -> Affine {
        let range = range.start.min(self.len)..range.end.min(self.len);
        let local = self.local_range(pe, range);
        let index = self.index_of(pe, local.start).unwrap_or(self.len);
        let left_in_block = self.block.value - self.block.divide(local.start).1;
        let skip = (self.n_pes.value - 1).saturating_mul(self.block.value);
        let left = local.len();
        Affine { index, local: local.start, left, left_in_block, block: self.block.value, skip }
    }

    /// Whether a range of indices lies in this array.
    pub(crate) fn has(&self, index: usize, count: usize) -> bool {
        self.len.checked_sub(count).is_some_and(|last| index <= last)
    }
}

/// An iterator over one PE's elements of a shared array: their index, and their position in that PE's part.
/// It steps from block to block without divisions.
#[derive(Clone, Debug)]
pub struct Affine {
    index: usize,
    local: usize,
    left: usize,
    left_in_block: usize,
    block: usize,
    /// From the end of a block to the start of the next one here.
    skip: usize,
}

impl Affine {
    /// The next elements that are contiguous on both sides: their first index, their first position in the
    /// part, and their number.
    pub fn next_run(&mut self) -> Option<(usize, usize, usize)> {
        if self.left == 0 {
            return None;
        }
        self.enter_block();
        let count = match self.skip {
            0 => self.left,
            _ => self.left_in_block.min(self.left),
        };
        let run = (self.index, self.local, count);
        self.index += count;
        self.local += count;
        self.left -= count;
        self.left_in_block = self.left_in_block.saturating_sub(count);
        Some(run)
    }

    /// Goes on to the next block if this one is used up. An element is left.
    #[inline]
    fn enter_block(&mut self) {
        if self.left_in_block == 0 {
            self.index += self.skip;
            self.left_in_block = self.block;
        }
    }
}

impl Iterator for Affine {
    type Item = (usize, usize);

    #[inline]
    fn next(&mut self) -> Option<(usize, usize)> {
        if self.left == 0 {
            return None;
        }
        self.enter_block();
        let item = (self.index, self.local);
        self.index += 1;
        self.local += 1;
        self.left -= 1;
        self.left_in_block -= 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Affine {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The owner and position of each index, computed one by one.
    fn dealt(len: usize, block: usize, n_pes: usize) -> Vec<(Pe, usize)> {
        let mut counts = vec![0; n_pes];
        let deal = |index: usize| {
            let pe = index / block % n_pes;
            counts[pe] += 1;
            (pe, counts[pe] - 1)
        };
        (0..len).map(deal).collect()
    }

    fn block_sizes() -> impl Strategy<Value = BlockSize> {
        let of = (1usize..20).prop_map(BlockSize::Of);
        prop_oneof![
            Just(BlockSize::Even),
            Just(BlockSize::Cyclic),
            Just(BlockSize::Indefinite),
            of,
            Just(BlockSize::Of(64)),
            Just(BlockSize::Of(1000))
        ]
    }

    proptest! {
        #[test]
        fn elements_lie_where_they_are_dealt(
            len in 0usize..200, block_size in block_sizes(), n_pes in 1usize..=5,
            bounds in (0usize..=200, 0usize..=200),
        ) {
            let layout = Layout::new(len, block_size, n_pes).unwrap();
            let model = dealt(len, layout.block(), n_pes);
            let range = bounds.0.min(bounds.1).min(len)..bounds.0.max(bounds.1).min(len);
            for (index, &place) in model.iter().enumerate() {
                prop_assert_eq!(layout.locate(index), place);
                prop_assert_eq!(layout.index_of(place.0, place.1), Some(index));
            }
            for pe in 0..n_pes + 1 {
                let of_pe = |range: Range<usize>| {
                    let indices = range.filter(|&index| model[index].0 == pe);
                    indices.map(|index| (index, model[index].1)).collect::<Vec<_>>()
                };
                prop_assert_eq!(layout.count_on(pe), of_pe(0..len).len());
                prop_assert!(layout.count_on(pe) <= layout.part_len());
                prop_assert_eq!(layout.index_of(pe, layout.count_on(pe)), None);
                let affine = layout.affine(pe, range.clone());
                prop_assert_eq!(affine.len(), of_pe(range.clone()).len());
                prop_assert_eq!(affine.clone().collect::<Vec<_>>(), of_pe(range.clone()));
                let mut runs = affine;
                let mut elements = Vec::new();
                while let Some((index, local, count)) = runs.next_run() {
                    elements.extend((0..count).map(|i| (index + i, local + i)));
                }
                prop_assert_eq!(elements, of_pe(range.clone()));
            }
        }

        #[test]
        fn elements_and_runs_take_turns(
            len in 0usize..200, block_size in block_sizes(), n_pes in 1usize..=5,
            takes_run in prop::collection::vec(any::<bool>(), 1..20),
        ) {
            let layout = Layout::new(len, block_size, n_pes).unwrap();
            for pe in 0..n_pes {
                let (mut affine, mut elements) = (layout.affine(pe, 0..len), Vec::new());
                for takes_run in takes_run.iter().cycle() {
                    let taken = match takes_run {
                        true => affine.next_run(),
                        false => affine.next().map(|(index, local)| (index, local, 1)),
                    };
                    let Some((index, local, count)) = taken else { break };
                    elements.extend((0..count).map(|i| (index + i, local + i)));
                }
                prop_assert_eq!(elements, layout.affine(pe, 0..len).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn runs_of_one_pe_alone_are_merged() {
        let layout = Layout::new(100, BlockSize::Of(7), 1).unwrap();
        assert_eq!(layout.affine(0, 3..90).next_run(), Some((3, 3, 87)));
        let layout = Layout::new(100, BlockSize::Of(7), 2).unwrap();
        assert_eq!(layout.affine(0, 3..90).next_run(), Some((3, 3, 4)));
    }

    #[test]
    fn no_blocks_and_no_pes_are_refused() {
        assert_eq!(Layout::new(10, BlockSize::Of(0), 2), None);
        assert_eq!(Layout::new(10, BlockSize::Cyclic, 0), None);
        assert_eq!(Layout::new(10, BlockSize::Even, 0), None);
        assert_eq!(Layout::new(0, BlockSize::Even, 3).unwrap().part_len(), 0);
        let huge = Layout::new(usize::MAX, BlockSize::Of(usize::MAX), 3).unwrap();
        assert_eq!((huge.index_of(1, 5), huge.index_of(2, usize::MAX)), (None, None));
    }

    #[test]
    fn an_indefinite_layout_has_no_phase() {
        let layout = Layout::new(10, BlockSize::Indefinite, 3).unwrap();
        assert_eq!((layout.owner(9), layout.local(9), layout.phase(9)), (0, 9, 0));
    }
}
