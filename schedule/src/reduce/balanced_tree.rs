//! Reduce along a balanced binary tree at the root: the tree has the same structure for all roots, so its
//! edges change with the root.
//!
//! At most floor(log2 n) rounds, n - 1 messages of a block each; blocks larger than a mailbox cost n - 1
//! announcements more. Over all roots a rank communicates with all other ranks (Welch, Venkata 2014).
//! Subtrees are not ranges of ranks, so the operation must commute.

use super::steps::along;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::tree::{BALANCED_SLOTS, balanced};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Reduce,
    name: "balanced_tree",
    summary: "a balanced binary tree at the root",
    source: "Welch, Venkata 2014",
    fold: Fold::Any,
    graph: Graph::TreeStructure,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    along(shape, b, &balanced(shape.n, shape.root, shape.rank), BALANCED_SLOTS);
}
