//! All-gather in two levels: the ranks of a node put their blocks to their leader, its lowest rank, the
//! leaders pass the blocks of whole nodes around a ring, and the ranks of a node get all blocks from its
//! leader, all of them concurrently.
//!
//! The blocks of a node take one message for each contiguous range of its ranks: one message if ranks are
//! placed node by node.
//!
//! Cost, for L nodes with their ranks in one range each: L - 1 rounds between nodes, in which each leader
//! sends L - 1 messages; inside a node 2 messages and 2 signals for each other rank.
//! Source: Kielmann, Hofman, Bal, Plaat, Bhoedjang 1999, MagPIe.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::layout::Layout;
use crate::nodes::Groups;
use crate::schedule::{Builder, Place, Remote, Slot};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllGather,
    name: "hierarchical",
    summary: "to the leader of the node, a ring of leaders, from the leader",
    source: "Kielmann, Hofman, Bal, Plaat, Bhoedjang 1999",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

/// The slot that tells a rank that its leader has everything.
const READY: Slot = 0;

fn build(shape: &Shape, b: &mut Builder) {
    let (layout, nodes, me) = (Layout::of(shape), shape.groups(), shape.rank);
    let own = nodes.group(me);
    let leader = nodes.leader(own);
    let others = nodes.ranks(own).iter().skip(1);
    if me != leader {
        let index = nodes.place(me) - 1;
        layout.put_own(b, me, leader, index);
        b.wait(leader, READY);
        b.get(leader, Remote::Target(0), Place::target(0), layout.bytes(0..shape.n));
        b.complete();
        b.signal(leader, others.len() + index);
        return;
    }
    layout.copy_own(b, me);
    for (index, rank) in others.clone().enumerate() {
        b.wait(rank, index);
    }
    ring(b, &layout, &nodes, own);
    for rank in others.clone() {
        b.signal(rank, READY);
    }
    let n_others = others.len();
    for (index, rank) in others.enumerate() {
        b.wait(rank, n_others + index);
    }
}

/// The ring of leaders. Sends and waits alternate range by range, so that no leader sends far ahead of the
/// waits of the next leader.
fn ring(b: &mut Builder, layout: &Layout, nodes: &Groups, own: usize) {
    let n = nodes.len();
    let (left, right) = ((own + n - 1) % n, (own + 1) % n);
    // The slots follow those for the other ranks of the node, in order.
    let first_slot = |group: usize| 2 * (nodes.ranks(group).len() - 1);
    let (mut out_slot, mut in_slot) = (first_slot(right), first_slot(own));
    for round in 0..n - 1 {
        let out = nodes.ranges((own + n - round) % n);
        let expected = nodes.ranges((left + n - round) % n).len();
        for step in 0..out.len().max(expected) {
            if let Some(ranks) = out.get(step) {
                layout.pass_on(b, ranks.clone(), nodes.leader(right), out_slot);
                out_slot += 1;
            }
            if step < expected {
                b.wait(nodes.leader(left), in_slot);
                in_slot += 1;
            }
        }
    }
}
