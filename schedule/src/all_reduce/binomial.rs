//! All-reduce as a reduce to rank 0 along a binomial tree, and a broadcast back along it (Thakur,
//! Rabenseifner, Gropp 2005).
//!
//! 2 ceil(log2 n) rounds, 2 (n - 1) messages of a block each, which is the minimum; blocks larger than a
//! mailbox cost n - 1 announcements more.

use super::steps::up_and_down;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::tree::{halving, levels};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllReduce,
    name: "binomial",
    summary: "up a binomial tree to rank 0, and down again",
    source: "Thakur, Rabenseifner, Gropp 2005",
    fold: Fold::Tree,
    graph: Graph::TreeStructure,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    up_and_down(shape, b, &halving(shape.n, 0, shape.rank), levels(shape.n));
}
