//! The ranks of a team, grouped by node.
//!
//! Invariant: every rank sees the same groups in the same order; each has at least one rank, and its ranks
//! ascend. The grouping is computed once, in O(n), and shared by all schedules that are made from it. It
//! takes no memory that grows with the team if the ranks are placed by blocks or round robin, and otherwise,
//! if each group is a range, a word a group.

use crate::schedule::Rank;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The longest chain of ranks that share nodes, and the most nodes that it goes through.
const CHAIN_RANKS: usize = 32;
const CHAIN_NODES: usize = 4;

/// The nodes of a team's ranks; empty if all are on one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes(Option<Arc<Groups>>);

/// The ranks of each node, the nodes in the order of their lowest ranks.
#[derive(Debug, PartialEq, Eq)]
pub struct Groups {
    /// The number of ranks.
    n: usize,
    /// The number of groups.
    len: usize,
    form: Form,
}

/// The placement of ranks. Equal groups have the same form: the first of these that is possible.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    /// Rank r is in group r / size.
    Blocks {
        size: usize,
    },
    /// Rank r is in group r mod the number of groups.
    RoundRobin,
    /// Each group is a range of ranks: the start of each, and the end of the last one.
    Ranges {
        starts: Box<[Rank]>,
    },
    Any(List),
}

/// Any placement.
#[derive(Debug, PartialEq, Eq)]
struct List {
    /// The group of each rank.
    group: Vec<u32>,
    /// The ranks, group by group.
    ranks: Vec<Rank>,
    /// The start of each group in `ranks`, and the end of the last one.
    starts: Vec<usize>,
}

/// The ranks of a group, ascending.
#[derive(Clone, Copy, Debug)]
pub enum GroupRanks<'g> {
    /// `len` ranks, every `stride`-th one from `first` on.
    Strided {
        /// The lowest rank.
        first: Rank,
        /// The distance of two ranks.
        stride: usize,
        /// The number of ranks.
        len: usize,
    },
    /// Any ranks.
    List(&'g [Rank]),
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
        self.0.as_ref().is_some_and(|groups| groups.len() < groups.n)
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

impl From<Arc<Groups>> for Nodes {
    fn from(groups: Arc<Groups>) -> Nodes {
        Nodes(Some(groups))
    }
}

impl FromIterator<u32> for Nodes {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Nodes {
        Vec::from_iter(numbers).into()
    }
}

impl Groups {
    /// Bytes of the groups of a team whose ranks are placed by blocks or round robin.
    pub const fn bytes() -> usize {
        size_of::<Groups>()
    }

    /// The groups of ranks, from the number of each rank's node.
    pub fn of(numbers: &[u32]) -> Groups {
        let list = List::of(numbers);
        let (n, len) = (numbers.len(), list.starts.len() - 1);
        Groups { n, len, form: list.form() }
    }

    /// One group of `n` ranks.
    fn one(n: usize) -> Groups {
        Groups { n, len: 1, form: Form::Blocks { size: n.max(1) } }
    }

    /// The number of groups.
    #[allow(clippy::len_without_is_empty, reason = "there is at least one group")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of ranks in all groups.
    #[inline]
    pub fn ranks_len(&self) -> usize {
        self.n
    }

    /// The group of a rank.
    #[inline]
    pub fn group(&self, rank: Rank) -> usize {
        debug_assert!(rank < self.n, "rank {rank} of {}", self.n);
        match &self.form {
            Form::Blocks { size } => rank / size,
            Form::RoundRobin => rank % self.len,
            Form::Ranges { starts } => starts.partition_point(|&start| start <= rank) - 1,
            Form::Any(list) => list.group[rank] as usize,
        }
    }

    /// The ranks of a group.
    #[inline]
    pub fn ranks(&self, group: usize) -> GroupRanks<'_> {
        assert!(group < self.len, "group {group} of {}", self.len);
        let range = |first: Rank, end: Rank| GroupRanks::Strided { first, stride: 1, len: end - first };
        match &self.form {
            Form::Blocks { size } => range(group * size, ((group + 1) * size).min(self.n)),
            Form::RoundRobin => {
                let len = (self.n - group).div_ceil(self.len);
                GroupRanks::Strided { first: group, stride: self.len, len }
            }
            Form::Ranges { starts } => range(starts[group], starts[group + 1]),
            Form::Any(list) => GroupRanks::List(&list.ranks[list.starts[group]..list.starts[group + 1]]),
        }
    }

    /// The lowest rank of a group.
    #[inline]
    pub fn leader(&self, group: usize) -> Rank {
        self.ranks(group).at(0)
    }

    /// The leaders of all groups.
    pub fn leaders(&self) -> Vec<Rank> {
        (0..self.len()).map(|group| self.leader(group)).collect()
    }

    /// The position of a rank in its group.
    #[inline]
    pub fn place(&self, rank: Rank) -> usize {
        match self.ranks(self.group(rank)) {
            GroupRanks::Strided { first, stride, .. } => (rank - first) / stride,
            GroupRanks::List(ranks) => ranks.binary_search(&rank).expect("a rank is in its group"),
        }
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
        matches!(self.form, Form::Blocks { .. } | Form::Ranges { .. })
    }

    /// Whether scans go in a chain of all ranks: it goes from node to node once, and its first ranks wait for
    /// nobody. In a longer one the last ranks would wait too long.
    pub fn suit_chains(&self) -> bool {
        self.len < self.n && self.are_ordered() && self.n <= CHAIN_RANKS && self.len <= CHAIN_NODES
    }

    /// The ranks of a group as ranges, in ascending order.
    pub fn ranges(&self, group: usize) -> Vec<Range<Rank>> {
        match self.ranks(group) {
            GroupRanks::Strided { first, stride: 1, len } => std::iter::once(first..first + len).collect(),
            ranks @ GroupRanks::Strided { .. } => ranks.iter().map(|rank| rank..rank + 1).collect(),
            GroupRanks::List(ranks) => {
                let runs = ranks.chunk_by(|before, after| before + 1 == *after);
                runs.map(|run| run[0]..run[0] + run.len()).collect()
            }
        }
    }
}

