//! Linear exclusive scan: a chain in which each rank keeps the sum that it receives, and forwards it with its
//! contribution added.
//!
//! The results are ((x0 op x1) op x2) op ..., as in every algorithm that folds in rank order. n - 1 rounds
//! and n - 1 messages of a block; a larger block goes in s pieces, n - 2 + s rounds and s (n - 1) messages.
//! Pieces larger than a mailbox go straight into the target, but not in an operation in place. This holds for
//! the last rank as well, although no rank needs its contribution: it may still be filling its source when
//! the pieces arrive.

use super::chain::Chain;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::contribution;
use crate::schedule::{Builder, Place};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::ExclusiveScan,
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
    let own = contribution(shape);
    let has_sums = shape.rank > 0 && !chain.is_last();
    let sums = if has_sums { b.scratch(shape.block_bytes()) } else { own };
    for piece in chain.pieces() {
        let (_, offset, bytes) = piece;
        if shape.rank > 0 {
            let got = chain.take(b, piece);
            if has_sums {
                b.reduce(got, own.plus(offset), sums.plus(offset), bytes);
                chain.hand_on(b, sums.plus(offset), piece);
            }
            b.copy(got, Place::target(offset), bytes);
        } else if !chain.is_last() {
            chain.hand_on(b, own.plus(offset), piece);
        }
    }
}
