//! A barrier on the binary tree that all operations share, whatever their root: arrival up to rank 0, then
//! release down.
//!
//! Cost: 2 floor(log2 n) levels, 2 (n - 1) signals in all; a rank signals three others at most, always the
//! same.
//! Source: the tree with fixed edges of Welch and Venkata, "On Synchronisation and Memory Reuse in
//! OpenSHMEM".

use super::super::broadcast::tree;
use super::super::schedule::Builder;
use super::super::shape::Shape;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    super::tree::up_and_down(b, shape.rank, |rank| tree::binary(rank, shape.n));
}
