//! Exclusive scan by recursive doubling (Hillis, Steele 1986).
//!
//! A rank has two sums: that of the ranks before it, which is its result in the end, and, as long as it has
//! to give it to others, that with its own contribution. ceil(log2 n) rounds, less than n log2 n messages of
//! a block each; blocks larger than a mailbox cost as many announcements more, but none in the first round if
//! it does not happen in place.

use super::doubling::Doubling;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::contribution;
use crate::schedule::{Builder, Place};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::ExclusiveScan,
    name: "recursive_doubling",
    summary: "in round k everybody hands its sum to the rank 2^k further on",
    source: "Hillis, Steele 1986",
    fold: Fold::Tree,
    graph: Graph::Doubling,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (bytes, target) = (shape.block_bytes(), Place::target(0));
    let fits = bytes <= b.mailbox_bytes();
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
            // A small sum has a place of its own each round, so that nobody waits until the last one is read.
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
                // In place: what was given lies in the target.
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
