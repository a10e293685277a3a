//! Iterators over all elements of a distributed array, which are fetched in blocks.
//!
//! Invariant: elements are fetched in blocks only, never one by one; the discipline defines how a block is
//! fetched.

use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use std::ops::Range;

use super::batch::zeros;

/// The default size of a block, in bytes.
const BLOCK_BYTES: usize = 16 << 10;

/// The number of elements of a block of the default size.
pub(super) fn block_len<T>() -> usize {
    (BLOCK_BYTES / size_of::<T>().max(1)).max(1)
}

/// A function that fetches the elements of a range.
type Fetch<'a, T> = Box<dyn FnMut(Range<usize>, &mut [T]) -> Result<()> + 'a>;

/// The elements of a distributed array, in the order of their indices.
pub struct Iter<'a, T: Element> {
    len: usize,
    block_len: usize,
    /// The elements of this range are in the block; those before it were returned.
    here: Range<usize>,
    block: Vec<T>,
    fetch: Fetch<'a, T>,
}

impl<'a, T: Element> Iter<'a, T> {
    /// The iterator of an array of `len` elements, fetched in blocks of `block_len`.
    pub(super) fn new(
        len: usize,
        block_len: usize,
        fetch: impl FnMut(Range<usize>, &mut [T]) -> Result<()> + 'a,
    ) -> Iter<'a, T> {
        assert!(block_len > 0, "an iterator by blocks of 0 elements; a block has at least 1");
        Iter { len, block_len, here: 0..0, block: Vec::new(), fetch: Box::new(fetch) }
    }

    /// Fetches the next block; returns whether there is one.
    #[cold]
    fn refill(&mut self) -> bool {
        let start = self.here.end;
        let range = start..start.saturating_add(self.block_len).min(self.len);
        if range.is_empty() {
            return false;
        }
        match self.block.len() < range.len() {
            true => self.block = zeros(range.len()),
            false => self.block.truncate(range.len()),
        }
        (self.fetch)(range.clone(), &mut self.block).unwrap_or_else(|error| panic!("{error}"));
        self.here = range;
        true
    }
}

impl<T: Element> Iterator for Iter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.here.is_empty() && !self.refill() {
            return None;
        }
        let value = self.block[self.block.len() - self.here.len()];
        self.here.start += 1;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.len - self.here.start;
        (left, Some(left))
    }
}

impl<T: Element> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_the_array_once() {
        for (len, block_len) in [(0, 3), (1, 3), (9, 3), (10, 3), (10, 1), (10, 100), (10, usize::MAX)] {
            let mut fetched = Vec::new();
            let iter = Iter::new(len, block_len, |range, block: &mut [usize]| {
                assert_eq!(range.len(), block.len());
                block.iter_mut().zip(range.clone()).for_each(|(value, index)| *value = index);
                fetched.push(range);
                Ok(())
            });
            assert_eq!(iter.len(), len);
            assert!(iter.eq(0..len), "{len} by {block_len}");
            assert_eq!(fetched.len(), len.div_ceil(block_len));
            assert!(fetched.iter().all(|range| range.len() <= block_len));
        }
    }

    #[test]
    #[should_panic(expected = "at least 1")]
    fn empty_blocks_are_refused() {
        Iter::<u8>::new(1, 0, |_, _| Ok(()));
    }
}
