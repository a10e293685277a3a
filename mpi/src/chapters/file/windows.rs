//! The windows of a buffered access: whether an access is buffered, the range that all processes access, and
//! which aggregator accesses which part of it.
//!
//! Invariant: all processes compute the same from the words that all have told.

use super::pieces::Piece;
use std::ops::Range;

/// Windows begin at multiples of it, and have multiples of it.
const PAGE_BYTES: i64 = 4096;
/// A window is not made smaller than this so that all aggregators have one.
const LEAST_WINDOW_BYTES: i64 = 64 << 10;
/// Pieces of fewer bytes, on average, are worth buffering: to send them costs less than calls of the system.
const WRITTEN_BYTES: usize = 2 << 10;
/// The same for reads, if they also lie this far apart: those that are nearer are read with what lies between
/// them, by each process.
const READ_BYTES: usize = 512;
const READ_APART_BYTES: usize = 1 << 10;
/// If the common range has more than this many times the bytes of all data, windows are too empty.
const SPARSE: i64 = 16;

/// The part of a process in an access, as it tells the others.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The first byte, and the end; the same if it has none.
    pub range: [u64; 2],
    pub bytes: u64,
    /// Whether its pieces are worth buffering.
    pub is_worth: bool,
    /// The size of the file.
    pub size: u64,
    pub hints: Buffering,
}

/// Collective buffering as the hints ask for it.
#[derive(Clone, Copy, Debug)]
pub struct Buffering {
    pub use_of: Use,
    pub aggregators: u64,
    pub window_bytes: u64,
}

/// When accesses are buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Never,
    /// If it is worth it.
    Automatic,
    Always,
}

/// The number of words of a part.
const WORDS: usize = 8;

impl Part {
    pub fn words(self) -> [u64; WORDS] {
        let Part { range: [start, end], bytes, is_worth, size, hints } = self;
        let Buffering { use_of, aggregators, window_bytes } = hints;
        [start, end, bytes, is_worth.into(), size, use_of as u64, aggregators, window_bytes]
    }

    pub fn of([start, end, bytes, is_worth, size, use_of, aggregators, window_bytes]: [u64; WORDS]) -> Part {
        let use_of = match use_of {
            0 => Use::Never,
            1 => Use::Automatic,
            _ => Use::Always,
        };
        let hints = Buffering { use_of, aggregators, window_bytes };
        Part { range: [start, end], bytes, is_worth: is_worth != 0, size, hints }
    }
}

/// The windows of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    start: i64,
    end: i64,
    /// Bytes of a window.
    bytes: i64,
    pub aggregators: usize,
    pub n: usize,
}

impl Windows {
    /// The windows for these parts, by rank; `None` if each process had better access the file itself. Hints
    /// are those of rank 0. The file has the largest size that a process has seen, as its own writes may be
    /// the last.
    pub fn of(parts: &[Part], is_write: bool) -> Option<Windows> {
        let (n, first) = (parts.len(), parts[0]);
        let with_data = || parts.iter().filter(|part| part.bytes > 0);
        let start = with_data().map(|part| part.range[0] as i64).min()?;
        let end = with_data().map(|part| part.range[1] as i64).max()?;
        let data_bytes = with_data().map(|part| part.bytes as i64).fold(0, i64::saturating_add);
        let is_sparse = (end - start) / SPARSE > data_bytes;
        let is_worth = match first.hints.use_of {
            Use::Never => false,
            Use::Automatic => parts.iter().any(|part| part.is_worth),
            Use::Always => true,
        };
        if n == 1 || !is_worth || is_sparse {
            return None;
        }
        let size = parts.iter().map(|part| part.size as i64).max()?;
        let end = if is_write { end } else { end.min(size) };
        let start = start / PAGE_BYTES * PAGE_BYTES;
        let aggregators = (first.hints.aggregators as usize).clamp(1, n);
        let share = (end - start).max(0) / aggregators as i64 + 1;
        let most = first.hints.window_bytes as i64;
        let bytes = share.clamp(LEAST_WINDOW_BYTES.min(most), most) as u64;
        let bytes = bytes.next_multiple_of(PAGE_BYTES as u64) as i64;
        Some(Windows { start, end, bytes, aggregators, n })
    }

    pub fn rounds(&self) -> i64 {
        let bytes = (self.end - self.start).max(0);
        bytes / self.round_bytes() + i64::from(bytes % self.round_bytes() != 0)
    }

    fn round_bytes(&self) -> i64 {
        self.bytes.saturating_mul(self.aggregators as i64)
    }

    /// The window of an aggregator in a round. It may be empty, at the end.
    pub fn window(&self, round: i64, aggregator: usize) -> Range<i64> {
        let start = self.start + round * self.round_bytes();
        let start = start.saturating_add(self.bytes * aggregator as i64).min(self.end);
        start..start.saturating_add(self.bytes).min(self.end)
    }

