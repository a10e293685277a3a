//! The PEs of a process, as messages about its failures and tags of its output name them.

use std::fmt::{Display, Formatter, Result};
use std::ops::{Range, RangeInclusive};

/// Consecutive PEs: one PE, or all PEs of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pes(Range<usize>);

impl Pes {
    /// The PEs of a process, if every process has `each` of them.
    pub(super) fn of_process(process: usize, each: usize) -> Self {
        Self(process * each..(process + 1) * each)
    }

    /// The PE that a process has named as its own, if it is one of these.
    pub(super) fn one(&self, pe: usize) -> Option<Self> {
        self.0.contains(&pe).then(|| Self(pe..pe + 1))
    }

    pub(super) fn first(&self) -> usize {
        self.0.start
    }

    pub(super) fn all(self) -> Range<usize> {
        self.0
    }

    /// The numbers alone: `3`, or `4-7`.
    pub(super) fn numbers(&self) -> String {
        ranges(&self.0.clone().collect::<Vec<_>>())
    }

    /// The form of a verb that fits their number.
    pub(super) fn verb(&self, one: &'static str, several: &'static str) -> &'static str {
        if self.0.len() == 1 { one } else { several }
    }
}

impl Display for Pes {
    /// `PE 3`, or `PEs 4-7`.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} {}", self.verb("PE", "PEs"), self.numbers())
    }
}

/// Ascending numbers as text: `0-2, 5`.
pub(super) fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// The ranges in such a text; words that are no numbers are passed over.
pub(super) fn numbers_of(text: &str) -> impl Iterator<Item = RangeInclusive<usize>> {
    text.split(',').filter_map(|run| {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_are_named_by_their_numbers() {
        assert_eq!(Pes::of_process(3, 1).to_string(), "PE 3");
        assert_eq!(Pes::of_process(1, 4).to_string(), "PEs 4-7");
        assert_eq!(ranges(&[0, 1, 2, 5]), "0-2, 5");
        assert_eq!(numbers_of("0-2, 5 ").collect::<Vec<_>>(), [0..=2, 5..=5]);
    }

    #[test]
    fn a_process_names_its_own_pes_only() {
        let pes = Pes::of_process(1, 2);
        assert_eq!(pes.one(3).map(|pe| pe.to_string()), Some("PE 3".to_owned()));
        assert_eq!((pes.one(1), pes.one(4), pes.one(usize::MAX)), (None, None, None));
    }
}
