//! The description of a collective operation, from which builders write schedules and algorithms are chosen.

use crate::nodes::{Groups, Nodes};
use crate::schedule::{Builder, Place, Rank};
use std::fmt;
use std::sync::Arc;

/// The collective operations. In their documentation n is the size of the team, and a block has `count`
/// elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// No rank leaves before all ranks have arrived. No data.
    Barrier,
    /// A block from the root's source to the targets of all ranks, including the root.
    Broadcast,
    /// Block i of the root's source (n blocks) to the target of rank i.
    Scatter,
    /// The sources' blocks, in the order of ranks, to the root's target (n blocks).
    Gather,
    /// The sources' blocks, in the order of ranks, to the targets of all ranks. With [`Blocks::Counts`] the
    /// blocks have different sizes.
    AllGather,
    /// Block j of rank i's source (n blocks) to block i of rank j's target (n blocks).
    AllToAll,
    /// The sources' blocks combined, element by element, in the root's target.
    Reduce,
    /// The same in the targets of all ranks.
    AllReduce,
    /// The sources have n blocks; the combination of the blocks i of all ranks goes to the target of rank i.
    ReduceScatter,
    /// The combination of the sources of ranks 0 to i in the target of rank i.
    InclusiveScan,
    /// The combination of the sources of ranks 0 to i - 1 in the target of rank i; rank 0's target stays as
    /// it is.
    ExclusiveScan,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 11] = [
        Operation::Barrier,
        Operation::Broadcast,
        Operation::Scatter,
        Operation::Gather,
        Operation::AllGather,
        Operation::AllToAll,
        Operation::Reduce,
        Operation::AllReduce,
        Operation::ReduceScatter,
        Operation::InclusiveScan,
        Operation::ExclusiveScan,
    ];

    /// Its name in settings and reports.
    #[inline]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Barrier => "barrier",
            Operation::Broadcast => "broadcast",
            Operation::Scatter => "scatter",
            Operation::Gather => "gather",
            Operation::AllGather => "all_gather",
            Operation::AllToAll => "all_to_all",
            Operation::Reduce => "reduce",
            Operation::AllReduce => "all_reduce",
            Operation::ReduceScatter => "reduce_scatter",
            Operation::InclusiveScan => "inclusive_scan",
            Operation::ExclusiveScan => "exclusive_scan",
        }
    }

    /// The operation with this name.
    pub fn from_name(name: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// Whether the operation has a root.
    #[inline]
    pub const fn is_rooted(self) -> bool {
        use Operation::{Broadcast, Gather, Reduce, Scatter};
        matches!(self, Broadcast | Scatter | Gather | Reduce)
    }

    /// Whether it combines elements.
    #[inline]
    pub const fn combines(self) -> bool {
        use Operation::{AllReduce, ExclusiveScan, InclusiveScan, Reduce, ReduceScatter};
        matches!(self, Reduce | AllReduce | ReduceScatter | InclusiveScan | ExclusiveScan)
    }

    /// Number of blocks of the source of a rank, for a team of `n`; of the root's source where that differs.
    #[inline]
    pub const fn source_blocks(self, n: usize) -> usize {
        use Operation::{AllToAll, Barrier, ReduceScatter, Scatter};
        match self {
            Barrier => 0,
            Scatter | AllToAll | ReduceScatter => n,
            _ => 1,
        }
    }

    /// Number of blocks of the target of a rank, for a team of `n`; of the root's target where that differs.
    #[inline]
    pub const fn target_blocks(self, n: usize) -> usize {
        use Operation::{AllGather, AllToAll, Barrier, Gather};
        match self {
            Barrier => 0,
            Gather | AllGather | AllToAll => n,
            _ => 1,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The layout of the blocks in source and target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// All of `count` elements, one after the other.
    Equal,
    /// All-gather, gather and scatter: the number of elements of each rank's block, known to all ranks.
    /// `count` is not used.
    Counts(Vec<usize>),
    /// All-to-all: the offset and the length of each block, as (offset, elements), in this rank's source and
    /// target, by the other rank. Both ends agree on the length. `count` is not used.
    Exchanged {
        /// In the source, by the rank that receives the block.
        source: Vec<(usize, usize)>,
        /// In the target, by the rank that it comes from.
        target: Vec<(usize, usize)>,
    },
    /// All-to-all: the stride of the elements in source and target, in elements.
    Strided {
        /// In the source.
        source: usize,
        /// In the target.
        target: usize,
    },
}

/// Numbers that tune algorithms; the same at all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Children of a node in k-nomial trees; at least 2.
    pub radix: usize,
    /// Size in bytes of a piece in pipelines; at least 1.
    pub segment_bytes: usize,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning { radix: 4, segment_bytes: 32 << 10 }
    }
}

/// The maximum number of pieces of a pipeline.
pub const SEGMENTS_MAX: usize = 32;

