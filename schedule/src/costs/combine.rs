//! The costs of the algorithms that combine data, counted in schedules that are proved: the figures that
//! their files name.

use super::{TEAMS, algorithm, log2_ceil, prove, prove_plain};
use crate::check::{CheckOptions, Report, check};
use crate::schedule::Rank;
use crate::shape::{Operation, Shape};
use crate::table::algorithms;

/// Numbers of elements of 8 bytes that fit, and that do not fit, in a mailbox of the usual size.
const SMALL: usize = 3;
const LARGE: usize = 31;

fn cost(operation: Operation, name: &str, n: usize, count: usize) -> Report {
    prove(algorithm(operation, name), |rank| Shape::new(operation, rank, n, count, 8))
}

fn cost_from(root: Rank, name: &str, n: usize, count: usize) -> Report {
    let shape = |rank| Shape { root, ..Shape::new(Operation::Reduce, rank, n, count, 8) };
    prove(algorithm(Operation::Reduce, name), shape)
}

fn cost_in_place(operation: Operation, name: &str, n: usize, count: usize) -> Report {
    let shape = |rank| Shape { in_place: true, ..Shape::new(operation, rank, n, count, 8) };
    prove(algorithm(operation, name), shape)
}

#[test]
fn a_reduce_is_a_message_from_each_rank_but_the_root() {
    for n in TEAMS {
        for root in [0, n / 3, n / 2, n - 1] {
            for name in ["linear", "binomial", "fixed_tree", "hierarchical"] {
                assert_eq!(cost_from(root, name, n, SMALL).messages, n - 1, "{name}, n {n}");
                assert_eq!(cost_from(root, name, n, LARGE).messages, 2 * (n - 1), "{name}, n {n}");
            }
            assert!(cost_from(root, "linear", n, SMALL).rounds <= 1);
            assert!(cost_from(root, "binomial", n, SMALL).rounds <= log2_ceil(n));
            let fixed = cost_from(root, "fixed_tree", n, LARGE);
            assert!(fixed.rounds <= 2 * n.ilog2() as usize + 2 && fixed.in_neighbours_max <= 3);
        }
    }
}

/// Mailboxes that hold more than an operand that goes to a free target: so are messages.
#[test]
fn large_operands_fit_in_messages() {
    use Operation::{AllReduce, ExclusiveScan, InclusiveScan};
    let options = CheckOptions { mailbox_bytes: 8192, ..CheckOptions::default() };
    let all = [AllReduce, InclusiveScan, ExclusiveScan];
    for algorithm in algorithms().filter(|algorithm| all.contains(&algorithm.operation)) {
        for (n, in_place) in (1..=9).flat_map(|n| [(n, false), (n, true)]) {
            let shape = |rank| Shape { in_place, ..Shape::new(algorithm.operation, rank, n, 600, 8) };
            if (algorithm.restriction)(&shape(0)).is_none() {
                let report = check(algorithm, &shape, &options);
                assert!(report.is_ok(), "{}, n {n}, in place: {in_place}: {report:?}", algorithm.name);
            }
        }
    }
    let doubling = algorithm(ExclusiveScan, "recursive_doubling");
    let report = check(doubling, &|rank| Shape::new(ExclusiveScan, rank, 2, 600, 8), &options).unwrap();
    assert_eq!((report.messages, report.copied_bytes_max), (1, 0), "the operand goes to the target");
}

#[test]
fn an_all_reduce_by_doubling_has_the_fewest_rounds() {
    for n in TEAMS {
        let (rounds, extra) = (n.ilog2() as usize, n - (1 << n.ilog2()));
        let messages = ((n - extra) * rounds, 2 * extra);
        let small = cost(Operation::AllReduce, "recursive_doubling", n, SMALL);
        assert_eq!(small.messages, messages.0 + messages.1, "n {n}");
        assert!(small.rounds <= rounds + if extra > 0 { 2 } else { 0 }, "n {n}");
        let large = cost(Operation::AllReduce, "recursive_doubling", n, LARGE);
        // The ranks that received an operand before the first round must announce a buffer in that round.
        let first = (n - extra).saturating_sub(extra) * usize::from(n > 1);
        assert_eq!(large.messages, 2 * messages.0 + messages.1 - first, "n {n}");
        let in_place = cost_in_place(Operation::AllReduce, "recursive_doubling", n, LARGE);
        assert_eq!(in_place.messages, 2 * messages.0 + messages.1 + extra, "n {n}");
    }
}

#[test]
fn two_ranks_exchange_segments_in_one_round() {
    for (elements, segments) in [(1, 1), (1 << 14, 1), ((1 << 14) + 1, 2), (33_000, 3)] {
        let report = prove_plain(Operation::AllReduce, "recursive_doubling", (2, 0), elements);
        assert_eq!((report.messages, report.rounds), (2 * segments, 1), "{elements} elements");
        assert_eq!(report.bytes, 2 * 8 * elements);
    }
}

