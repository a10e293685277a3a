//! A barrier on a binomial tree: each rank signals to its parent that all ranks below it have arrived; then
//! rank 0 releases all ranks down the same tree.
//!
//! Cost: 2 ceil(log2 n) rounds, 2 (n - 1) signals in total.
//! Source: Mellor-Crummey and Scott 1991, tree barriers; the tree: Chan, Heimlich, Purkayastha, van de Geijn
//! 2007.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};
use crate::tree::{self, Links};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Barrier,
    name: "tree",
    summary: "arrival up a binomial tree to rank 0, release down",
    source: "Mellor-Crummey, Scott 1991",
    fold: Fold::None,
    graph: Graph::TreeStructure,
    restriction: unrestricted,
    build,
};

/// The slot in which a rank is released.
const RELEASE: usize = 0;

fn build(shape: &Shape, b: &mut Builder) {
    up_and_down(b, shape.rank, |rank| tree::k_nomial(rank, shape.n, 2));
}

/// Arrival up the tree, release down. The children arrive in the slots from 1, the nearest in the first.
pub(super) fn up_and_down(b: &mut Builder, rank: usize, links: impl Fn(usize) -> Links) {
    let Links { parent, children } = links(rank);
    for (index, &child) in children.iter().rev().enumerate() {
        b.wait(child, 1 + index);
    }
    if let Some(parent) = parent {
        let index = links(parent).children.iter().rev().position(|&child| child == rank);
        b.signal(parent, 1 + index.expect("a child of its parent"));
        b.wait(parent, RELEASE);
    }
    for child in children {
        b.signal(child, RELEASE);
    }
}
