//! The costs of the algorithms of barrier.

use super::{TEAMS, algorithm, log2_ceil, prove, prove_plain};
use crate::check::Report;
use crate::shape::{Operation, Shape};

#[test]
fn costs_are_as_described() {
    for n in TEAMS {
        let cost = |name| {
            let Report { messages, rounds, .. } = prove_plain(Operation::Barrier, name, (n, 0), 0);
            (messages, rounds)
        };
        let log = log2_ceil(n);
        assert_eq!(cost("dissemination"), (n * log, log), "n {n}");
        let (messages, rounds) = cost("tree");
        assert!(messages == 2 * (n - 1) && rounds <= 2 * log, "n {n}: {messages} in {rounds} rounds");
        assert_eq!(cost("fixed_tree"), (2 * (n - 1), 2 * n.ilog2() as usize), "n {n}");
        assert_eq!(cost("hierarchical"), (2 * (n - 1), if n > 1 { 2 } else { 0 }), "n {n}");
    }
}

#[test]
fn only_leaders_signal_between_nodes() {
    for (n, size) in [(12_usize, 3), (13, 3), (40, 8), (9, 1)] {
        let nodes: Vec<u32> = (0..n).map(|rank| (rank / size) as u32).collect();
        let leaders = n.div_ceil(size);
        let report = prove(algorithm(Operation::Barrier, "hierarchical"), |rank| Shape {
            nodes: nodes.clone().into(),
            ..Shape::new(Operation::Barrier, rank, n, 0, 8)
        });
        assert_eq!(report.messages, leaders * log2_ceil(leaders) + 2 * (n - leaders), "{n} by {size}");
    }
}
