//! An algorithm: a name, where it is described, and the function that writes the schedule of a rank.
//!
//! Invariant: a builder is a pure function of the shape and of the size of a mailbox.

use crate::schedule::{Builder, Schedule};
use crate::shape::{Operation, Shape};

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
pub(crate) fn unrestricted(_: &Shape) -> Option<&'static str> {
    None
}
