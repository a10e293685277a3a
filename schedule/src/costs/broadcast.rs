//! The costs of the algorithms of broadcast, and the ranks that communicate with each other.

use super::{TEAMS, algorithm, log2_ceil, prove, prove_plain};
use crate::broadcast::TABLE;
use crate::schedule::{Rank, Step};
use crate::shape::{Operation, Shape, Tuning};
use std::collections::BTreeSet;

fn roots(n: usize) -> BTreeSet<Rank> {
    [0, 1, n / 3, n / 2, n - 1].into_iter().filter(|&root| root < n).collect()
}

#[test]
fn trees_send_the_block_once_to_each_rank() {
    let names = ["linear", "binomial", "k_nomial", "doubling", "fixed_tree", "hierarchical", "chain"];
    for (n, name) in TEAMS.into_iter().flat_map(|n| names.map(|name| (n, name))) {
        for root in roots(n) {
            let report = prove_plain(Operation::Broadcast, name, (n, root), 3);
            assert_eq!((report.messages, report.bytes), (n - 1, (n - 1) * 24), "{name}, n {n}");
            let rounds = match name {
                "linear" => 1,
                "binomial" | "hierarchical" => log2_ceil(n),
                "k_nomial" => n.ilog(4) as usize + 1,
                "doubling" => n.ilog2() as usize + 2,
                "fixed_tree" => 2 * n.ilog2() as usize,
                _ => n - 1,
            };
            assert!(report.rounds <= rounds, "{name}, n {n}: {} rounds", report.rounds);
        }
    }
}

#[test]
fn in_place_the_root_copies_nothing() {
    for (algorithm, n) in TABLE.iter().flat_map(|algorithm| [1, 5, 16].map(|n| (algorithm, n))) {
        let report = prove(algorithm, |rank| Shape {
            root: n / 2,
            in_place: true,
            tuning: Tuning { radix: 3, segment_bytes: 8 },
            ..Shape::new(Operation::Broadcast, rank, n, 7, 8)
        });
        assert_eq!(report.copied_bytes_max, 0, "{}", algorithm.name);
    }
}

#[test]
fn large_blocks_go_in_parts() {
    for n in [2, 3, 8, 13] {
        for root in roots(n) {
            let report = prove_plain(Operation::Broadcast, "scatter_all_gather", (n, root), n + 3);
            assert_eq!(report.bytes, (n - 1) * (n + 3) * 8, "each rank is sent the block once, n {n}");
            let piped = prove(algorithm(Operation::Broadcast, "chain"), |rank| Shape {
                root,
                tuning: Tuning { radix: 2, segment_bytes: 16 },
                ..Shape::new(Operation::Broadcast, rank, n, 40, 8)
            });
            assert_eq!(
                (piped.messages, piped.rounds),
                ((n - 1) * 20, n - 1),
                "a piece waits for no other, n {n}"
            );
        }
    }
}

/// So a broadcast that leaves the root's target as it is takes the same schedules.
#[test]
fn nobody_sends_to_the_root() {
    let teams = || TEAMS.into_iter().filter(|&n| n < 50);
    for (algorithm, n) in TABLE.iter().flat_map(|algorithm| teams().map(move |n| (algorithm, n))) {
        for root in roots(n) {
            for rank in 0..n {
                let nodes: Vec<u32> = (0..n).map(|rank| rank as u32 / 3).collect();
                let shape =
                    Shape { root, nodes: nodes.into(), ..Shape::new(Operation::Broadcast, rank, n, 40, 8) };
                let steps = algorithm.schedule(&shape, 240).steps;
                let sends = |step: &Step| matches!(*step, Step::Put { to, .. } if to == root);
                assert!(!steps.iter().any(sends), "{}, n {n}, root {root}, rank {rank}", algorithm.name);
            }
        }
    }
}

#[test]
fn fixed_edges_do_not_depend_on_the_root() {
    let edges = |name, n, root| -> BTreeSet<(Rank, Rank)> {
        let ends = |rank: Rank| {
            let shape = Shape { root, ..Shape::new(Operation::Broadcast, rank, n, 1, 8) };
            let schedule = algorithm(Operation::Broadcast, name).schedule(&shape, 240);
            let to = |step: &Step| match *step {
                Step::Put { to, .. } => Some((rank.min(to), rank.max(to))),
                _ => None,
            };
            schedule.steps.iter().filter_map(to).collect::<Vec<_>>()
        };
        (0..n).flat_map(ends).collect()
    };
    for n in TEAMS {
        let cube = 1 << n.ilog2();
        for root in roots(n) {
            assert_eq!(edges("fixed_tree", n, root), edges("fixed_tree", n, 0), "n {n}, root {root}");
            let doubling = edges("doubling", n, root);
            let is_edge = |&(a, b): &(Rank, Rank)| (a ^ b).is_power_of_two() && (b < cube || a ^ b == cube);
            assert!(doubling.iter().all(is_edge), "n {n}, root {root}: {doubling:?}");
        }
    }
}

#[test]
fn between_nodes_the_block_goes_once_to_each() {
    for (n, kinds) in [(13, 4), (24, 3), (5, 5)] {
        let nodes: Vec<u32> = (0..n).map(|rank| (rank * rank % kinds) as u32).collect();
        let count = nodes.iter().collect::<BTreeSet<_>>().len();
        for root in roots(n) {
            let shape = |rank| Shape {
                root,
                nodes: nodes.clone().into(),
                ..Shape::new(Operation::Broadcast, rank, n, 3, 8)
            };
            let hierarchical = algorithm(Operation::Broadcast, "hierarchical");
            prove(hierarchical, shape);
            let crossing = |rank: Rank| {
                let steps = hierarchical.schedule(&shape(rank), 240).steps;
                let crosses =
                    |step: &&Step| matches!(step, Step::Put { to, .. } if nodes[*to] != nodes[rank]);
                steps.iter().filter(crosses).count()
            };
            assert_eq!((0..n).map(crossing).sum::<usize>(), count - 1, "n {n}, root {root}");
        }
    }
}