impl List {
    fn of(numbers: &[u32]) -> List {
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
        List { group, ranks, starts }
    }

    /// The first form that has these groups.
    fn form(self) -> Form {
        let List { group, ranks, starts } = &self;
        let (n, len) = (ranks.len(), starts.len() - 1);
        if ranks.iter().enumerate().all(|(place, &rank)| place == rank) {
            let size = starts.get(1).map_or(1, |&size| size.max(1));
            return match (0..len).all(|group| starts[group] == group * size) && n <= len * size {
                true => Form::Blocks { size },
                false => Form::Ranges { starts: starts.as_slice().into() },
            };
        }
        match group.iter().enumerate().all(|(rank, &group)| group as usize == rank % len) {
            true => Form::RoundRobin,
            false => Form::Any(self),
        }
    }
}

impl<'g> GroupRanks<'g> {
    /// The number of ranks.
    #[allow(clippy::len_without_is_empty, reason = "a group has at least one rank")]
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            GroupRanks::Strided { len, .. } => *len,
            GroupRanks::List(ranks) => ranks.len(),
        }
    }

    /// The rank at a place.
    #[inline]
    pub fn at(&self, place: usize) -> Rank {
        match self {
            GroupRanks::Strided { first, stride, len } => {
                assert!(place < *len, "place {place} of {len}");
                first + place * stride
            }
            GroupRanks::List(ranks) => ranks[place],
        }
    }

    /// The ranks, ascending.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = Rank> + Clone + use<'g> {
        (0..self.len()).map(move |place| self.at(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn listed(groups: &Groups, group: usize) -> Vec<Rank> {
        groups.ranks(group).iter().collect()
    }

    /// Checks groups against a search through the numbers that they are made of.
    fn check(numbers: &[u32]) -> Groups {
        let groups = Groups::of(numbers);
        let mut order: Vec<u32> = Vec::new();
        numbers.iter().for_each(|number| {
            if !order.contains(number) {
                order.push(*number);
            }
        });
        let of = |number: u32| -> Vec<Rank> {
            (0..numbers.len()).filter(|&rank| numbers[rank] == number).collect()
        };
        let expected: Vec<Vec<Rank>> = order.iter().map(|&number| of(number)).collect();
        assert_eq!((groups.len(), groups.ranks_len()), (expected.len(), numbers.len()));
        for (group, ranks) in expected.iter().enumerate() {
            assert_eq!((&listed(&groups, group), groups.leader(group)), (ranks, ranks[0]));
            assert_eq!(groups.ranges(group).into_iter().flatten().collect::<Vec<_>>(), *ranks);
            for (place, &rank) in ranks.iter().enumerate() {
                assert_eq!((groups.group(rank), groups.place(rank)), (group, place));
            }
        }
        let sizes = || expected.iter().map(Vec::len);
        assert_eq!((groups.least(), groups.most()), (sizes().min().unwrap(), sizes().max().unwrap()));
        assert_eq!(groups.are_ordered(), expected.concat().is_sorted());
        groups
    }

    proptest! {
        #[test]
        fn all_forms_have_the_groups_of_their_numbers(
            numbers in prop::collection::vec(0..6_u32, 1..40),
            sizes in prop::collection::vec(1..5_usize, 1..8),
            (n, nodes) in (1..50_u32, 1..12_u32),
        ) {
            check(&numbers);
            let ranges: Vec<u32> = (0..).zip(&sizes).flat_map(|(node, &size)| vec![node; size]).collect();
            let is_range = matches!(check(&ranges).form, Form::Ranges { .. } | Form::Blocks { .. });
            prop_assert!(is_range);
            let blocks: Vec<u32> = (0..n).map(|rank| 9 + rank / nodes).collect();
            prop_assert_eq!(check(&blocks).form, Form::Blocks { size: nodes.min(n) as usize });
            let round_robin: Vec<u32> = (0..n).map(|rank| 9 - rank % nodes.min(9)).collect();
            let is_regular = matches!(check(&round_robin).form, Form::RoundRobin | Form::Blocks { .. });
            prop_assert!(is_regular);
        }
    }

    #[test]
    fn groups_are_in_the_order_of_their_lowest_ranks() {
        let groups = Groups::of(&[7, 3, 7, 3, 3]);
        assert_eq!((groups.len(), groups.leaders(), groups.least(), groups.most()), (2, vec![0, 1], 2, 3));
        assert_eq!([0, 1].map(|group| listed(&groups, group)), [vec![0, 2], vec![1, 3, 4]]);
        assert_eq!((0..5).map(|rank| groups.place(rank)).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
        assert_eq!((groups.ranges(1), groups.are_ordered()), (vec![1..2, 3..5], false));
        assert!(Groups::of(&[4, 4, 0, 0, 0]).are_ordered());
        assert!(!Groups::of(&[0, 1, 1, 0]).are_ordered());
    }

    #[test]
    fn without_numbers_there_is_one_group() {
        let nodes = Nodes::from(Vec::new());
        assert!(nodes.is_empty());
        assert_eq!(listed(&nodes.groups(3), 0), [0, 1, 2]);
    }

    #[test]
    fn what_is_made_from_the_same_nodes_shares_one_grouping() {
        let nodes: Nodes = (0..4096).map(|rank| rank % 64).collect();
        assert!(Arc::ptr_eq(&nodes.groups(4096), &nodes.clone().groups(4096)));
    }
}
