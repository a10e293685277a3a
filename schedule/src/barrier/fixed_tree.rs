//! A barrier on the binary tree that all operations share, whatever their root: arrival up to rank 0, then
//! release down.
//!
//! Cost: 2 floor(log2 n) levels, 2 (n - 1) signals in total; a rank signals at most three other ranks,
//! always the same ones. Source: the tree with fixed edges of Welch and Venkata, "On Synchronisation and
//! Memory Reuse in OpenSHMEM".

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};
use crate::tree;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Barrier,
    name: "fixed_tree",
    summary: "arrival up the fixed binary tree to rank 0, release down",
    source: "Welch, Venkata: On Synchronisation and Memory Reuse in OpenSHMEM",
    fold: Fold::None,
    graph: Graph::TreeAtRankZero,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    super::tree::up_and_down(b, shape.rank, |rank| tree::binary(rank, shape.n));
}
