//! Broadcast over the binary tree that all operations share, whatever their root: the block floods it from
//! the root, upward as well as downward.
//!
//! Cost: at most 2 floor(log2 n) levels, n - 1 messages of the whole block, at most three of one rank, always
//! to the same ranks.
//! Source: the tree with fixed edges of Welch and Venkata, "On Synchronisation and Memory Reuse in
//! OpenSHMEM".

use super::super::schedule::Builder;
use super::super::shape::Shape;
use super::tree;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    super::down(shape, b, &tree::binary_from(shape.rank, shape.n, shape.root));
}