    /// The rank of an aggregator. They are spread over all ranks, and so over the nodes.
    pub fn rank(&self, aggregator: usize) -> usize {
        aggregator * self.n / self.aggregators
    }

    /// The aggregator that this rank is.
    pub fn aggregator(&self, rank: usize) -> Option<usize> {
        (0..self.aggregators).find(|&aggregator| self.rank(aggregator) == rank)
    }
}

/// Whether an access that begins with these pieces is worth buffering.
pub fn is_worth(pieces: &[Piece], is_write: bool) -> bool {
    let [(first, _), .., (last, bytes_of_last)] = pieces else { return false };
    let (n, bytes) = (pieces.len(), pieces.iter().map(|piece| piece.1).sum::<usize>());
    let between = (last - first) as usize + bytes_of_last - bytes;
    match is_write {
        true => bytes / n < WRITTEN_BYTES,
        false => bytes / n < READ_BYTES && between / (n - 1) >= READ_APART_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Part =
        Part { range: [0, 1 << 20], bytes: 1 << 19, is_worth: true, size: 1 << 20, hints: HINTS };
    const HINTS: Buffering = Buffering { use_of: Use::Automatic, aggregators: 3, window_bytes: 128 << 10 };

    #[test]
    fn windows_cover_what_all_access() {
        let hints = Buffering { use_of: Use::Never, aggregators: 0, window_bytes: 0 };
        let other = Part { range: [5000, 3 << 20], hints, ..PART };
        for (is_write, end) in [(true, 3 << 20), (false, 1 << 20)] {
            let windows = Windows::of(&[PART, other, other, other], is_write).unwrap();
            assert_eq!((windows.start, windows.end, windows.aggregators), (0, end, 3));
            let mut next = 0;
            for round in 0..windows.rounds() {
                for aggregator in 0..3 {
                    let window = windows.window(round, aggregator);
                    assert_eq!(window.start, next.min(end));
                    assert!(window.end - window.start <= 128 << 10);
                    next = window.end;
                }
            }
            assert_eq!(next, end);
            assert!(windows.window(windows.rounds(), 0).is_empty());
            assert_eq!([0, 1, 2].map(|i| windows.rank(i)), [0, 1, 2]);
            assert_eq!([0, 1, 2, 3].map(|rank| windows.aggregator(rank)), [Some(0), Some(1), Some(2), None]);
        }
    }

    #[test]
    fn a_small_access_is_shared_by_the_aggregators() {
        let windows = Windows::of(&[PART, PART], true).unwrap();
        assert_eq!((windows.aggregators, windows.bytes, windows.rounds()), (2, 128 << 10, 4));
        let small = Part { range: [8192, 8200], bytes: 8, ..PART };
        let windows = Windows::of(&[small, small], true).unwrap();
        assert_eq!((windows.start, windows.bytes, windows.rounds()), (8192, LEAST_WINDOW_BYTES, 1));
    }

    #[test]
    fn small_pieces_are_worth_buffering() {
        let pieces = |n: usize, bytes: usize, distance: i64| -> Vec<Piece> {
            (0..n as i64).map(|i| (i * distance, bytes)).collect()
        };
        for (n, bytes, distance, written, read) in [
            (1, 8, 16, false, false),
            (64, 8, 16, true, false),
            (64, 8, 4096, true, true),
            (64, 1000, 1001, true, false),
            (64, 1000, 100_000, true, false),
            (64, 4000, 8000, false, false),
        ] {
            let pieces = pieces(n, bytes, distance);
            assert_eq!([true, false].map(|is_write| is_worth(&pieces, is_write)), [written, read], "{bytes}");
        }
    }

    #[test]
    fn accesses_that_are_not_buffered() {
        let none = Part { range: [0; 2], bytes: 0, ..PART };
        assert_eq!(Windows::of(&[PART], true), None, "one process");
        assert_eq!(Windows::of(&[none, none], true), None, "no data");
        let hinted = |use_of| Part { hints: Buffering { use_of, ..HINTS }, is_worth: false, ..PART };
        assert_eq!(Windows::of(&[hinted(Use::Never), PART], true), None, "by a hint");
        assert_eq!(Windows::of(&[hinted(Use::Automatic); 2], true), None, "large pieces");
        assert!(Windows::of(&[hinted(Use::Always); 2], true).is_some());
        let far = Part { range: [1 << 40, (1 << 40) + 8], ..PART };
        assert_eq!(Windows::of(&[PART, far], true), None, "pieces far from each other");
        assert!(Windows::of(&[none, PART], true).is_some());
        let empty = Part { size: 0, ..PART };
        let behind = Windows::of(&[empty, empty], false).unwrap();
        assert_eq!(behind.rounds(), 0, "a read behind the end of the file");
        assert!(Windows::of(&[empty, PART], false).unwrap().rounds() > 0, "rank 1 has written before");
    }
}
