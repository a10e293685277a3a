//! All-reduce by recursive doubling (Thakur, Rabenseifner, Gropp 2005).
//!
//! In round k everybody exchanges the sum of 2^k neighbouring ranks with the rank 2^k away, and both combine
//! the two. log2 n rounds with n messages of a block each, two rounds and 2 messages for each extra rank more
//! if n is no power of two; the fewest rounds there are, but every block travels log2 n times. Blocks larger
//! than a mailbox cost as many announcements, but none in the first round if it does not happen in place.

use crate::coll::combine::contribution;
use crate::coll::combine::doubling::{Group, all_reduce};
use crate::coll::schedule::Builder;
use crate::coll::shape::Shape;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    let group = Group::team(shape.n, shape.rank);
    all_reduce(b, group, contribution(shape), shape.block_bytes(), !shape.in_place, 0);
}
