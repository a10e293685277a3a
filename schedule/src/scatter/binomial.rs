//! Binomial scatter: the root sends half of the blocks to another rank, which does the same with its half.
//!
//! A rank that has children cannot receive their blocks in its target. If the blocks fit in a mailbox they go
//! there, else the rank announces scratch memory to its parent as its first step. As every subtree is a range
//! of ranks, its blocks are contiguous in the root's source for every root.
//!
//! Cost: ceil(log2 n) rounds after the announcements, n - 1 messages, and at most n / 2 announcements if
//! blocks are large; about s n log2(n) / 2 bytes in total for blocks of s bytes, of which the root sends
//! s (n - 1).
//! Source: Chan, Heimlich, Purkayastha, van de Geijn 2007, the minimum spanning tree scatter.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::layout::Layout;
use crate::schedule::{Builder, Place, Rank, Remote, Slot};
use crate::shape::{Operation, Shape};
use crate::tree::{self, Subtree};
use std::ops::Range;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Scatter,
    name: "binomial",
    summary: "down a tree of ranges of ranks, half of the blocks each time",
    source: "Chan, Heimlich, Purkayastha, van de Geijn 2007",
    fold: Fold::None,
    graph: Graph::TreeStructure,
    restriction: unrestricted,
    build,
};

/// The slot whose signal tells that the blocks have arrived.
const DATA: Slot = 0;

/// The slot of a rank's first child for its announcement.
const ROOM: Slot = DATA + 1;

/// The path of the blocks of a subtree to the root of the subtree.
enum Way {
    /// A single block, into the target.
    Target,
    /// Into the mailbox.
    Mailbox,
    /// Into scratch memory that the rank announces.
    Scratch,
}

fn way(ranks: &Range<Rank>, layout: &Layout, b: &Builder) -> Way {
    match ranks.len() {
        1 => Way::Target,
        _ if layout.bytes(ranks.clone()) <= b.mailbox_bytes() => Way::Mailbox,
        _ => Way::Scratch,
    }
}

fn build(shape: &Shape, b: &mut Builder) {
    let layout = Layout::of(shape);
    let Subtree { parent, ranks, children } = tree::halving(shape.rank, shape.n, shape.root);
    // The place of the blocks of the subtree, from its first rank on.
    let blocks = match parent {
        None => Place::source(0),
        Some(parent) => receive(shape, b, parent, &ranks, &layout),
    };
    for (index, (child, below)) in children.iter().enumerate() {
        let from = blocks.plus(layout.bytes(ranks.start..below.start));
        let bytes = layout.bytes(below.clone());
        match way(below, &layout, b) {
            Way::Target => b.put_signal(*child, from, Remote::Target(0), bytes, DATA),
            Way::Mailbox => b.send(*child, from, bytes, DATA),
            Way::Scratch => {
                b.wait(*child, ROOM + index);
                let room = Remote::Announced { slot: ROOM + index, offset: 0 };
                b.put_signal(*child, from, room, bytes, DATA);
            }
        }
    }
    let own = blocks.plus(layout.bytes(ranks.start..shape.rank));
    b.copy(own, Place::target(0), layout.bytes(shape.rank..shape.rank + 1));
}

/// Receives the blocks of `ranks` from the parent. Returns their place.
fn receive(shape: &Shape, b: &mut Builder, parent: Rank, ranks: &Range<Rank>, layout: &Layout) -> Place {
    let blocks = match way(ranks, layout, b) {
        Way::Target => Place::target(0),
        Way::Mailbox => Place::mailbox(DATA),
        Way::Scratch => {
            let room = b.scratch(layout.bytes(ranks.clone()));
            let above = tree::halving(parent, shape.n, shape.root).children;
            let index = above.iter().position(|&(child, _)| child == shape.rank);
            b.announce(parent, ROOM + index.expect("a child of its parent"), room);
            room
        }
    };
    b.wait(parent, DATA);
    blocks
}