/// The data from which a rank's schedule is made. Everything but `rank`, and the contents of
/// [`Blocks::Exchanged`], is the same at all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The operation.
    pub operation: Operation,
    /// This rank.
    pub rank: Rank,
    /// Ranks of the team.
    pub n: usize,
    /// The root, where there is one; else 0.
    pub root: Rank,
    /// Elements of a block.
    pub count: usize,
    /// Size of an element in bytes.
    pub element_bytes: usize,
    /// The layout of the blocks.
    pub blocks: Blocks,
    /// Whether source and target are the same memory: only for operations with equally many blocks in both,
    /// all of one size. See [`Shape::source`].
    pub in_place: bool,
    /// The node of each rank.
    pub nodes: Nodes,
    /// Numbers that tune the algorithm.
    pub tuning: Tuning,
}

impl Shape {
    /// A shape with equal blocks on one node, not in place, the root 0.
    #[inline]
    pub fn new(operation: Operation, rank: Rank, n: usize, count: usize, element_bytes: usize) -> Shape {
        Shape {
            operation,
            rank,
            n,
            root: 0,
            count,
            element_bytes,
            blocks: Blocks::Equal,
            in_place: false,
            nodes: Nodes::default(),
            tuning: Tuning::default(),
        }
    }

    /// Size of a block in bytes.
    #[inline]
    pub fn block_bytes(&self) -> usize {
        self.count.saturating_mul(self.element_bytes)
    }

    /// The ranks of each node.
    #[inline]
    pub fn groups(&self) -> Arc<Groups> {
        self.nodes.groups(self.n)
    }

    /// This rank's number when ranks are counted from the root.
    #[inline]
    pub fn relative(&self) -> Rank {
        (self.rank + self.n - self.root) % self.n
    }

    /// The rank with a number that is counted from the root.
    #[inline]
    pub fn absolute(&self, relative: Rank) -> Rank {
        (relative + self.root) % self.n
    }

    /// Size of this rank's source in bytes.
    #[inline]
    pub fn source_bytes(&self) -> usize {
        let is_root = self.rank == self.root;
        match (&self.blocks, self.operation) {
            (Blocks::Counts(counts), Operation::Scatter) if is_root => self.all_bytes(counts),
            (Blocks::Counts(_), Operation::Scatter) => 0,
            (Blocks::Counts(counts), _) => counts[self.rank].saturating_mul(self.element_bytes),
            (Blocks::Exchanged { source, .. }, _) => furthest(source).saturating_mul(self.element_bytes),
            (Blocks::Strided { source, .. }, _) => self.strided_bytes(*source),
            (_, Operation::Scatter | Operation::Broadcast) if !is_root => 0,
            _ => self.operation.source_blocks(self.n).saturating_mul(self.block_bytes()),
        }
    }

    /// Size of this rank's target in bytes.
    #[inline]
    pub fn target_bytes(&self) -> usize {
        let is_root = self.rank == self.root;
        match (&self.blocks, self.operation) {
            (Blocks::Counts(counts), Operation::Scatter) => {
                counts[self.rank].saturating_mul(self.element_bytes)
            }
            (Blocks::Counts(_), Operation::Gather) if !is_root => 0,
            (Blocks::Counts(counts), _) => self.all_bytes(counts),
            (Blocks::Exchanged { target, .. }, _) => furthest(target).saturating_mul(self.element_bytes),
            (Blocks::Strided { target, .. }, _) => self.strided_bytes(*target),
            (_, Operation::Gather | Operation::Reduce) if !is_root => 0,
            _ => self.operation.target_blocks(self.n).saturating_mul(self.block_bytes()),
        }
    }

    /// Size of the blocks of all ranks in bytes.
    fn all_bytes(&self, counts: &[usize]) -> usize {
        let elements = counts.iter().fold(0usize, |sum, &count| sum.saturating_add(count));
        elements.saturating_mul(self.element_bytes)
    }

    fn strided_bytes(&self, stride: usize) -> usize {
        match self.n.saturating_mul(self.count) {
            0 => 0,
            elements => {
                let last = (elements - 1).saturating_mul(stride);
                last.saturating_add(1).saturating_mul(self.element_bytes)
            }
        }
    }

    /// This rank's contribution, at a place that does not change while other ranks write this rank's target:
    /// the source itself, or, in an operation in place, a copy in scratch memory; this function adds the step
    /// that copies.
    pub fn source(&self, builder: &mut Builder) -> Place {
        if !self.in_place {
            return Place::source(0);
        }
        let bytes = self.source_bytes();
        let copy = builder.scratch(bytes);
        builder.copy(Place::source(0), copy, bytes);
        copy
    }

    /// Cuts `elements` elements into `parts` parts whose lengths differ by at most one. Returns offset and
    /// length of part `part`, in bytes.
    #[inline]
    pub fn part_bytes(&self, elements: usize, parts: usize, part: usize) -> (usize, usize) {
        let (start, end) = (part_start(elements, parts, part), part_start(elements, parts, part + 1));
        (start * self.element_bytes, (end - start) * self.element_bytes)
    }

    /// The number of pieces in which `bytes` bytes are pipelined.
    #[inline]
    pub fn segments(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.tuning.segment_bytes).clamp(1, SEGMENTS_MAX)
    }
}

/// The end of the last of these blocks, in elements.
fn furthest(blocks: &[(usize, usize)]) -> usize {
    blocks.iter().map(|&(at, elements)| at.saturating_add(elements)).max().unwrap_or(0)
}

fn part_start(elements: usize, parts: usize, part: usize) -> usize {
    elements / parts * part + part.min(elements % parts)
}
