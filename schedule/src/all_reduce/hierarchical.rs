//! Hierarchical all-reduce: inside each node to its leader, by recursive doubling between the leaders, and
//! from them to the ranks of their nodes (Kielmann et al. 1999).
//!
//! Between nodes there are only the messages of recursive doubling among the leaders: log2 nodes each. Inside
//! a node of m ranks 2 (m - 1) messages of a block in 2 ceil(log2 m) rounds. Each block larger than a mailbox
//! costs one announcement more, except on the way back. The ranks of a node need not be contiguous, so the
//! operation must commute.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::contribution;
use crate::combine::doubling::{Group, all_reduce};
use crate::combine::tree::{Node, levels};
use crate::schedule::{Builder, Place, Rank};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllReduce,
    name: "hierarchical",
    summary: "inside the nodes to their leaders, by doubling between these, and back",
    source: "Kielmann et al. 1999",
    fold: Fold::Any,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let bytes = shape.block_bytes();
    let nodes = shape.groups();
    let (leaders, own) = (nodes.leaders(), nodes.group(shape.rank));
    let is_leader = shape.rank == leaders[own];
    let (room, down, first) = (levels(shape.n), levels(shape.n) + 1, levels(shape.n) + 2);
    let mates: Vec<Rank> = nodes.ranks(own).iter().collect();
    let inside = Node::among(&mates, leaders[own], shape.rank, 0);
    // The leaders would have to copy small operands out of their targets before they exchange them, so small
    // operands are not put there.
    let is_apart = is_leader && leaders.len() > 1 && bytes <= b.mailbox_bytes();
    let sum = |b: &mut Builder| if is_apart { b.scratch(bytes) } else { Place::target(0) };
    let have = inside.combine(b, contribution(shape), sum, bytes, room);
    inside.give_up(b, have, bytes, room);
    if is_leader {
        all_reduce(b, Group::part(&leaders, own), have, bytes, false, first);
    }
    inside.spread(b, bytes, down);
}
