//! An algorithm: a name, where it is described, and the function that writes the schedule of a rank.
//!
//! Invariant: a builder is a pure function of the shape and of the size of a mailbox.

use crate::schedule::{Builder, Schedule};
use crate::shape::{Operation, Shape};

/// An algorithm for a collective operation.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// The operation that it performs.
    pub operation: Operation,
    /// Its name, unique for its operation.
    pub name: &'static str,
    /// How it works, in one line.
    pub summary: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// The order in which it combines elements.
    pub fold: Fold,
    /// The ranks that communicate with each other.
    pub graph: Graph,
    /// The reason why it cannot perform the operation of a shape, or `None` if it can. The result is the
    /// same at all ranks.
    pub restriction: fn(&Shape) -> Option<&'static str>,
    /// Writes the schedule of a rank.
    pub build: fn(&Shape, &mut Builder),
}

/// The order in which an algorithm combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// It combines nothing.
    None,
    /// Every result is ((x0 op x1) op x2) op ...: the same for every algorithm of this kind.
    Ranks,
    /// By a tree of its own, in which operands from lower ranks stand on the left: correct for every
    /// associative operation.
    Tree,
    /// In any order: correct for operations that are associative and commutative.
    Any,
}

/// The communication graph of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graph {
    /// The edges of recursive doubling: always the same, log n edges for each rank.
    Doubling,
    /// A balanced tree with the operation's root at its root: its edges change with the root.
    TreeStructure,
    /// One tree for all roots, whose edges never change.
    TreeEdges,
    /// The balanced tree at rank 0, of an operation without a root: both of the graphs before.
    TreeAtRankZero,
    /// Any other graph.
    Other,
}

impl Graph {
    /// Whether an algorithm with this graph has the edges of the graph `wanted`.
    pub fn serves(self, wanted: Graph) -> bool {
        let is_tree = matches!(wanted, Graph::TreeStructure | Graph::TreeEdges);
        self == wanted || self == Graph::TreeAtRankZero && is_tree
    }
}

impl Algorithm {
    /// The schedule of a rank. A mailbox holds `mailbox_bytes` bytes.
    pub fn schedule(&self, shape: &Shape, mailbox_bytes: usize) -> Schedule {
        let mut builder = Builder::new(mailbox_bytes);
        (self.build)(shape, &mut builder);
        builder.finish()
    }
}

/// For an algorithm whose ranks each have a partner on every other node.
pub(crate) fn equal_nodes(shape: &Shape) -> Option<&'static str> {
    let nodes = shape.groups();
    (nodes.least() != nodes.most()).then_some("each node must have the same number of ranks")
}

/// For an algorithm that can perform the operation of every shape.
pub(crate) fn unrestricted(_: &Shape) -> Option<&'static str> {
    None
}
