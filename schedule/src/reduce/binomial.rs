//! Binomial reduce: operands go up a tree of ceil(log2 n) levels to the root.
//!
//! The tree is the halving tree, whose subtrees are ranges of ranks, so that the order of operands is kept
//! for every root without an extra message (Thakur, Rabenseifner, Gropp 2005 move the result from rank 0 to
//! the root for this purpose). ceil(log2 n) rounds, n - 1 messages of a block each; blocks larger than a
//! mailbox cost n - 1 announcements more.

use super::steps::along;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::tree::{halving, levels};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Reduce,
    name: "binomial",
    summary: "a binomial tree at the root, whose subtrees are ranges of ranks",
    source: "Thakur, Rabenseifner, Gropp 2005",
    fold: Fold::Tree,
    graph: Graph::TreeStructure,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    along(shape, b, &halving(shape.n, shape.root, shape.rank), levels(shape.n));
}