#[test]
fn an_all_reduce_of_large_blocks_sends_two_blocks_a_rank() {
    for n in [2, 4, 8, 32] {
        let (rounds, count) = (log2_ceil(n), 64 * n);
        let bytes = 2 * (n - 1) * count * 8 / n;
        let halving = cost(Operation::AllReduce, "rabenseifner", n, count);
        let readiness = if n > 2 { n } else { 0 };
        assert_eq!((halving.messages, halving.bytes_max), (2 * n * rounds + readiness, bytes), "n {n}");
        assert_eq!((halving.scratch_bytes_max, halving.copied_bytes_max), (0, 0), "n {n}");
        let in_place = cost_in_place(Operation::AllReduce, "rabenseifner", n, count);
        assert_eq!((in_place.messages, in_place.bytes_max), (3 * n * rounds, bytes), "n {n}");
        let ring = cost(Operation::AllReduce, "ring", n, count);
        assert_eq!((ring.messages, ring.bytes_max), (2 * n * (n - 1), bytes), "n {n}");
        assert_eq!((ring.scratch_bytes_max, ring.copied_bytes_max), (0, 0), "n {n}");
        assert_eq!(ring.rounds, 2 * (n - 1), "n {n}");
        let ring = cost_in_place(Operation::AllReduce, "ring", n, count);
        assert_eq!(ring.messages, n * (2 * n - 1), "n {n}");
    }
}

#[test]
fn halves_of_uneven_parts_find_room() {
    for n in [8, 16, 32] {
        // There are few elements in a part, so that a part with one element more does not fit in the place of
        // a part without it.
        for elements in 1..n / 2 + 2 {
            cost(Operation::AllReduce, "rabenseifner", n, n * elements + n / 2);
        }
    }
}

#[test]
fn an_all_reduce_along_a_tree_has_the_fewest_messages() {
    for n in TEAMS {
        for name in ["binomial", "fixed_tree"] {
            let small = cost(Operation::AllReduce, name, n, SMALL);
            assert_eq!((small.messages, small.scratch_bytes_max), (2 * (n - 1), 0), "{name}, n {n}");
            assert!(small.rounds <= 2 * log2_ceil(n), "{name}, n {n}");
            assert_eq!(cost(Operation::AllReduce, name, n, LARGE).messages, 3 * (n - 1), "{name}, n {n}");
        }
        assert!(cost(Operation::AllReduce, "fixed_tree", n, LARGE).in_neighbours_max <= 3, "n {n}");
    }
}

#[test]
fn between_nodes_an_all_reduce_has_the_messages_of_the_leaders() {
    let (nodes, ranks) = (8, 5);
    let shape = |rank: Rank| Shape {
        nodes: (0..nodes * ranks).map(|rank| (rank % nodes) as u32).collect(),
        ..Shape::new(Operation::AllReduce, rank, nodes * ranks, SMALL, 8)
    };
    let report = prove(algorithm(Operation::AllReduce, "hierarchical"), shape);
    assert_eq!(report.messages, nodes * 2 * (ranks - 1) + nodes * 3);
    assert!(report.rounds <= 3 + 2 * 3);
}

#[test]
fn a_linear_all_reduce_has_few_parts_in_mailboxes() {
    let messages = |n, count| cost(Operation::AllReduce, "linear", n, count).messages;
    assert_eq!(messages(8, 30), 8 * 7);
    assert_eq!(cost(Operation::AllReduce, "linear", 8, 30).rounds, 1);
    assert_eq!(messages(9, 30), 2 * 8);
    assert_eq!(messages(9, 31), 2 * 2 * 8);
    assert_eq!(messages(8, 8 * 30), 2 * 8 * 7);
    assert_eq!(messages(8, 8 * 30 + 1), 3 * 8 * 7);
}

#[test]
fn a_reduce_scatter_sends_a_block_for_each_other_rank() {
    for n in TEAMS.into_iter().filter(|&n| n < 100) {
        let linear = cost(Operation::ReduceScatter, "linear", n, SMALL);
        assert_eq!((linear.messages, linear.rounds), (n * (n - 1), usize::from(n > 1)), "n {n}");
        let ring = cost(Operation::ReduceScatter, "ring", n, SMALL);
        assert_eq!((ring.messages, ring.bytes_max), (n * (n - 1), (n - 1) * SMALL * 8), "n {n}");
    }
    for n in [2, 4, 8, 32] {
        let halving = cost(Operation::ReduceScatter, "recursive_halving", n, LARGE);
        assert_eq!(halving.messages, 2 * n * log2_ceil(n), "n {n}");
        assert_eq!((halving.bytes_max, halving.copied_bytes_max), ((n - 1) * LARGE * 8, 0), "n {n}");
    }
}

#[test]
fn a_scan_is_a_chain_or_doubles() {
    for operation in [Operation::InclusiveScan, Operation::ExclusiveScan] {
        for n in TEAMS {
            let linear = cost(operation, "linear", n, LARGE);
            assert_eq!((linear.messages, linear.rounds), (n - 1, n - 1), "{operation}, n {n}");
            let doubling = cost(operation, "recursive_doubling", n, SMALL);
            let rounds = log2_ceil(n);
            let messages: usize = (0..rounds).map(|round| n - (1 << round)).sum();
            assert_eq!(doubling.messages, messages, "{operation}, n {n}");
            assert!(doubling.rounds <= rounds, "{operation}, n {n}");
            let large = cost(operation, "recursive_doubling", n, LARGE).messages;
            assert_eq!(large, 2 * messages - (n - 1), "{operation}, n {n}");
        }
        let pieces = |rank| {
            let mut shape = Shape::new(operation, rank, 5, 64, 8);
            shape.tuning.segment_bytes = 64;
            shape
        };
        let report = prove(algorithm(operation, "linear"), pieces);
        assert_eq!(report.messages, 8 * 4);
    }
}
