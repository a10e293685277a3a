//! Block distributions: the indices from 0 on are distributed in order over parts whose lengths differ by at
//! most one. Invariant: every index lies in exactly one part, and the longer parts come first.

use std::ops::Range;

/// The distribution of `len` indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    len: u64,
    /// The length of the shorter parts; the longer parts have one index more.
    short: u64,
    /// The number of longer parts.
    longer: u64,
    /// The shift that maps an index to its part, if the parts are equal and their length is a power of two.
    shift: Option<u32>,
}

impl Partition {
    /// Distributes `len` indices over `parts` parts, at least one.
    pub(crate) fn new(len: u64, parts: usize) -> Self {
        let (short, longer) = (len / parts as u64, len % parts as u64);
        let is_shift = longer == 0 && short.is_power_of_two();
        Partition { len, short, longer, shift: is_shift.then(|| short.trailing_zeros()) }
    }

    /// The part that an index lies in, and its place there; the index is below the number of indices.
    #[inline(always)]
    pub(crate) fn locate(&self, index: u64) -> (usize, usize) {
        match self.shift {
            Some(shift) => ((index >> shift) as usize, (index & (self.short - 1)) as usize),
            None => self.divide(index),
        }
    }

    #[inline]
    fn divide(&self, index: u64) -> (usize, usize) {
        let in_longer = self.longer * (self.short + 1);
        let (part, place) = match index.checked_sub(in_longer) {
            None => (index / (self.short + 1), index % (self.short + 1)),
            Some(rest) => (self.longer + rest / self.short, rest % self.short),
        };
        (part as usize, place as usize)
    }

    /// The indices of a part.
    pub(crate) fn range(&self, part: usize) -> Range<u64> {
        let start = |part: u64| part * self.short + part.min(self.longer);
        start(part as u64)..start(part as u64 + 1)
    }

    /// The number of indices.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The length of the longest part.
    pub(crate) fn longest(&self) -> u64 {
        self.short + self.longer.min(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_one_another_and_own_their_indices() {
        for (len, parts) in [(16, 1), (16, 2), (16, 3), (16, 4), (17, 4), (12, 4), (3, 5), (0, 2), (1, 1)] {
            let partition = Partition::new(len, parts);
            let mut next = 0;
            for part in 0..parts {
                let range = partition.range(part);
                assert_eq!(range.start, next, "{len} among {parts}, part {part}");
                for (place, index) in range.clone().enumerate() {
                    assert_eq!(partition.locate(index), (part, place), "{len} among {parts}, index {index}");
                }
                assert!(range.end - range.start <= partition.longest());
                next = range.end;
            }
            assert_eq!((next, partition.len()), (len, len), "among {parts}");
        }
    }

    #[test]
    fn lengths_differ_by_one_at_most() {
        let partition = Partition::new(1 << 40, 7);
        let lengths = (0..7).map(|part| partition.range(part)).map(|range| range.end - range.start);
        assert!(lengths.clone().all(|len| partition.longest() - len <= 1));
        assert_eq!(lengths.max(), Some(partition.longest()));
        assert_eq!(partition.locate((1 << 40) - 1).0, 6);
    }
}
