//! Algorithms of the scans: to each rank the combination of the blocks of the ranks up to it, or before it.

mod chain;
mod doubling;
mod exclusive_doubling;
mod exclusive_linear;
mod inclusive_doubling;
mod inclusive_linear;

use super::shape::Operation;
use super::table::{Algorithm, Fold, Graph, unrestricted};

pub(super) const TABLE: &[Algorithm] = &[
    Algorithm {
        operation: Operation::InclusiveScan,
        name: "linear",
        summary: "sums go from rank to rank, in pieces",
        source: "",
        fold: Fold::Ranks,
        graph: Graph::Other,
        restriction: unrestricted,
        build: inclusive_linear::build,
    },
    Algorithm {
        operation: Operation::InclusiveScan,
        name: "recursive_doubling",
        summary: "in round k everybody hands its sum to the rank 2^k further on",
        source: "Hillis, Steele 1986",
        fold: Fold::Tree,
        graph: Graph::Doubling,
        restriction: unrestricted,
        build: inclusive_doubling::build,
    },
    Algorithm {
        operation: Operation::ExclusiveScan,
        name: "linear",
        summary: "sums go from rank to rank, in pieces",
        source: "",
        fold: Fold::Ranks,
        graph: Graph::Other,
        restriction: unrestricted,
        build: exclusive_linear::build,
    },
    Algorithm {
        operation: Operation::ExclusiveScan,
        name: "recursive_doubling",
        summary: "in round k everybody hands its sum to the rank 2^k further on",
        source: "Hillis, Steele 1986",
        fold: Fold::Tree,
        graph: Graph::Doubling,
        restriction: unrestricted,
        build: exclusive_doubling::build,
    },
];
