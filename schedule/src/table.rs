//! The table of algorithms: every schedule that there is, one row each, in the tables of their operations.
//!
//! To add an algorithm: a file in the folder of its operation, with a builder, and a row in that folder's
//! table. The tests that walk this table check it for all team sizes.

use super::schedule::{Builder, Schedule};
use super::shape::{Operation, Shape};
use super::{
    all_gather, all_reduce, all_to_all, barrier, broadcast, gather, reduce, reduce_scatter, scan, scatter,
};

/// An algorithm for a collective operation.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// What it does.
    pub operation: Operation,
    /// Its name, unique for its operation.
    pub name: &'static str,
    /// How it works, in one line.
    pub summary: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// In which order it combines elements.
    pub fold: Fold,
    /// Which ranks talk to each other.
    pub graph: Graph,
    /// Why it cannot do what a shape asks for, if so; the same answer at all ranks.
    pub restriction: fn(&Shape) -> Option<&'static str>,
    /// Writes down the schedule of a rank.
    pub build: fn(&Shape, &mut Builder),
}

/// In which order an algorithm combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// It combines nothing.
    None,
    /// Every result is ((x0 op x1) op x2) op ...: the same for every algorithm of this kind.
    Ranks,
    /// By a tree of its own, in which operands that come from lower ranks stand on the left: right for every
    /// operation that is associative.
    Tree,
    /// In any order: right for operations that are associative and commutative.
    Any,
}

/// Which ranks an algorithm lets talk to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graph {
    /// The edges of recursive doubling: always the same, log n a rank.
    Doubling,
    /// A balanced tree that hangs at the root: its edges change with the root.
    TreeStructure,
    /// One tree for all roots, whose edges never change.
    TreeEdges,
    /// Something else.
    Other,
}

impl Algorithm {
    /// The schedule of a rank. A mailbox holds `mailbox_bytes` bytes.
    pub fn schedule(&self, shape: &Shape, mailbox_bytes: usize) -> Schedule {
        let mut builder = Builder::new(mailbox_bytes);
        (self.build)(shape, &mut builder);
        builder.finish()
    }
}

/// No shape is too much for an algorithm.
pub(super) fn unrestricted(_: &Shape) -> Option<&'static str> {
    None
}

/// All algorithms, the operations in their order.
pub fn algorithms() -> impl Iterator<Item = &'static Algorithm> {
    [
        barrier::TABLE,
        broadcast::TABLE,
        scatter::TABLE,
        gather::TABLE,
        all_gather::TABLE,
        all_to_all::TABLE,
        reduce::TABLE,
        all_reduce::TABLE,
        reduce_scatter::TABLE,
        scan::TABLE,
    ]
    .into_iter()
    .flatten()
}

/// The algorithm of that name.
pub fn find(operation: Operation, name: &str) -> Option<&'static Algorithm> {
    algorithms().find(|algorithm| algorithm.operation == operation && algorithm.name == name)
}

/// Slots that a schedule for a team of `n` may use: a ring goes round twice, a pipeline has its pieces.
pub const fn slots_max(n: usize) -> usize {
    2 * n + 64
}
