//! Exclusive scan by recursive doubling (Hillis, Steele 1986).
//!
//! A rank has two sums: that of the ranks before it, which is its result at the end, and, as long as it must
//! send it to other ranks, the sum that includes its own contribution. ceil(log2 n) rounds, less than n log2
//! n messages of a block each; each block larger than a mailbox costs one announcement more, except in the
//! first round if the operation is not in place.

use super::doubling::Doubling;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::contribution;
use crate::combine::transfer::has_room_for_sums;
use crate::schedule::{Builder, Place};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::ExclusiveScan,
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
    let is_between = shape.rank > 0 && exchanges.gives(0);
    let mut with_own = if fits && is_between { shape.source(b) } else { contribution(shape) };
    let mut result: Option<Place> = None;
    for round in exchanges.rounds() {
        if exchanges.gives(round) {
            exchanges.give(b, round, with_own);
        }
        if !exchanges.takes(round) {
            continue;
        }
        let got = exchanges.take(b);
        if exchanges.gives(round + 1) {
            // A small sum has a place of its own in each round, so that no rank waits until the previous sum
            // has been read.
            let into = if fits || result.is_none() { b.scratch(bytes) } else { with_own };
            if into == with_own {
                b.complete();
            }
            b.reduce(got, with_own, into, bytes);
            with_own = into;
        }
        result = Some(match result {
            None if fits || got == target => got,
            None => {
                // In place: the operand that was sent lies in the target.
                b.complete();
                b.copy(got, target, bytes);
                target
            }
            Some(before) => {
                b.reduce(got, before, target, bytes);
                target
            }
        });
        exchanges.release(b);
    }
    if let Some(result) = result {
        b.copy(result, target, bytes);
    }
}
