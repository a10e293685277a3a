//! Algorithms of all-reduce: everybody's blocks, combined, to everybody. The result has the same bits
//! everywhere: each element of it is computed by the same expression at all ranks, or once.

mod binomial;
mod fixed_tree;
mod hierarchical;
mod linear;
mod rabenseifner;
mod recursive_doubling;
mod ring;

use super::combine;
use super::schedule::{Builder, Place};
use super::shape::{Operation, Shape};
use super::table::{Algorithm, Fold, Graph, unrestricted};

pub(super) const TABLE: &[Algorithm] = &[
    Algorithm {
        operation: Operation::AllReduce,
        name: "recursive_doubling",
        summary: "in round k everybody exchanges sums with the rank 2^k away",
        source: "Thakur, Rabenseifner, Gropp 2005",
        fold: Fold::Tree,
        graph: Graph::Doubling,
        restriction: unrestricted,
        build: recursive_doubling::build,
    },
    Algorithm {
        operation: Operation::AllReduce,
        name: "rabenseifner",
        summary: "halves of halves are combined, then gathered again",
        source: "Rabenseifner 2004",
        fold: Fold::Tree,
        graph: Graph::Doubling,
        restriction: unrestricted,
        build: rabenseifner::build,
    },
    Algorithm {
        operation: Operation::AllReduce,
        name: "ring",
        summary: "n parts go round a ring, first to be combined, then to be known",
        source: "Patarasuk, Yuan 2009",
        fold: Fold::Any,
        graph: Graph::Other,
        restriction: unrestricted,
        build: ring::build,
    },
    Algorithm {
        operation: Operation::AllReduce,
        name: "linear",
        summary: "each part is combined by one rank, in the order of ranks, and given to all",
        source: "",
        fold: Fold::Ranks,
        graph: Graph::Other,
        restriction: unrestricted,
        build: linear::build,
    },
    Algorithm {
        operation: Operation::AllReduce,
        name: "binomial",
        summary: "up a binomial tree to rank 0, and down again",
        source: "Thakur, Rabenseifner, Gropp 2005",
        fold: Fold::Tree,
        graph: Graph::TreeStructure,
        restriction: unrestricted,
        build: binomial::build,
    },
    Algorithm {
        operation: Operation::AllReduce,
        name: "fixed_tree",
        summary: "up a binary tree to rank 0, and down again",
        source: "Welch, Venkata 2014",
        fold: Fold::Any,
        graph: Graph::TreeEdges,
        restriction: unrestricted,
        build: fixed_tree::build,
    },
    Algorithm {
        operation: Operation::AllReduce,
        name: "hierarchical",
        summary: "inside the nodes to their leaders, by doubling between these, and back",
        source: "Kielmann et al. 1999",
        fold: Fold::Any,
        graph: Graph::Other,
        restriction: unrestricted,
        build: hierarchical::build,
    },
];

/// Reduces up a tree and spreads the result down; `room` and the next slot are not used by the tree.
fn up_and_down(shape: &Shape, b: &mut Builder, node: &combine::tree::Node, room: usize) {
    let bytes = shape.block_bytes();
    let own = combine::contribution(shape);
    let have = node.combine(b, own, |_| Place::target(0), bytes, room);
    node.give_up(b, have, bytes, room);
    node.spread(b, bytes, room + 1);
    if shape.n == 1 {
        b.copy(own, Place::target(0), bytes);
    }
}
