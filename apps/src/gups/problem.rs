//! The problem: a table of 2^K words in blocks, and a stream of updates, of which each PE makes a share.
//! Invariant: the whole stream is the same for any number of PEs.

use std::fmt;

use pelago::Result;
use pelago::prelude::*;
use pelago_report::Bytes;

use super::sequence::Sequence;
use crate::partition::Partition;

/// The number of updates for each word of the table, if the user gives no number.
const UPDATES_PER_WORD: u64 = 4;
/// The number of updates after which progress is reported.
const UPDATES_A_STEP: u64 = 1 << 16;

/// The table and the updates, distributed over a number of PEs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem {
    pub(super) table: Partition,
    pub(super) stream: Partition,
    pub(super) pes: usize,
    /// Selects the bits of a random number that are the index of the word in the table.
    mask: u64,
}

impl Problem {
    /// A table of 2^`words_log2` words with `updates` updates, or four for each word.
    pub(super) fn new(words_log2: u32, updates: Option<u64>, pes: usize) -> Self {
        let words = 1_u64 << words_log2;
        let updates = updates.unwrap_or(UPDATES_PER_WORD * words);
        let (table, stream) = (Partition::new(words, pes), Partition::new(updates, pes));
        Problem { table, stream, pes, mask: words - 1 }
    }

    /// The word that an update changes.
    #[inline(always)]
    pub(super) fn word(&self, update: u64) -> u64 {
        update & self.mask
    }

    /// The PE that has the word, and the word's index there.
    #[inline(always)]
    pub(super) fn place(&self, update: u64) -> (Pe, usize) {
        self.table.locate(self.word(update))
    }

    /// Makes the updates of a share of the stream; `progress` gets the number of finished ones.
    #[inline(always)]
    pub(super) fn each_update(
        &self,
        share: std::ops::Range<u64>,
        progress: &mut dyn FnMut(u64),
        mut update: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let mut sequence = Sequence::starting_at(share.start);
        let mut next = share.start;
        while next < share.end {
            let end = share.end.min(next + UPDATES_A_STEP);
            for _ in next..end {
                update(sequence.next())?;
            }
            next = end;
            progress(next - share.start);
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, updates) = (self.table.len(), self.stream.len());
        write!(f, "a table of {words} words ({}), {updates} updates", Bytes(8 * words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_same_for_any_number_of_pes() {
        let stream = |pes| {
            let problem = Problem::new(7, Some(150_001), pes);
            let mut all = Vec::new();
            for pe in 0..pes {
                let mut told = 0;
                let share = problem.stream.range(pe);
                let mut note = |update| {
                    all.push(update);
                    Ok(())
                };
                problem.each_update(share.clone(), &mut |done| told = done, &mut note).unwrap();
                assert_eq!(told, share.end - share.start, "PE {pe} of {pes}");
            }
            all
        };
        let alone = stream(1);
        assert_eq!(alone.len(), 150_001);
        for pes in [2, 3, 4, 8] {
            assert!(stream(pes) == alone, "{pes} PEs");
        }
    }

    #[test]
    fn four_updates_for_each_word_if_nothing_else_was_asked_for() {
        let problem = Problem::new(20, None, 3);
        assert_eq!((problem.table.len(), problem.stream.len()), (1 << 20, 4 << 20));
        assert_eq!(problem.to_string(), "a table of 1048576 words (8 MiB), 4194304 updates");
        assert_eq!(problem.word(u64::MAX), (1 << 20) - 1);
        assert_eq!(problem.place((7 << 20) + 349_526), (1, 0));
    }
}
