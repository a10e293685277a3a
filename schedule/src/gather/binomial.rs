//! Binomial gather: each rank collects the blocks of its subtree and sends them to its parent.
//!
//! Blocks for the root go straight into its target: as every subtree is a range of ranks, its blocks are
//! contiguous there for every root. Other parents have no target for the blocks: if the blocks of a child fit
//! in a mailbox they go there, else the parent announces scratch memory to the child as its first step.
//!
//! Cost: ceil(log2 n) rounds after the announcements, n - 1 messages, and at most n - 1 announcements if
//! blocks are large; about s n log2(n) / 2 bytes in total for blocks of s bytes, of which the root receives s
//! (n - 1).
//! Source: Chan, Heimlich, Purkayastha, van de Geijn 2007, the minimum spanning tree gather.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::layout::Layout;
use crate::schedule::{Builder, Place, Rank, Remote, Slot};
use crate::shape::{Operation, Shape};
use crate::tree::{self, Subtree};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Gather,
    name: "binomial",
    summary: "up a tree of ranges of ranks, twice the blocks each time",
    source: "Chan, Heimlich, Purkayastha, van de Geijn 2007",
    fold: Fold::None,
    graph: Graph::TreeStructure,
    restriction: unrestricted,
    build,
};

/// The slot for the parent's announcement.
const ROOM: Slot = 0;

/// The slot for the blocks of the last child, which arrive first; the next slot is for the child before it,
/// and so on.
const DATA: Slot = 1;

fn build(shape: &Shape, b: &mut Builder) {
    let layout = Layout::of(shape);
    let own = tree::halving(shape.rank, shape.n, shape.root);
    // The place where the blocks of the subtree are collected, from its first rank on.
    let blocks = match own.parent {
        None => Place::target(0),
        Some(_) if own.children.is_empty() => Place::source(0),
        Some(_) => b.scratch(layout.bytes(own.ranks.clone())),
    };
    let in_mailbox = |b: &Builder, bytes| own.parent.is_some() && bytes <= b.mailbox_bytes();
    let place_of = |first: Rank| blocks.plus(layout.bytes(own.ranks.start..first));

    if own.parent.is_some() {
        for (child, below) in own.children.iter().rev() {
            if !in_mailbox(b, layout.bytes(below.clone())) {
                b.announce(*child, ROOM, place_of(below.start));
            }
        }
    }
    if own.parent.is_none() || !own.children.is_empty() {
        b.copy(Place::source(0), place_of(shape.rank), layout.bytes(shape.rank..shape.rank + 1));
    }
    for (index, (child, below)) in own.children.iter().rev().enumerate() {
        b.wait(*child, DATA + index);
        if in_mailbox(b, layout.bytes(below.clone())) {
            b.copy(Place::mailbox(DATA + index), place_of(below.start), layout.bytes(below.clone()));
        }
    }
    if let Some(parent) = own.parent {
        hand_up(shape, b, parent, &own, (blocks, &layout));
    }
}

/// Sends the blocks of the subtree to its parent.
fn hand_up(shape: &Shape, b: &mut Builder, parent: Rank, own: &Subtree, (blocks, layout): (Place, &Layout)) {
    let bytes = layout.bytes(own.ranks.clone());
    let above = tree::halving(parent, shape.n, shape.root).children;
    let index = above.iter().rev().position(|&(child, _)| child == shape.rank);
    let slot = DATA + index.expect("a child of its parent");
    if parent == shape.root {
        b.put_signal(parent, blocks, Remote::Target(layout.start(own.ranks.start)), bytes, slot);
    } else if bytes <= b.mailbox_bytes() {
        b.send(parent, blocks, bytes, slot);
    } else {
        b.wait(parent, ROOM);
        b.put_signal(parent, blocks, Remote::Announced { slot: ROOM, offset: 0 }, bytes, slot);
    }
}
