//! Runs: small pieces of a window of the file at equal distances, in the form in which processes send each
//! other lists of them.
//!
//! Invariant: the blocks of a list come in the order of the sender's data.

use crate::chapters::datatype::{Steps, gather_strided, scatter_strided};
use std::ops::Range;

/// Pieces of one length at one distance. Offsets are from the beginning of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    offset: u32,
    bytes: u32,
    stride: u32,
    count: u32,
}

/// Bytes of a number in a block.
const WORD_BYTES: usize = size_of::<u32>();
/// Bytes of a run in a block.
const RUN_BYTES: usize = 4 * WORD_BYTES;

impl Run {
    /// The bytes of its pieces.
    fn data_bytes(self) -> usize {
        self.bytes as usize * self.count as usize
    }

    /// The end of its last piece.
    pub fn end(self) -> usize {
        self.offset as usize + self.stride as usize * (self.count as usize - 1) + self.bytes as usize
    }

    fn steps(self) -> Steps {
        Steps { count: self.count as usize, stride: self.stride as isize }
    }

    /// The ranges of its pieces. Those with at most `gap` bytes between them are one.
    pub fn ranges(self, gap: usize) -> impl Iterator<Item = Range<usize>> {
        let (offset, bytes, stride, count) =
            (self.offset as usize, self.bytes as usize, self.stride as usize, self.count as usize);
        let (n, length) = match stride <= bytes + gap {
            true => (1, stride * (count - 1) + bytes),
            false => (count, bytes),
        };
        (0..n).map(move |i| offset + i * stride..offset + i * stride + length)
    }

    /// Copies its pieces out of a window, one after the other.
    pub fn gather(self, window: &[u8], into: &mut Vec<u8>) {
        let start = into.len();
        into.resize(start + self.data_bytes(), 0);
        gather_strided(window, self.offset as usize, self.steps(), self.bytes as usize, &mut into[start..]);
    }

    /// Copies its pieces from the beginning of `data` into a window, and returns the rest of the data.
    pub fn scatter<'a>(self, data: &'a [u8], window: &mut [u8]) -> &'a [u8] {
        let (mine, rest) = data.split_at(self.data_bytes());
        scatter_strided(mine, window, self.offset as usize, self.steps(), self.bytes as usize);
        rest
    }
}

/// Adds a piece to a list. Pieces at equal distances become one run.
pub fn push(runs: &mut Vec<Run>, offset: u32, bytes: u32) {
    if let Some(last) = runs.last_mut() {
        let is_next = last.count == 1 || offset == last.offset + last.stride * last.count;
        if last.count == 1 && offset == last.offset + last.bytes {
            last.bytes += bytes;
            return;
        }
        if is_next && bytes == last.bytes {
            if last.count == 1 {
                last.stride = offset - last.offset;
            }
            last.count += 1;
            return;
        }
    }
    runs.push(Run { offset, bytes, stride: 0, count: 1 });
}

/// Fills a block with a list and room for this many bytes of data behind it. It is empty if the list is
/// empty.
pub fn fill(block: &mut Vec<u8>, runs: &[Run], data_bytes: usize) {
    if runs.is_empty() {
        return block.clear();
    }
    let start = WORD_BYTES + runs.len() * RUN_BYTES;
    block.resize(start + data_bytes, 0);
    let words = runs.iter().flat_map(|run| [run.offset, run.bytes, run.stride, run.count]);
    let words = std::iter::once(runs.len() as u32).chain(words);
    for (place, word) in block[..start].as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_ne_bytes();
    }
}

/// The list of a block, and its data.
pub fn split(block: &[u8]) -> (impl Iterator<Item = Run> + Clone, &[u8]) {
    let (words, data) = match block.split_first_chunk() {
        None => (block, block),
        Some((n, rest)) => rest.split_at(u32::from_ne_bytes(*n) as usize * RUN_BYTES),
    };
    let run = |words: &[u8; RUN_BYTES]| {
        let word = |i: usize| u32::from_ne_bytes(std::array::from_fn(|byte| words[i * WORD_BYTES + byte]));
        Run { offset: word(0), bytes: word(1), stride: word(2), count: word(3) }
    };
    (words.as_chunks().0.iter().map(run), data)
}

/// The ranges of some runs, in order and apart from each other by more than `gap` bytes.
pub fn merged(runs: impl Iterator<Item = Run>, gap: usize) -> Vec<Range<usize>> {
    let mut all: Vec<_> = runs.flat_map(|run| run.ranges(gap)).collect();
    all.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in all {
        match merged.last_mut() {
            Some(last) if range.start <= last.end + gap => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs_of(pieces: &[(u32, u32)]) -> Vec<Run> {
        let mut runs = Vec::new();
        pieces.iter().for_each(|&(offset, bytes)| push(&mut runs, offset, bytes));
        runs
    }

    fn pieces_of(runs: &[Run]) -> Vec<u32> {
        let ranges = runs.iter().flat_map(|run| {
            let run = *run;
            (0..run.count).map(move |i| run.offset + i * run.stride..run.offset + i * run.stride + run.bytes)
        });
        ranges.flatten().collect()
    }

    #[test]
    fn pieces_at_equal_distances_are_one_run() {
        let runs = runs_of(&[(4, 2), (10, 2), (16, 2), (22, 2)]);
        assert_eq!(runs, [Run { offset: 4, bytes: 2, stride: 6, count: 4 }]);
        assert_eq!(runs_of(&[(4, 2), (6, 3), (9, 1)]), [Run { offset: 4, bytes: 6, stride: 0, count: 1 }]);
    }

    #[test]
    fn lists_have_the_pieces_that_were_added() {
        let mut state = 1u32;
        let mut below = |limit: u32| {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
            (state >> 8) % limit
        };
        let mut block = Vec::new();
        for _ in 0..2000 {
            let (mut next, mut pieces) = (0, Vec::new());
            for _ in 0..below(9) {
                let offset = next + below(3);
                let bytes = 1 + below(3);
                pieces.push((offset, bytes));
                next = offset + bytes;
            }
            let runs = runs_of(&pieces);
            let expected: Vec<u32> =
                pieces.iter().flat_map(|&(offset, bytes)| offset..offset + bytes).collect();
            assert_eq!(pieces_of(&runs), expected, "{pieces:?}");
            fill(&mut block, &runs, expected.len());
            let start = block.len() - expected.len();
            (0..expected.len()).for_each(|i| block[start + i] = i as u8 + 1);
            let (found, mut data) = split(&block);
            assert_eq!(found.clone().collect::<Vec<_>>(), runs);
            let (mut window, mut back) = (vec![0; next as usize], Vec::new());
            found.clone().for_each(|run| data = run.scatter(data, &mut window));
            assert!(data.is_empty());
            (0..expected.len()).for_each(|i| assert_eq!(window[expected[i] as usize], i as u8 + 1));
            found.clone().for_each(|run| run.gather(&window, &mut back));
            assert_eq!(back, block[start..]);
            let apart = merged(found.clone(), 0);
            assert!(apart.windows(2).all(|pair| pair[0].end < pair[1].start));
            assert_eq!(apart.into_iter().flatten().map(|byte| byte as u32).collect::<Vec<_>>(), expected);
            assert!(merged(found, 3).len() <= 1, "{pieces:?}");
        }
    }
}
