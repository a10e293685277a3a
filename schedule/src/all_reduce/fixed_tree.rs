//! All-reduce up and down the binary tree in which rank r is linked to (r - 1) / 2.
//!
//! The edges are those of the other operations with a fixed tree, at most three for each rank, so each edge
//! can have its own synchronisation memory (Welch, Venkata 2014). 2 floor(log2 n) rounds, 2 (n - 1) messages
//! of a block each; blocks larger than a mailbox cost n - 1 announcements more. Subtrees are not ranges of
//! ranks, so the operation must commute; the order of operands depends on n alone.

use super::steps::up_and_down;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::tree::{FIXED_SLOTS, fixed};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllReduce,
    name: "fixed_tree",
    summary: "up a binary tree to rank 0, and down again",
    source: "Welch, Venkata 2014",
    fold: Fold::Any,
    graph: Graph::TreeAtRankZero,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    up_and_down(shape, b, &fixed(shape.n, 0, shape.rank), FIXED_SLOTS);
}
