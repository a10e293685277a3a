//! Algorithms of barrier: each lets no rank leave before all have come, by signals alone.

mod dissemination;
mod fixed_tree;
mod hierarchical;
mod tree;

use super::shape::Operation;
use super::table::{Algorithm, Fold, Graph, unrestricted};

pub(super) const TABLE: &[Algorithm] = &[
    Algorithm {
        operation: Operation::Barrier,
        name: "dissemination",
        summary: "in round k each rank signals the rank 2^k further on",
        source: "Hensgen, Finkel, Manber 1988",
        fold: Fold::None,
        graph: Graph::Doubling,
        restriction: unrestricted,
        build: dissemination::build,
    },
    Algorithm {
        operation: Operation::Barrier,
        name: "tree",
        summary: "arrival up a binomial tree to rank 0, release down",
        source: "Mellor-Crummey, Scott 1991",
        fold: Fold::None,
        graph: Graph::TreeStructure,
        restriction: unrestricted,
        build: tree::build,
    },
    Algorithm {
        operation: Operation::Barrier,
        name: "fixed_tree",
        summary: "arrival up the fixed binary tree to rank 0, release down",
        source: "Welch, Venkata: On Synchronisation and Memory Reuse in OpenSHMEM",
        fold: Fold::None,
        graph: Graph::TreeEdges,
        restriction: unrestricted,
        build: fixed_tree::build,
    },
    Algorithm {
        operation: Operation::Barrier,
        name: "hierarchical",
        summary: "to the leader of the node, dissemination among leaders, release in the node",
        source: "Kielmann, Hofman, Bal, Plaat, Bhoedjang 1999",
        fold: Fold::None,
        graph: Graph::Other,
        restriction: unrestricted,
        build: hierarchical::build,
    },
];

#[cfg(test)]
mod tests {
    use super::super::broadcast::prove::{TEAMS, algorithm, log2_ceil, prove, prove_plain};
    use super::super::check::Report;
    use super::super::shape::Shape;
    use super::*;

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
}
