//! Algorithms of reduce-scatter: everybody's n blocks, combined block by block, one to each rank.

mod linear;
mod recursive_halving;
mod ring;

use super::shape::Operation;
use super::table::{Algorithm, Fold, Graph, unrestricted};

pub(super) const TABLE: &[Algorithm] = &[
    Algorithm {
        operation: Operation::ReduceScatter,
        name: "linear",
        summary: "each rank takes its block from all, in the order of ranks",
        source: "",
        fold: Fold::Ranks,
        graph: Graph::Other,
        restriction: unrestricted,
        build: linear::build,
    },
    Algorithm {
        operation: Operation::ReduceScatter,
        name: "recursive_halving",
        summary: "halves of the team exchange what belongs to the other half, then halves of these",
        source: "Thakur, Rabenseifner, Gropp 2005",
        fold: Fold::Any,
        graph: Graph::Other,
        restriction: unrestricted,
        build: recursive_halving::build,
    },
    Algorithm {
        operation: Operation::ReduceScatter,
        name: "ring",
        summary: "each block goes once round a ring to its rank",
        source: "Patarasuk, Yuan 2009",
        fold: Fold::Any,
        graph: Graph::Other,
        restriction: unrestricted,
        build: ring::build,
    },
];
