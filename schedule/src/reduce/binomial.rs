//! Binomial reduce: operands go up a tree of ceil(log2 n) levels that hangs at the root.
//!
//! The tree is the halving tree, whose subtrees are ranges of ranks, so that the order of operands is kept
//! for every root without one more message (Thakur, Rabenseifner, Gropp 2005 move the result from rank 0 for
//! that). ceil(log2 n) rounds, n - 1 messages of a block each; blocks larger than a mailbox cost n - 1
//! announcements more.

use super::along;
use crate::coll::combine::tree::{halving, levels};
use crate::coll::schedule::Builder;
use crate::coll::shape::Shape;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    along(shape, b, &halving(shape.n, shape.root, shape.rank), levels(shape.n));
}
