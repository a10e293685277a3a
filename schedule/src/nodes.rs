//! The ranks of a team, grouped by node.
//!
//! Invariant: every rank sees the same groups in the same order; each has at least one rank, and its ranks
//! ascend. The grouping is computed once, in O(n), and shared by all schedules that are made from it.

use crate::schedule::Rank;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The nodes of a team's ranks; empty if all are on one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes(Option<Arc<Groups>>);

/// The ranks of each node, the nodes in the order of their lowest ranks.
#[derive(Debug, PartialEq, Eq)]
pub struct Groups {
    /// The group of each rank.
    group: Vec<u32>,
    /// The ranks, group by group.
    ranks: Vec<Rank>,
    /// The start of each group in `ranks`, and the end of the last one.
    starts: Vec<usize>,
}

impl Nodes {
    /// Whether all ranks are on one node.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether there are several nodes, and one of them has several ranks.
    #[inline]
    pub fn are_shared(&self) -> bool {
        self.0.as_ref().is_some_and(|groups| groups.len() < groups.ranks.len())
    }

    /// The groups of a team of `n` ranks.
    pub fn groups(&self, n: usize) -> Arc<Groups> {
        self.0.clone().unwrap_or_else(|| Arc::new(Groups::one(n)))
    }
}

impl From<Vec<u32>> for Nodes {
    /// The node of each rank, by a number that is unique for the node; no nodes if all ranks are on one node.
    fn from(numbers: Vec<u32>) -> Nodes {
        Nodes((!numbers.is_empty()).then(|| Arc::new(Groups::of(&numbers))))
    }
}

impl FromIterator<u32> for Nodes {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Nodes {
        Vec::from_iter(numbers).into()
    }
}

impl Groups {
    /// Bytes of the groups of `n` ranks on `nodes` nodes.
    pub const fn bytes(n: usize, nodes: usize) -> usize {
        n * (size_of::<u32>() + size_of::<Rank>()) + (nodes + 1) * size_of::<usize>()
    }

    /// The groups of ranks, from the number of each rank's node.
    pub fn of(numbers: &[u32]) -> Groups {
        let (mut found, mut sizes) = (HashMap::new(), Vec::new());
        let group: Vec<u32> = numbers
            .iter()
            .map(|&number| {
                let group = *found.entry(number).or_insert(sizes.len());
                if group == sizes.len() {
                    sizes.push(0);
                }
                sizes[group] += 1;
                group as u32
            })
            .collect();
        let mut starts = vec![0];
        starts.extend(sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        }));
        let (mut next, mut ranks) = (starts.clone(), vec![0; numbers.len()]);
        for (rank, &group) in group.iter().enumerate() {
            ranks[next[group as usize]] = rank;
            next[group as usize] += 1;
        }
        Groups { group, ranks, starts }
    }

    /// One group of `n` ranks.
    fn one(n: usize) -> Groups {
        Groups { group: vec![0; n], ranks: (0..n).collect(), starts: vec![0, n] }
    }

    /// The number of groups.
    #[allow(clippy::len_without_is_empty, reason = "there is at least one group")]
    #[inline]
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of ranks in all groups.
    #[inline]
    pub fn ranks_len(&self) -> usize {
        self.ranks.len()
    }

    /// The group of a rank.
    #[inline]
    pub fn group(&self, rank: Rank) -> usize {
        self.group[rank] as usize
    }

    /// The ranks of a group.
    #[inline]
    pub fn ranks(&self, group: usize) -> &[Rank] {
        &self.ranks[self.starts[group]..self.starts[group + 1]]
    }

    /// The lowest rank of a group.
    #[inline]
    pub fn leader(&self, group: usize) -> Rank {
        self.ranks[self.starts[group]]
    }

    /// The leaders of all groups.
    pub fn leaders(&self) -> Vec<Rank> {
        (0..self.len()).map(|group| self.leader(group)).collect()
    }

    /// The position of a rank in its group.
    #[inline]
    pub fn place(&self, rank: Rank) -> usize {
        self.ranks(self.group(rank)).binary_search(&rank).expect("a rank is in its group")
    }

    /// The number of ranks of the smallest group.
    pub fn least(&self) -> usize {
        (0..self.len()).map(|group| self.ranks(group).len()).min().unwrap_or(0)
    }

    /// The number of ranks of the largest group.
    pub fn most(&self) -> usize {
        (0..self.len()).map(|group| self.ranks(group).len()).max().unwrap_or(0)
    }

    /// Whether each group is one range of ranks, and the ranges follow each other.
    pub fn are_ordered(&self) -> bool {
        self.ranks.iter().enumerate().all(|(place, &rank)| place == rank)
    }

    /// The ranks of a group as ranges, in ascending order.
    pub fn ranges(&self, group: usize) -> Vec<Range<Rank>> {
        let runs = self.ranks(group).chunk_by(|before, after| before + 1 == *after);
        runs.map(|run| run[0]..run[0] + run.len()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_in_the_order_of_their_lowest_ranks() {
        let groups = Groups::of(&[7, 3, 7, 3, 3]);
        assert_eq!((groups.len(), groups.leaders(), groups.least(), groups.most()), (2, vec![0, 1], 2, 3));
        assert_eq!((groups.ranks(0), groups.ranks(1)), (&[0, 2][..], &[1, 3, 4][..]));
        assert_eq!((0..5).map(|rank| groups.place(rank)).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
        assert_eq!((groups.ranges(1), groups.are_ordered()), (vec![1..2, 3..5], false));
        assert!(Groups::of(&[4, 4, 0, 0, 0]).are_ordered());
        assert!(!Groups::of(&[0, 1, 1, 0]).are_ordered());
    }

    #[test]
    fn without_numbers_there_is_one_group() {
        let nodes = Nodes::from(Vec::new());
        assert!(nodes.is_empty());
        assert_eq!(nodes.groups(3).ranks(0), [0, 1, 2]);
    }

    #[test]
    fn what_is_made_from_the_same_nodes_shares_one_grouping() {
        let nodes: Nodes = (0..4096).map(|rank| rank % 64).collect();
        assert!(Arc::ptr_eq(&nodes.groups(4096), &nodes.clone().groups(4096)));
    }
}
