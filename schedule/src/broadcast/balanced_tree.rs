//! Broadcast over a balanced binary tree at the root: the tree has the same structure for all roots, so its
//! edges change with the root.
//!
//! Cost: floor(log2 n) levels, n - 1 messages of the whole block, at most two from one rank. Over all roots
//! a rank communicates with all other ranks. Source: the tree of fixed structure of Welch and Venkata, "On
//! Synchronisation and Memory Reuse in OpenSHMEM".

use super::steps::down;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};
use crate::tree;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Broadcast,
    name: "balanced_tree",
    summary: "over a balanced binary tree at the root",
    source: "Welch, Venkata: On Synchronisation and Memory Reuse in OpenSHMEM",
    fold: Fold::None,
    graph: Graph::TreeStructure,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    down(shape, b, &tree::binary(shape.relative(), shape.n).map(|relative| shape.absolute(relative)));
}
