//! Steps that the algorithms of broadcast share.

use crate::schedule::{Builder, Place, Remote, Slot};
use crate::shape::Shape;
use crate::tree::Links;

/// The slot whose signal tells that the block has arrived, where one slot is enough.
pub(super) const DATA: Slot = 0;

/// The place from which a rank sends the block.
pub(super) fn origin(shape: &Shape) -> Place {
    match shape.rank == shape.root {
        true => Place::source(0),
        false => Place::target(0),
    }
}

/// Copies the block into the root's own target, after the sends to the other ranks have started.
pub(super) fn keep(shape: &Shape, b: &mut Builder) {
    if shape.rank == shape.root && !shape.in_place {
        b.copy(Place::source(0), Place::target(0), shape.block_bytes());
    }
}

/// Moves the whole block down a tree, from this rank's parent to its children.
pub(super) fn down(shape: &Shape, b: &mut Builder, links: &Links) {
    if let Some(parent) = links.parent {
        b.wait(parent, DATA);
    }
    for &child in &links.children {
        b.put_signal(child, origin(shape), Remote::Target(0), shape.block_bytes(), DATA);
    }
    keep(shape, b);
}
