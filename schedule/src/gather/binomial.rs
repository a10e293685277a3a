//! Binomial gather: each rank collects the blocks of its subtree and hands them to its parent.
//!
//! What goes to the root goes straight into its target: as every subtree is a range of ranks, its blocks
//! follow each other there for every root. Other parents have no target for it: if the blocks of a child fit
//! in a mailbox they go there, else the parent announces scratch memory to the child before it does anything
//! else.
//!
//! Cost: ceil(log2 n) rounds after the announcements, n - 1 messages, and at most as many announcements if
//! blocks are large; about s n log2(n) / 2 bytes in all for blocks of s, of which the root is sent s (n - 1).
//! Source: Chan, Heimlich, Purkayastha, van de Geijn 2007, the minimum spanning tree gather.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
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

/// The slot in which the blocks of the last child come, which are there first; then the one before it.
const DATA: Slot = 1;

fn build(shape: &Shape, b: &mut Builder) {
    let block = shape.block_bytes();
    let own = tree::halving(shape.rank, shape.n, shape.root);
    // Where the blocks of the subtree come together, from its first rank on.
    let blocks = match own.parent {
        None => Place::target(0),
        Some(_) if own.children.is_empty() => Place::source(0),
        Some(_) => b.scratch(own.ranks.len() * block),
    };
    let in_mailbox = |b: &Builder, bytes| own.parent.is_some() && bytes <= b.mailbox_bytes();
    let place_of = |first: Rank| blocks.plus((first - own.ranks.start) * block);

    if own.parent.is_some() {
        for (child, below) in own.children.iter().rev() {
            if !in_mailbox(b, below.len() * block) {
                b.announce(*child, ROOM, place_of(below.start));
            }
        }
    }
    if own.parent.is_none() || !own.children.is_empty() {
        b.copy(Place::source(0), place_of(shape.rank), block);
    }
    for (index, (child, below)) in own.children.iter().rev().enumerate() {
        b.wait(*child, DATA + index);
        if in_mailbox(b, below.len() * block) {
            b.copy(Place::mailbox(DATA + index), place_of(below.start), below.len() * block);
        }
    }
    if let Some(parent) = own.parent {
        hand_up(shape, b, parent, &own, blocks);
    }
}

/// The blocks of the subtree to its parent.
fn hand_up(shape: &Shape, b: &mut Builder, parent: Rank, own: &Subtree, blocks: Place) {
    let block = shape.block_bytes();
    let bytes = own.ranks.len() * block;
    let above = tree::halving(parent, shape.n, shape.root).children;
    let index = above.iter().rev().position(|&(child, _)| child == shape.rank);
    let slot = DATA + index.expect("a child of its parent");
    if parent == shape.root {
        b.put_signal(parent, blocks, Remote::Target(own.ranks.start * block), bytes, slot);
    } else if bytes <= b.mailbox_bytes() {
        b.send(parent, blocks, bytes, slot);
    } else {
        b.wait(parent, ROOM);
        b.put_signal(parent, blocks, Remote::Announced { slot: ROOM, offset: 0 }, bytes, slot);
    }
}
