//! All-reduce as a reduce to rank 0 along a binomial tree, and a broadcast back along it (Thakur,
//! Rabenseifner, Gropp 2005).
//!
//! 2 ceil(log2 n) rounds, 2 (n - 1) messages of a block each, the fewest there are; blocks larger than a
//! mailbox cost n - 1 announcements more.

use super::up_and_down;
use crate::coll::combine::tree::{halving, levels};
use crate::coll::schedule::Builder;
use crate::coll::shape::Shape;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    up_and_down(shape, b, &halving(shape.n, 0, shape.rank), levels(shape.n));
}
