//! The costs of the algorithms of all-to-all, for all layouts of blocks.

use super::{TEAMS, algorithm, log2_ceil, prove, prove_plain};
use crate::schedule::Rank;
use crate::shape::{Blocks, Operation, Shape};

const ANY_LAYOUT: [&str; 2] = ["pairwise", "linear"];

#[test]
fn costs_of_equal_blocks() {
    for n in TEAMS.into_iter().filter(|&n| n < 100) {
        for name in ANY_LAYOUT {
            let report = prove_plain(Operation::AllToAll, name, (n, 0), 3);
            let most = if name == "linear" { n.min(2) - 1 } else { n - 1 };
            assert_eq!((report.messages, report.bytes), (n * (n - 1), n * (n - 1) * 24), "{name}, n {n}");
            assert_eq!((report.rounds, report.scratch_bytes_max), (most, 0), "{name}, n {n}");
        }
        let small = prove_plain(Operation::AllToAll, "bruck", (n, 0), 1);
        assert_eq!((small.messages, small.rounds), (n * log2_ceil(n), log2_ceil(n)), "bruck, n {n}");
        let large = prove_plain(Operation::AllToAll, "bruck", (n, 0), 40);
        assert_eq!(large.messages, 2 * n * log2_ceil(n), "bruck, n {n}");
        let steps: u32 = (0..n).map(usize::count_ones).sum();
        assert_eq!(large.bytes, n * steps as usize * 320, "bruck, n {n}: a block goes its bits' steps");
    }
}

#[test]
fn strided_blocks_of_one_message_or_two() {
    for (n, name) in [1, 2, 5, 8].into_iter().flat_map(|n| ANY_LAYOUT.map(|name| (n, name))) {
        let messages = |count, source, target| {
            let shape = |rank| Shape {
                blocks: Blocks::Strided { source, target },
                ..Shape::new(Operation::AllToAll, rank, n, count, 8)
            };
            prove(algorithm(Operation::AllToAll, name), shape).messages / n
        };
        for count in [0, 1, 3, 31] {
            assert_eq!(messages(count, 1, 1), n - 1, "{name}, n {n}");
            assert_eq!(messages(count, 2, 1), n - 1, "{name}, n {n}: packed, straight to the target");
            for source in [1, 2] {
                let each = if count * 8 > 240 { 2 } else { 1 };
                assert_eq!(messages(count, source, 3), each * (n - 1), "{name}, n {n}: {count} to spread");
            }
        }
    }
}

/// Blocks of `length(from, to)` elements with gaps between them, in the target in falling order.
fn exchanged(rank: Rank, n: usize, length: fn(Rank, Rank) -> usize) -> Shape {
    let mut end = 1;
    let mut place = |elements| {
        end += elements + 1;
        (end - elements - 1, elements)
    };
    let source = (0..n).map(|to| place(length(rank, to))).collect();
    let mut target: Vec<_> = (0..n).rev().map(|of| place(length(of, rank))).collect();
    target.reverse();
    Shape { blocks: Blocks::Exchanged { source, target }, ..Shape::new(Operation::AllToAll, rank, n, 0, 8) }
}

#[test]
fn exchanged_blocks_of_no_message_one_or_two() {
    for (n, name) in [1, 2, 3, 8, 13].into_iter().flat_map(|n| ANY_LAYOUT.map(|name| (n, name))) {
        let messages = |length| {
            let any = algorithm(Operation::AllToAll, name);
            prove(any, |rank| exchanged(rank, n, length)).messages
        };
        assert_eq!(messages(|_, _| 0), 0, "{name}, n {n}: nothing");
        assert_eq!(messages(|_, _| 30), n * (n - 1), "{name}, n {n}: mailboxes");
        assert_eq!(messages(|_, _| 31), 2 * n * (n - 1), "{name}, n {n}: announcements");
        let next = messages(|from, to| if to == from + 1 { 100 } else { 0 });
        assert_eq!(next, 2 * (n - 1), "{name}, n {n}: neighbours only");
        messages(|from, to| (from * 5 + to * 3) % 4 * 11);
    }
}
