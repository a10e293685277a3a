//! Steps that the algorithms of reduce share.

use crate::combine;
use crate::schedule::{Builder, Place};
use crate::shape::Shape;

/// The place of a rank's sum: the target at the root; scratch memory at other ranks, which have no target.
pub(super) fn sum(shape: &Shape, b: &mut Builder) -> Place {
    if shape.rank == shape.root { Place::target(0) } else { b.scratch(shape.block_bytes()) }
}

/// Reduces along a tree. `room` is a slot that the tree does not use.
pub(super) fn along(shape: &Shape, b: &mut Builder, node: &combine::tree::Node, room: usize) {
    let bytes = shape.block_bytes();
    let own = combine::contribution(shape);
    let have = node.combine(b, own, |b| sum(shape, b), bytes, room);
    node.give_up(b, have, bytes, room);
    if shape.n == 1 {
        b.copy(own, Place::target(0), bytes);
    }
}
