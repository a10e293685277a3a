//! Which bytes of a window were given: a bit for each.

use std::ops::Range;

const WORD_BITS: usize = u64::BITS as usize;

/// The bytes that were given.
#[derive(Default)]
pub struct Coverage(Vec<u64>);

impl Coverage {
    /// Forgets all, and makes room for this many bytes.
    pub fn clear(&mut self, bytes: usize) {
        self.0.clear();
        self.0.resize(bytes.div_ceil(WORD_BITS), 0);
    }

    /// Adds a range, which is not empty.
    pub fn add(&mut self, range: Range<usize>) {
        let (first, last) = (range.start / WORD_BITS, (range.end - 1) / WORD_BITS);
        let from_first = u64::MAX << (range.start % WORD_BITS);
        let to_last = u64::MAX >> (WORD_BITS - 1 - (range.end - 1) % WORD_BITS);
        if first == last {
            self.0[first] |= from_first & to_last;
            return;
        }
        self.0[first] |= from_first;
        self.0[first + 1..last].fill(u64::MAX);
        self.0[last] |= to_last;
    }

    /// The first byte from `from` on that was given, or was not; the room's end if there is none.
    fn next(&self, from: usize, is_given: bool) -> usize {
        let flip = if is_given { 0 } else { u64::MAX };
        let mut mask = u64::MAX << (from % WORD_BITS);
        for (index, word) in self.0.iter().enumerate().skip(from / WORD_BITS) {
            let found = (word ^ flip) & mask;
            if found != 0 {
                return index * WORD_BITS + found.trailing_zeros() as usize;
            }
            mask = u64::MAX;
        }
        self.0.len() * WORD_BITS
    }

    /// The ranges that were given, in order and as long as possible.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let mut end = 0;
        std::iter::from_fn(move || {
            let start = self.next(end, true);
            end = self.next(start, false);
            (start < end).then_some(start..end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_the_bytes_that_were_added(
            added in prop::collection::vec((0usize..400, 1usize..150), 0..12),
        ) {
            let (mut coverage, mut model) = (Coverage::default(), vec![false; 600]);
            coverage.clear(600);
            for (start, bytes) in added {
                coverage.add(start..start + bytes);
                model[start..start + bytes].fill(true);
            }
            let found: Vec<_> = coverage.ranges().collect();
            prop_assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start));
            let given = (0..600).filter(|&byte| model[byte]);
            prop_assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), given.collect::<Vec<_>>());
            coverage.clear(64);
            prop_assert_eq!(coverage.ranges().count(), 0);
        }
    }

    #[test]
    fn the_end_of_the_room_is_the_end_of_a_range() {
        let mut coverage = Coverage::default();
        coverage.clear(128);
        coverage.add(60..128);
        let mut found = coverage.ranges();
        assert_eq!((found.next(), found.next()), (Some(60..128), None));
    }
}
