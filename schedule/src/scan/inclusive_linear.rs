//! Linear inclusive scan: a chain in which each rank adds its contribution and forwards the sum.
//!
//! The results are ((x0 op x1) op x2) op ..., as in every algorithm that folds in rank order. n - 1 rounds
//! and n - 1 messages of a block; a larger block goes in s pieces, n - 2 + s rounds and s (n - 1) messages.

use super::chain::Chain;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::contribution;
use crate::schedule::{Builder, Place};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::InclusiveScan,
    name: "linear",
    summary: "sums go from rank to rank, in pieces",
    source: "",
    fold: Fold::Ranks,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let chain = Chain::join(shape, b);
    let (own, target) = (contribution(shape), Place::target(0));
    for piece in chain.pieces() {
        let (_, offset, bytes) = piece;
        let mut sum = own.plus(offset);
        if shape.rank > 0 {
            let got = chain.take(b, piece);
            b.reduce(got, sum, target.plus(offset), bytes);
            sum = target.plus(offset);
        }
        if !chain.is_last() {
            chain.hand_on(b, sum, piece);
        }
    }
    if shape.rank == 0 {
        b.copy(own, target, shape.block_bytes());
    }
}
