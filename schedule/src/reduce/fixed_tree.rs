//! Reduce along one binary tree for all roots, in which rank r is linked to (r - 1) / 2.
//!
//! A rank communicates only with its neighbours, at most three, so each edge can have its own synchronisation
//! memory (Welch, Venkata 2014). Operands go along the edges towards the root. At most 2 log2 n rounds, n - 1
//! messages of a block each; blocks larger than a mailbox cost n - 1 announcements more. Subtrees are not
//! ranges of ranks, so the operation must commute.

use super::steps::along;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::tree::{FIXED_SLOTS, fixed};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Reduce,
    name: "fixed_tree",
    summary: "one binary tree for all roots, up and down its edges towards the root",
    source: "Welch, Venkata 2014",
    fold: Fold::Any,
    graph: Graph::TreeEdges,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    along(shape, b, &fixed(shape.n, shape.root, shape.rank), FIXED_SLOTS);
}
