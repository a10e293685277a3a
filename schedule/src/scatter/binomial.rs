//! Binomial scatter: the root hands half of the blocks to another rank, which does the same with these.
//!
//! A rank that has others below it cannot take their blocks into its target. If they fit in a mailbox they go
//! there, else it announces scratch memory to its parent before it does anything else. As every subtree is a
//! range of ranks, its blocks follow each other in the root's source for every root.
//!
//! Cost: ceil(log2 n) rounds after the announcements, n - 1 messages, and at most n / 2 announcements if
//! blocks are large; about s n log2(n) / 2 bytes in all for blocks of s, of which the root sends s (n - 1).
//! Source: Chan, Heimlich, Purkayastha, van de Geijn 2007, the minimum spanning tree scatter.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
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

/// The slot that tells that the blocks are there.
const DATA: Slot = 0;

/// The slot of a rank's first child for its announcement.
const ROOM: Slot = DATA + 1;

/// How the blocks of a subtree reach the rank that leads it.
enum Way {
    /// A single block, into the target.
    Target,
    /// Into the mailbox.
    Mailbox,
    /// Into scratch memory that the rank announces.
    Scratch,
}

fn way(ranks: &Range<Rank>, block: usize, b: &Builder) -> Way {
    match ranks.len() {
        1 => Way::Target,
        blocks if blocks * block <= b.mailbox_bytes() => Way::Mailbox,
        _ => Way::Scratch,
    }
}

fn build(shape: &Shape, b: &mut Builder) {
    let block = shape.block_bytes();
    let Subtree { parent, ranks, children } = tree::halving(shape.rank, shape.n, shape.root);
    // Where the blocks of the subtree are, from its first rank on.
    let blocks = match parent {
        None => Place::source(0),
        Some(parent) => receive(shape, b, parent, &ranks),
    };
    for (index, (child, below)) in children.iter().enumerate() {
        let (from, bytes) = (blocks.plus((below.start - ranks.start) * block), below.len() * block);
        match way(below, block, b) {
            Way::Target => b.put_signal(*child, from, Remote::Target(0), bytes, DATA),
            Way::Mailbox => b.send(*child, from, bytes, DATA),
            Way::Scratch => {
                b.wait(*child, ROOM + index);
                let room = Remote::Announced { slot: ROOM + index, offset: 0 };
                b.put_signal(*child, from, room, bytes, DATA);
            }
        }
    }
    b.copy(blocks.plus((shape.rank - ranks.start) * block), Place::target(0), block);
}

/// Takes the blocks of `ranks` from the parent; says where they are.
fn receive(shape: &Shape, b: &mut Builder, parent: Rank, ranks: &Range<Rank>) -> Place {
    let block = shape.block_bytes();
    let blocks = match way(ranks, block, b) {
        Way::Target => Place::target(0),
        Way::Mailbox => Place::mailbox(DATA),
        Way::Scratch => {
            let room = b.scratch(ranks.len() * block);
            let above = tree::halving(parent, shape.n, shape.root).children;
            let index = above.iter().position(|&(child, _)| child == shape.rank);
            b.announce(parent, ROOM + index.expect("a child of its parent"), room);
            room
        }
    };
    b.wait(parent, DATA);
    blocks
}
