//! Binomial broadcast: each rank that has the block forwards it, so that each round doubles the number of
//! these ranks.
//!
//! Cost: ceil(log2 n) rounds, n - 1 messages of the whole block, at most ceil(log2 n) from one rank.
//! Source: Chan, Heimlich, Purkayastha, van de Geijn 2007, the minimum spanning tree broadcast.

use super::steps::down;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};
use crate::tree;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Broadcast,
    name: "binomial",
    summary: "over a binomial tree from the root",
    source: "Chan, Heimlich, Purkayastha, van de Geijn 2007",
    fold: Fold::None,
    graph: Graph::TreeStructure,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    down(shape, b, &tree::k_nomial(shape.relative(), shape.n, 2).map(|relative| shape.absolute(relative)));
}
