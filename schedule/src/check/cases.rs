//! The cases for which algorithms are checked: shapes of operations, with roots, sizes, layouts and nodes.
//!
//! Invariant: a case is a shape for each rank of a team, and the shapes agree where all ranks must.

use crate::nodes::Nodes;
use crate::schedule::Rank;
use crate::shape::{Blocks, Operation, Shape, Tuning};
use std::fmt;

/// The layout of blocks in source and target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// All of one size, one after the other.
    Equal,
    /// All-gather: of different sizes, some of them 0.
    Counts,
    /// All-to-all: of different sizes, in an order of their own, with gaps.
    Exchanged,
    /// All-to-all: with gaps between elements.
    Strided,
}

/// The nodes of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeMap {
    /// All ranks are on one node.
    One,
    /// This number of nodes, each with a contiguous range of ranks, of unequal sizes.
    Runs(u32),
    /// This number of nodes; ranks are assigned to them in turn.
    Turns(u32),
}

/// A shape for each rank of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The operation.
    pub operation: Operation,
    /// Ranks of the team.
    pub n: usize,
    /// The root, where there is one; else 0.
    pub root: Rank,
    /// Elements of a block.
    pub count: usize,
    /// Size of an element in bytes.
    pub element_bytes: usize,
    /// The layout of the blocks.
    pub layout: Layout,
    /// Whether source and target are the same memory.
    pub in_place: bool,
    /// The nodes of the ranks.
    pub nodes: NodeMap,
    /// Numbers that tune the algorithm.
    pub tuning: Tuning,
}

/// The most elements of the sources or targets of all ranks in one variant.
const ELEMENTS_MAX: usize = 40_000;

const TUNINGS: [Tuning; 3] = [
    Tuning { radix: 2, segment_bytes: 16 },
    Tuning { radix: 3, segment_bytes: 1 },
    Tuning { radix: 8, segment_bytes: 32 << 10 },
];

const NODE_MAPS: [NodeMap; 5] =
    [NodeMap::One, NodeMap::Runs(2), NodeMap::Turns(3), NodeMap::Runs(4), NodeMap::Turns(2)];

impl Case {
    /// Equal blocks of `count` elements of 8 bytes, not in place, on one node, the root 0.
    pub fn new(operation: Operation, n: usize, count: usize) -> Case {
        Case {
            operation,
            n,
            root: 0,
            count,
            element_bytes: 8,
            layout: Layout::Equal,
            in_place: false,
            nodes: NodeMap::One,
            tuning: Tuning::default(),
        }
    }

    /// Whether an operation can be done in place.
    pub fn can_be_in_place(operation: Operation) -> bool {
        operation == Operation::Broadcast || operation.combines() && operation != Operation::ReduceScatter
    }

