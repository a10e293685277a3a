//! K-nomial broadcast: the binomial tree generalised to base k: in each round, each rank that has the block
//! sends it to k - 1 others. The tree is shallower, and its nodes have more children.
//!
//! Cost: ceil(log n / log k) rounds, n - 1 messages of the whole block, at most k - 1 from one rank in a
//! round.
//! Source: Wilkins et al. 2023, Generalized collective algorithms for the exascale era.

use super::steps::down;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};
use crate::tree;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Broadcast,
    name: "k_nomial",
    summary: "over a k-nomial tree from the root",
    source: "Wilkins et al. 2023",
    fold: Fold::None,
    graph: Graph::TreeStructure,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let links = tree::k_nomial(shape.relative(), shape.n, shape.tuning.radix);
    down(shape, b, &links.map(|relative| shape.absolute(relative)));
}
