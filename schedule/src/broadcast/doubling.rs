//! Broadcast over the edges of recursive doubling: each rank communicates only with ranks whose number
//! differs in one bit, whatever the root. A rank beyond the largest power of two is the child of the rank
//! without the highest bit.
//!
//! Invariant: when ranks are numbered by exclusive or with the root's number, the ranks below the power of
//! two form a binomial tree with root 0, whose edges are edges of the hypercube.
//! Cost: floor(log2 n) rounds, and one or two more if n is not a power of two; n - 1 messages of the whole
//! block.
//! Source: Johnsson and Ho 1989, spanning binomial trees of hypercubes.

use super::steps::down;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::{Builder, Rank};
use crate::shape::{Operation, Shape};
use crate::tree::{self, Links};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Broadcast,
    name: "doubling",
    summary: "over the hypercube, the same edges for all roots",
    source: "Johnsson, Ho 1989",
    fold: Fold::None,
    graph: Graph::Doubling,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    down(shape, b, &links(shape.rank, shape.n, shape.root));
}

fn links(rank: Rank, n: usize, root: Rank) -> Links {
    let cube = 1 << n.ilog2();
    if rank >= cube {
        return match rank == root {
            true => Links { parent: None, children: vec![rank - cube] },
            false => Links { parent: Some(rank - cube), children: Vec::new() },
        };
    }
    let origin = root % cube;
    let mut links = tree::k_nomial(rank ^ origin, cube, 2).map(|number| number ^ origin);
    let beyond = rank + cube;
    if beyond == root {
        links.parent = Some(beyond);
    } else if beyond < n {
        links.children.push(beyond);
    }
    links
}
