//! The costs of the algorithms of all-gather, also for blocks of different sizes.

use super::{TEAMS, algorithm, log2_ceil, prove, prove_plain};
use crate::all_gather::TABLE;
use crate::schedule::Step;
use crate::shape::{Blocks, Operation, Shape};

fn takes(name: &str, n: usize) -> bool {
    let shape = Shape::new(Operation::AllGather, 0, n, 1, 8);
    (algorithm(Operation::AllGather, name).restriction)(&shape).is_none()
}

#[test]
fn costs_are_as_described() {
    for (n, name) in TEAMS.into_iter().flat_map(|n| TABLE.iter().map(move |row| (n, row.name))) {
        if !takes(name, n) {
            continue;
        }
        let report = prove_plain(Operation::AllGather, name, (n, 0), 2);
        let (least, most, rounds) = match name {
            "linear" | "lanes" => (n * (n - 1), n * (n - 1), n.min(2) - 1),
            "ring" => (n * (n - 1), n * (n - 1), n - 1),
            "bruck" => (n * log2_ceil(n), n * log2_ceil(n) + 2 * n, log2_ceil(n)),
            "recursive_doubling" => (n * log2_ceil(n), n * log2_ceil(n), log2_ceil(n)),
            "neighbour_exchange" => (n * (n / 2), n * (n / 2), n / 2),
            _ => (4 * (n - 1), 4 * (n - 1), if n > 1 { 4 } else { 0 }),
        };
        let messages = report.messages;
        assert!((least..=most).contains(&messages), "{name}, n {n}: {messages} messages");
        assert_eq!(report.rounds, rounds, "{name}, n {n}");
        if name != "hierarchical" {
            assert_eq!(report.bytes, n * (n - 1) * 16, "{name}, n {n}: no block comes twice");
            assert_eq!((report.copied_bytes_max, report.scratch_bytes_max), (16, 0), "{name}, n {n}");
        }
    }
}

#[test]
fn blocks_of_different_sizes_some_without_elements() {
    for (n, row) in [1, 2, 3, 5, 8, 12, 31].into_iter().flat_map(|n| TABLE.iter().map(move |row| (n, row))) {
        let sizes: [fn(usize) -> usize; 4] =
            [|rank| rank * 7 % 4, |_| 0, |rank| rank, |rank| (rank == 0).into()];
        for size in sizes {
            let shape = |rank| Shape {
                blocks: Blocks::Counts((0..n).map(size).collect()),
                nodes: (0..n).map(|rank| (rank / 2 % 3) as u32).collect(),
                ..Shape::new(Operation::AllGather, rank, n, 0, 8)
            };
            if (row.restriction)(&shape(0)).is_none() {
                prove(row, shape);
            }
        }
    }
}

#[test]
fn in_lanes_each_block_crosses_to_a_node_once() {
    let lanes = algorithm(Operation::AllGather, "lanes");
    for (nodes, mates) in [(1, 4), (2, 1), (2, 2), (3, 2), (4, 3), (8, 8)] {
        let n = nodes * mates;
        for node in [|rank, _, mates| (rank / mates) as u32, |rank, nodes, _| (rank % nodes) as u32] {
            let shape = |rank| Shape {
                nodes: (0..n).map(|rank| node(rank, nodes, mates)).collect(),
                ..Shape::new(Operation::AllGather, rank, n, 3, 8)
            };
            let report = prove(lanes, shape);
            assert_eq!((report.messages, report.bytes), (n * (n - 1), n * (n - 1) * 24));
            assert_eq!(report.rounds, nodes - 1 + usize::from(mates > 1), "{nodes} nodes of {mates}");
            let steps = (0..n).flat_map(|rank| {
                lanes.schedule(&shape(rank), 240).steps.into_iter().map(move |step| (rank, step))
            });
            let node = |rank| node(rank, nodes, mates);
            let crosses = |(from, step): &(usize, Step)| match step {
                Step::Put { to, .. } => node(*to) != node(*from),
                _ => false,
            };
            assert_eq!(steps.filter(crosses).count(), n * (nodes - 1), "{nodes} nodes of {mates}");
        }
    }
    let uneven = Shape { nodes: vec![0, 0, 1].into(), ..Shape::new(Operation::AllGather, 0, 3, 1, 8) };
    assert!((lanes.restriction)(&uneven).is_some());
}

#[test]
fn nodes_pass_each_others_blocks_on_in_whole_ranges() {
    let cost = |n: usize, node: fn(usize) -> u32| {
        let report = prove(algorithm(Operation::AllGather, "hierarchical"), |rank| Shape {
            nodes: (0..n).map(node).collect(),
            ..Shape::new(Operation::AllGather, rank, n, 3, 8)
        });
        report.messages
    };
    assert_eq!(cost(24, |rank| (rank / 6) as u32), 4 * 3 + 4 * 20, "four nodes one after the other");
    assert_eq!(cost(24, |rank| (rank % 4) as u32), 24 * 3 + 4 * 20, "rank by rank");
    assert_eq!(cost(13, |rank| rank.min(3) as u32), 4 * 3 + 4 * 9, "three nodes of one rank, one of ten");
}
