//! Broadcast in two levels: over a binomial tree of the nodes, each with a leader, then over a binomial tree
//! inside each node. The root is the leader of its node; in other nodes the lowest rank is the leader.
//!
//! Cost, for L nodes of at most m ranks: ceil(log2 L) rounds between nodes with L - 1 messages of the whole
//! block, then ceil(log2 m) rounds inside them; n - 1 messages in total.
//! Source: Kielmann, Hofman, Bal, Plaat, Bhoedjang 1999, MagPIe.

use super::steps::down;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::{Builder, Rank};
use crate::shape::{Operation, Shape};
use crate::tree;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Broadcast,
    name: "hierarchical",
    summary: "over a binomial tree of nodes, then inside nodes",
    source: "Kielmann, Hofman, Bal, Plaat, Bhoedjang 1999",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let nodes = shape.groups();
    let (home, own) = (nodes.group(shape.root), nodes.group(shape.rank));
    let mut group: Vec<Rank> = nodes.ranks(own).iter().collect();
    if own == home {
        let root_index = nodes.place(shape.root);
        group.swap(0, root_index);
    }
    let index = group.iter().position(|&rank| rank == shape.rank).expect("a rank is on its node");
    let mut links = tree::k_nomial(index, group.len(), 2).map(|index| group[index]);
    if index == 0 {
        let n = nodes.len();
        let leader = |group| if group == home { shape.root } else { nodes.leader(group) };
        let between =
            tree::k_nomial((own + n - home) % n, n, 2).map(|relative| leader((relative + home) % n));
        links.parent = between.parent;
        links.children.splice(0..0, between.children);
    }
    down(shape, b, &links);
}
