//! Algorithms of reduce: everybody's blocks, combined, to the root.

mod binomial;
mod fixed_tree;
mod hierarchical;
mod linear;

use super::combine;
use super::schedule::{Builder, Place};
use super::shape::{Operation, Shape};
use super::table::{Algorithm, Fold, Graph, unrestricted};

pub(super) const TABLE: &[Algorithm] = &[
    Algorithm {
        operation: Operation::Reduce,
        name: "linear",
        summary: "the root takes all contributions, in the order of ranks",
        source: "",
        fold: Fold::Ranks,
        graph: Graph::Other,
        restriction: unrestricted,
        build: linear::build,
    },
    Algorithm {
        operation: Operation::Reduce,
        name: "binomial",
        summary: "a binomial tree at the root, whose subtrees are ranges of ranks",
        source: "Thakur, Rabenseifner, Gropp 2005",
        fold: Fold::Tree,
        graph: Graph::TreeStructure,
        restriction: unrestricted,
        build: binomial::build,
    },
    Algorithm {
        operation: Operation::Reduce,
        name: "fixed_tree",
        summary: "one binary tree for all roots, up and down its edges towards the root",
        source: "Welch, Venkata 2014",
        fold: Fold::Any,
        graph: Graph::TreeEdges,
        restriction: unrestricted,
        build: fixed_tree::build,
    },
    Algorithm {
        operation: Operation::Reduce,
        name: "hierarchical",
        summary: "binomial trees inside the nodes, then one between their leaders",
        source: "Kielmann et al. 1999",
        fold: Fold::Any,
        graph: Graph::Other,
        restriction: unrestricted,
        build: hierarchical::build,
    },
];

/// Where a rank has its sum: the root in its target, another one, which has none, in scratch memory.
fn sum(shape: &Shape, b: &mut Builder) -> Place {
    if shape.rank == shape.root { Place::target(0) } else { b.scratch(shape.block_bytes()) }
}

/// Reduces along a tree; `room` is a slot that the tree does not use.
fn along(shape: &Shape, b: &mut Builder, node: &combine::tree::Node, room: usize) {
    let bytes = shape.block_bytes();
    let own = combine::contribution(shape);
    let have = node.combine(b, own, |b| sum(shape, b), bytes, room);
    node.give_up(b, have, bytes, room);
    if shape.n == 1 {
        b.copy(own, Place::target(0), bytes);
    }
}
