//! A barrier by recursive doubling: in round k each rank signals the rank whose number differs in bit k, and
//! waits for its signal. A rank beyond the largest power of two signals the rank without the highest bit
//! before the rounds, which signals it after them.
//!
//! Invariant: after round k a rank knows that all ranks whose numbers differ in the bits up to k have
//! arrived, and those beyond that are paired with them. All teams that consist of the first ranks of a
//! larger one use its edges. Cost: floor(log2 n) rounds with one signal from each rank, and if n is not a
//! power of two, two rounds more and 2 signals more for each rank beyond. Source: Hensgen, Finkel, Manber
//! 1988, the butterfly barrier that they improve; Welch and Venkata, "On Synchronisation and Memory Reuse
//! in OpenSHMEM", whose recursive doubling has edges that stay the same.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::doubling::Pairing;
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Barrier,
    name: "hypercube",
    summary: "in round k each rank exchanges signals with the rank that differs in bit k",
    source: "Welch, Venkata: On Synchronisation and Memory Reuse in OpenSHMEM",
    fold: Fold::None,
    graph: Graph::Doubling,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let pairing = Pairing::over_hypercube(shape.n);
    // The slot after those of the rounds is for the signals from and to the ranks beyond.
    let (me, beyond) = (shape.rank, pairing.rounds);
    let Some(number) = pairing.number(me) else {
        b.signal(me - pairing.distance(), beyond);
        return b.wait(me - pairing.distance(), beyond);
    };
    let mate = pairing.is_doubled(number).then_some(me + pairing.distance());
    if let Some(mate) = mate {
        b.wait(mate, beyond);
    }
    for round in 0..pairing.rounds {
        b.signal(me ^ (1 << round), round);
        b.wait(me ^ (1 << round), round);
    }
    if let Some(mate) = mate {
        b.signal(mate, beyond);
    }
}
