//! Steps that the algorithms of broadcast have in common.

use crate::schedule::{Builder, Place, Remote, Slot};
use crate::shape::Shape;
use crate::tree::Links;

/// The slot that tells that the block is there, where one is enough.
pub(super) const DATA: Slot = 0;

/// Where a rank sends the block from.
pub(super) fn origin(shape: &Shape) -> Place {
    match shape.rank == shape.root {
        true => Place::source(0),
        false => Place::target(0),
    }
}

/// The root's own copy, which it makes when the others have theirs under way.
pub(super) fn keep(shape: &Shape, b: &mut Builder) {
    if shape.rank == shape.root && !shape.in_place {
        b.copy(Place::source(0), Place::target(0), shape.block_bytes());
    }
}

/// The whole block down a tree, from this rank's parent to its children.
pub(super) fn down(shape: &Shape, b: &mut Builder, links: &Links) {
    if let Some(parent) = links.parent {
        b.wait(parent, DATA);
    }
    for &child in &links.children {
        b.put_signal(child, origin(shape), Remote::Target(0), shape.block_bytes(), DATA);
    }
    keep(shape, b);
}
