//! All-reduce up and down the binary tree in which rank r is linked to (r - 1) / 2.
//!
//! The edges are those of the other operations with a fixed tree, at most three a rank, so synchronisation
//! memory can be had for each edge (Welch, Venkata 2014). 2 floor(log2 n) rounds, 2 (n - 1) messages of a
//! block each; blocks larger than a mailbox cost n - 1 announcements more. Subtrees are not ranges of ranks,
//! so the operation must commute; the order of operands depends on n alone.

use super::up_and_down;
use crate::coll::combine::tree::{FIXED_SLOTS, fixed};
use crate::coll::schedule::Builder;
use crate::coll::shape::Shape;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    up_and_down(shape, b, &fixed(shape.n, 0, shape.rank), FIXED_SLOTS);
}
