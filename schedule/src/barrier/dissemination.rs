//! The dissemination barrier: in round k each rank signals the rank at distance 2^k after it (modulo n) and
//! waits for the rank at distance 2^k before it.
//!
//! Invariant: after round k a rank knows that the 2^(k+1) - 1 ranks before it have arrived.
//! Cost: ceil(log2 n) rounds, with one signal from each rank in each round.
//! Source: Hensgen, Finkel, Manber 1988.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::{Builder, Rank};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Barrier,
    name: "dissemination",
    summary: "in round k each rank signals the rank at distance 2^k",
    source: "Hensgen, Finkel, Manber 1988",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    among(b, shape.rank, shape.n, |rank| rank);
}

/// The barrier among `n` ranks, of which this is number `me`. Uses the slots from 0, one for each round.
pub(super) fn among(b: &mut Builder, me: usize, n: usize, rank: impl Fn(usize) -> Rank) {
    for round in 0..rounds(n) {
        let distance = 1 << round;
        b.signal(rank((me + distance) % n), round);
        b.wait(rank((me + n - distance) % n), round);
    }
}

/// The number of rounds of the barrier among `n` ranks.
pub(super) fn rounds(n: usize) -> usize {
    n.next_power_of_two().trailing_zeros() as usize
}
