//! A table that is distributed word by word, and random indices into it, of which each PE has a list.
//! Invariant: the lists depend only on the sizes and the number of PEs, so any PE can compute the list of
//! another PE.

use std::fmt;
use std::ops::RangeInclusive;

use clap::value_parser;
use pelago::prelude::*;
use pelago_report::Bytes;

use crate::room::Need;
use crate::splitmix::{SplitMix, mix};

/// The permitted numbers of words of a PE.
const WORDS: RangeInclusive<i64> = 1..=u32::MAX as i64;
/// The permitted numbers of indices of a PE.
const INDICES: RangeInclusive<i64> = 1..=u32::MAX as i64;
/// Bytes of memory for each index: its place, a result, and a second result for the way by messages.
const INDEX_BYTES: u64 = (size_of::<Place>() + 2 * size_of::<u64>()) as u64;

/// The size of the table, and the number of indices.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Size {
    /// Words of the table on each PE
    #[arg(long, value_name = "WORDS", default_value = "10000", allow_negative_numbers = true,
        value_parser = value_parser!(u32).range(WORDS))]
    pub(super) table: u32,
    /// Random indices of each PE
    #[arg(long, value_name = "N", default_value = "1000000", allow_negative_numbers = true,
        value_parser = value_parser!(u32).range(INDICES))]
    pub(super) indices: u32,
}

/// The place of a word of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) pe: u32,
    /// The index in that PE's part.
    pub(super) index: u32,
}

/// Table and indices of a number of PEs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem {
    pub(super) size: Size,
    pub(super) pes: usize,
}

impl Problem {
    /// The list of a PE. The words of the table are distributed over the PEs in turn.
    pub(super) fn places(&self, pe: Pe) -> Vec<Place> {
        let (pes, mut random) = (self.pes as u64, SplitMix::new(mix(pe as u64 + 1)));
        let words = pes * u64::from(self.size.table);
        let indices = (0..self.size.indices).map(|_| random.below(words));
        indices.map(|index| Place { pe: (index % pes) as u32, index: (index / pes) as u32 }).collect()
    }

    /// The number of indices of all PEs.
    pub(super) fn indices(&self) -> u64 {
        self.pes as u64 * u64::from(self.size.indices)
    }

    /// The memory that a run needs.
    pub(super) fn need(&self) -> Need {
        let Size { table, indices } = self.size;
        Need {
            what: format!("a table of {table} words, with {indices} indices, on each PE"),
            heap_bytes: 8 * u64::from(table),
            // The verification needs a second part of the table.
            private_bytes: INDEX_BYTES * u64::from(indices) + 8 * u64::from(table),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { table, indices } = self.size;
        let bytes = Bytes(8 * u64::from(table));
        write!(f, "{table} words ({bytes}) and {indices} indices on each PE; number of PEs {}", self.pes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_reach_all_words_and_differ_by_pe() {
        let problem = Problem { size: Size { table: 5, indices: 1000 }, pes: 3 };
        let lists = [0, 1, 2].map(|pe| problem.places(pe));
        assert!(lists[0] != lists[1] && lists[1] != lists[2]);
        assert_eq!((lists[2].len(), problem.indices()), (1000, 3000));
        for (pe, index) in (0..3).flat_map(|pe| (0..5).map(move |index| (pe, index))) {
            let count = lists[0].iter().filter(|place| **place == Place { pe, index }).count();
            assert!((30..110).contains(&count), "word {index} of PE {pe} has {count} indices of 1000");
        }
    }

    #[test]
    fn what_is_needed_grows_with_both_sizes() {
        let need = Problem { size: Size { table: 1 << 20, indices: 1 << 20 }, pes: 2 }.need();
        assert_eq!((need.heap_bytes, need.private_bytes), (8 << 20, 32 << 20));
    }
}
