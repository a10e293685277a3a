//! The ranks of a team by node.
//!
//! Invariant: every rank sees the same groups in the same order; each has at least one rank, and its ranks
//! ascend.

use super::super::schedule::Rank;
use super::super::shape::Shape;
use std::collections::BTreeMap;

/// The ranks of each node, the nodes in the order of their lowest ranks.
pub(in crate::coll) struct Nodes {
    /// The ranks of each node.
    pub groups: Vec<Vec<Rank>>,
    /// The index of this rank's group.
    pub own: usize,
}

impl Nodes {
    /// The nodes of a team.
    pub fn of(shape: &Shape) -> Nodes {
        let mut groups: Vec<Vec<Rank>> = Vec::new();
        let mut group_of_node = BTreeMap::new();
        for rank in 0..shape.n {
            let group = *group_of_node.entry(shape.node(rank)).or_insert(groups.len());
            match groups.get_mut(group) {
                Some(ranks) => ranks.push(rank),
                None => groups.push(vec![rank]),
            }
        }
        let own = group_of_node[&shape.node(shape.rank)];
        Nodes { groups, own }
    }

    /// The ranks of this rank's node.
    pub fn own_group(&self) -> &[Rank] {
        &self.groups[self.own]
    }

    /// The lowest rank of a group.
    pub fn leader(&self, group: usize) -> Rank {
        self.groups[group][0]
    }
}
