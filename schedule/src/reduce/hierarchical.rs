//! Hierarchical reduce: first inside each node to its leader, then between the leaders to the root, which is
//! the leader of its node (Kielmann et al. 1999).
//!
//! Both phases use halving trees. Each node except the root's sends one message of a block to another node:
//! n-1 messages and at most ceil(log2 nodes) + ceil(log2 ranks of a node) rounds; blocks larger than a
//! mailbox cost n - 1 announcements more. The ranks of a node need not be contiguous, so the operation must
//! commute.

use super::steps::sum;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::contribution;
use crate::combine::tree::{Node, levels};
use crate::schedule::{Builder, Place, Rank};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Reduce,
    name: "hierarchical",
    summary: "binomial trees inside the nodes, then one between their leaders",
    source: "Kielmann et al. 1999",
    fold: Fold::Any,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let bytes = shape.block_bytes();
    let own = contribution(shape);
    let nodes = shape.groups();
    let (group, mut leaders) = (nodes.group(shape.rank), nodes.leaders());
    leaders[nodes.group(shape.root)] = shape.root;
    // A rank is a child at most once, so it needs only one slot for the announcement of a buffer.
    let first = levels(shape.n);
    let room = 2 * first;
    let mates: Vec<Rank> = nodes.ranks(group).iter().collect();
    let inside = Node::among(&mates, leaders[group], shape.rank, 0);
    let so_far = inside.combine(b, own, |b| sum(shape, b), bytes, room);
    inside.give_up(b, so_far, bytes, room);
    if shape.rank == leaders[group] {
        let between = Node::among(&leaders, shape.root, shape.rank, first);
        let place = |b: &mut Builder| if so_far == own { sum(shape, b) } else { so_far };
        let have = between.combine(b, so_far, place, bytes, room);
        between.give_up(b, have, bytes, room);
    }
    if shape.n == 1 {
        b.copy(own, Place::target(0), bytes);
    }
}
