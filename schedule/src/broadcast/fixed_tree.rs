//! Broadcast over the binary tree that all operations share, whatever their root: the block spreads over it
//! from the root, upward as well as downward.
//!
//! Cost: at most 2 floor(log2 n) levels, n - 1 messages of the whole block, at most three from one rank,
//! always to the same ranks.
//! Source: the tree with fixed edges of Welch and Venkata, "On Synchronisation and Memory Reuse in
//! OpenSHMEM".

use super::steps::down;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};
use crate::tree;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Broadcast,
    name: "fixed_tree",
    summary: "over the fixed binary tree, the same edges for all roots",
    source: "Welch, Venkata: On Synchronisation and Memory Reuse in OpenSHMEM",
    fold: Fold::None,
    graph: Graph::TreeEdges,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    down(shape, b, &tree::binary_from(shape.rank, shape.n, shape.root));
}
