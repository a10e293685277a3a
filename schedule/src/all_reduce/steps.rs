//! Steps that the algorithms of all-reduce share.

use crate::combine;
use crate::schedule::{Builder, Place};
use crate::shape::Shape;

/// Reduces up a tree and sends the result down. The tree must not use slot `room` and the slot after it.
pub(super) fn up_and_down(shape: &Shape, b: &mut Builder, node: &combine::tree::Node, room: usize) {
    let bytes = shape.block_bytes();
    let own = combine::contribution(shape);
    let have = node.combine(b, own, |_| Place::target(0), bytes, room);
    node.give_up(b, have, bytes, room);
    node.spread(b, bytes, room + 1);
    if shape.n == 1 {
        b.copy(own, Place::target(0), bytes);
    }
}
