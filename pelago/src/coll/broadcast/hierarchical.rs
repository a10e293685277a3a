//! Broadcast in two levels: over a binomial tree of the nodes, each with a leader, then over a binomial tree
//! inside each node. The root leads its node; elsewhere the lowest rank does.
//!
//! Cost, for L nodes of at most m ranks: ceil(log2 L) rounds between nodes with L - 1 messages of the whole
//! block, then ceil(log2 m) rounds inside them; n - 1 messages in all.
//! Source: Kielmann, Hofman, Bal, Plaat, Bhoedjang 1999, MagPIe.

use super::super::schedule::{Builder, Rank};
use super::super::shape::Shape;
use super::nodes::Nodes;
use super::tree;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    let mut nodes = Nodes::of(shape);
    let holds_root = |group: &Vec<Rank>| group.contains(&shape.root);
    let home = nodes.groups.iter().position(holds_root).expect("the root is on some node");
    let root_index = nodes.groups[home].iter().position(|&rank| rank == shape.root).unwrap_or(0);
    nodes.groups[home].swap(0, root_index);

    let group = nodes.own_group();
    let index = group.iter().position(|&rank| rank == shape.rank).expect("a rank is on its node");
    let mut links = tree::k_nomial(index, group.len(), 2).map(|index| group[index]);
    if index == 0 {
        let n = nodes.groups.len();
        let between = tree::k_nomial((nodes.own + n - home) % n, n, 2)
            .map(|relative| nodes.leader((relative + home) % n));
        links.parent = between.parent;
        links.children.splice(0..0, between.children);
    }
    super::down(shape, b, &links);
}
