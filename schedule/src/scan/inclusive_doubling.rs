//! Inclusive scan by recursive doubling (Hillis, Steele 1986).
//!
//! After round k a rank has the sum of itself and the 2^(k + 1) - 1 ranks before it. ceil(log2 n) rounds,
//! less than n log2 n messages of a block each; each block larger than a mailbox costs one announcement
//! more, except in the first round if the operation is not in place.

use super::doubling::Doubling;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::contribution;
use crate::combine::transfer::has_room_for_sums;
use crate::schedule::{Builder, Place};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::InclusiveScan,
    name: "recursive_doubling",
    summary: "in round k each rank sends its sum to the rank at distance 2^k",
    source: "Hillis, Steele 1986",
    fold: Fold::Tree,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (bytes, target) = (shape.block_bytes(), Place::target(0));
    let fits = has_room_for_sums(b, bytes);
    let mut exchanges = Doubling::join(shape, b);
    let mut sum = if fits && shape.rank > 0 { shape.source(b) } else { contribution(shape) };
    for round in exchanges.rounds() {
        if exchanges.gives(round) {
            exchanges.give(b, round, sum);
        }
        if exchanges.takes(round) {
            let got = exchanges.take(b);
            // A small sum has a place of its own in each round, so that no rank waits until the previous sum
            // has been read.
            let into = if fits && exchanges.takes(round + 1) { b.scratch(bytes) } else { target };
            if into == sum && exchanges.gives(round) {
                b.complete();
            }
            b.reduce(got, sum, into, bytes);
            exchanges.release(b);
            sum = into;
        }
    }
    b.copy(sum, target, bytes);
}