    /// The layouts of an operation.
    pub fn layouts(operation: Operation) -> &'static [Layout] {
        match operation {
            Operation::AllGather | Operation::Gather | Operation::Scatter => &[Layout::Equal, Layout::Counts],
            Operation::AllToAll => &[Layout::Equal, Layout::Exchanged, Layout::Strided],
            _ => &[Layout::Equal],
        }
    }

    /// The shape of a rank.
    pub fn shape(&self, rank: Rank) -> Shape {
        self.shapes()(rank)
    }

    /// The shapes of all ranks, whose nodes are grouped once.
    pub fn shapes(&self) -> impl Fn(Rank) -> Shape + '_ {
        let nodes = Nodes::from(self.node_numbers());
        move |rank| Shape {
            root: self.root,
            blocks: self.blocks(rank),
            in_place: self.in_place,
            nodes: nodes.clone(),
            tuning: self.tuning,
            ..Shape::new(self.operation, rank, self.n, self.count, self.element_bytes)
        }
    }

    /// This case with other counts, layouts, nodes and tuning numbers, in all combinations.
    pub fn variants(self) -> Vec<Case> {
        let blocks = self.operation.source_blocks(self.n).max(self.operation.target_blocks(self.n));
        let is_small = |count: &usize| *count <= 1 || self.n * blocks * count <= ELEMENTS_MAX;
        let is_first = self.n <= 9 || [0, 1, self.n / 2, self.n - 1].contains(&self.root);
        let counts = [0, 1, 3, self.n + 1, 40].into_iter().filter(is_small);
        let counts = counts.filter(|count| *count <= 3 || is_first);
        let places: &[bool] = if Case::can_be_in_place(self.operation) { &[false, true] } else { &[false] };
        let mut cases = Vec::new();
        for count in counts {
            for &layout in Case::layouts(self.operation) {
                for &in_place in places {
                    for nodes in NODE_MAPS {
                        for tuning in TUNINGS {
                            cases.push(Case { count, layout, in_place, nodes, tuning, ..self });
                        }
                    }
                }
            }
        }
        cases
    }

    /// One of the variants, a different one for each number.
    pub fn variant(self, number: usize) -> Case {
        let cases = self.variants();
        // 37 has no divisor in common with the number of variants, so that all are used.
        cases[number * 37 % cases.len()]
    }

    fn blocks(&self, rank: Rank) -> Blocks {
        let ranks = 0..self.n;
        match self.layout {
            Layout::Equal => Blocks::Equal,
            Layout::Strided => Blocks::Strided { source: 2, target: 3 },
            Layout::Counts => Blocks::Counts(ranks.map(|rank| uneven(self.count, rank, 0)).collect()),
            Layout::Exchanged => Blocks::Exchanged {
                source: behind_each_other(ranks.clone().rev().map(|to| (to, uneven(self.count, rank, to)))),
                target: behind_each_other(ranks.map(|from| (from, uneven(self.count, from, rank)))),
            },
        }
    }

    fn node_numbers(&self) -> Vec<u32> {
        let n = self.n as u32;
        match self.nodes {
            NodeMap::One => Vec::new(),
            // The first node has one rank, the other ranks are shared evenly: the sizes are unequal wherever
            // that is possible.
            NodeMap::Runs(nodes) => (0..n)
                .map(|rank| match rank {
                    0 => 0,
                    _ if nodes < 2 => 0,
                    _ => 1 + (rank - 1) * (nodes - 1) / (n - 1),
                })
                .collect(),
            NodeMap::Turns(nodes) => (0..n).map(|rank| (rank * 5 / 3 + rank) % nodes).collect(),
        }
    }
}

/// A size around `count` that depends on two ranks; often 0.
fn uneven(count: usize, from: Rank, to: Rank) -> usize {
    (from * 7 + to * 5 + 3) % 4 * count / 2
}

/// Places of blocks, given with their lengths in the order in which they lie, with a gap after each.
fn behind_each_other(blocks: impl Iterator<Item = (Rank, usize)>) -> Vec<(usize, usize)> {
    let mut end = 0;
    let mut places: Vec<(Rank, (usize, usize))> = blocks
        .map(|(rank, length)| {
            let start = end;
            end += length + 1;
            (rank, (start, length))
        })
        .collect();
    places.sort_unstable_by_key(|&(rank, _)| rank);
    places.into_iter().map(|(_, place)| place).collect()
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} ranks", self.operation, self.n)?;
        if self.operation.is_rooted() {
            write!(f, ", root {}", self.root)?;
        }
        write!(f, ", {} elements of {} B", self.count, self.element_bytes)?;
        if self.layout != Layout::Equal {
            write!(f, ", blocks {:?}", self.layout)?;
        }
        if self.in_place {
            write!(f, ", in place")?;
        }
        if self.nodes != NodeMap::One {
            write!(f, ", nodes {:?}", self.nodes)?;
        }
        if self.tuning != Tuning::default() {
            write!(f, ", radix {}, pieces of {} B", self.tuning.radix, self.tuning.segment_bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_nodes_of_all_ranks_are_grouped_once() {
        let case = Case { nodes: NodeMap::Turns(64), ..Case::new(Operation::Barrier, 4096, 1) };
        let shape = case.shapes();
        let groups = shape(0).groups();
        assert!((0..4096).all(|rank| Arc::ptr_eq(&shape(rank).groups(), &groups)));
    }
}
