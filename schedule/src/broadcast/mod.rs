//! Algorithms of broadcast: the root's block goes straight into the targets of the others.
//!
//! Invariant: nobody writes the root's target but the root itself, so that source and target may be one.

mod binomial;
mod chain;
mod doubling;
mod fixed_tree;
mod hierarchical;
mod k_nomial;
mod linear;
#[cfg(test)]
pub(in crate::coll) mod prove;
mod scatter_all_gather;
pub(in crate::coll) mod tree;

use super::schedule::{Builder, Place, Remote, Slot};
use super::shape::{Operation, Shape};
use super::table::{Algorithm, Fold, Graph, unrestricted};
use tree::Links;

pub(super) const TABLE: &[Algorithm] = &[
    Algorithm {
        operation: Operation::Broadcast,
        name: "linear",
        summary: "the root puts to each rank",
        source: "Pjesivac-Grbovic et al. 2007",
        fold: Fold::None,
        graph: Graph::Other,
        restriction: unrestricted,
        build: linear::build,
    },
    Algorithm {
        operation: Operation::Broadcast,
        name: "binomial",
        summary: "over a binomial tree that hangs at the root",
        source: "Chan, Heimlich, Purkayastha, van de Geijn 2007",
        fold: Fold::None,
        graph: Graph::TreeStructure,
        restriction: unrestricted,
        build: binomial::build,
    },
    Algorithm {
        operation: Operation::Broadcast,
        name: "k_nomial",
        summary: "over a k-nomial tree that hangs at the root",
        source: "Wilkins et al. 2023",
        fold: Fold::None,
        graph: Graph::TreeStructure,
        restriction: unrestricted,
        build: k_nomial::build,
    },
    Algorithm {
        operation: Operation::Broadcast,
        name: "scatter_all_gather",
        summary: "binomial scatter of n parts, then a ring of them",
        source: "Barnett, Shuler, van de Geijn, Gupta, Payne, Watts 1994",
        fold: Fold::None,
        graph: Graph::Other,
        restriction: unrestricted,
        build: scatter_all_gather::build,
    },
    Algorithm {
        operation: Operation::Broadcast,
        name: "chain",
        summary: "pieces in a pipeline from rank to rank",
        source: "Watts, van de Geijn 1995",
        fold: Fold::None,
        graph: Graph::Other,
        restriction: unrestricted,
        build: chain::build,
    },
    Algorithm {
        operation: Operation::Broadcast,
        name: "doubling",
        summary: "over the hypercube, the same edges for all roots",
        source: "Johnsson, Ho 1989",
        fold: Fold::None,
        graph: Graph::Doubling,
        restriction: unrestricted,
        build: doubling::build,
    },
    Algorithm {
        operation: Operation::Broadcast,
        name: "fixed_tree",
        summary: "over the fixed binary tree, the same edges for all roots",
        source: "Welch, Venkata: On Synchronisation and Memory Reuse in OpenSHMEM",
        fold: Fold::None,
        graph: Graph::TreeEdges,
        restriction: unrestricted,
        build: fixed_tree::build,
    },
    Algorithm {
        operation: Operation::Broadcast,
        name: "hierarchical",
        summary: "over a binomial tree of nodes, then inside nodes",
        source: "Kielmann, Hofman, Bal, Plaat, Bhoedjang 1999",
        fold: Fold::None,
        graph: Graph::Other,
        restriction: unrestricted,
        build: hierarchical::build,
    },
];

/// The slot that tells that the block is there, where one is enough.
const DATA: Slot = 0;

/// Where a rank sends the block from.
fn origin(shape: &Shape) -> Place {
    match shape.rank == shape.root {
        true => Place::source(0),
        false => Place::target(0),
    }
}

/// The root's own copy, which it makes when the others have theirs under way.
fn keep(shape: &Shape, b: &mut Builder) {
    if shape.rank == shape.root && !shape.in_place {
        b.copy(Place::source(0), Place::target(0), shape.block_bytes());
    }
}

/// The whole block down a tree, from this rank's parent to its children.
fn down(shape: &Shape, b: &mut Builder, links: &Links) {
    if let Some(parent) = links.parent {
        b.wait(parent, DATA);
    }
    for &child in &links.children {
        b.put_signal(child, origin(shape), Remote::Target(0), shape.block_bytes(), DATA);
    }
    keep(shape, b);
}

#[cfg(test)]
mod tests {
    use super::super::schedule::{Rank, Step};
    use super::prove::{TEAMS, algorithm, log2_ceil, prove, prove_plain};
    use super::*;
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
                tuning: super::super::shape::Tuning { radix: 3, segment_bytes: 8 },
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
                    tuning: super::super::shape::Tuning { radix: 2, segment_bytes: 16 },
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
                let is_edge =
                    |&(a, b): &(Rank, Rank)| (a ^ b).is_power_of_two() && (b < cube || a ^ b == cube);
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
}
