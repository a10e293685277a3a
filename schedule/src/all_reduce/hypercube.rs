//! All-reduce by recursive doubling over the edges of the hypercube, whatever the number of ranks.
//!
//! In round k each rank exchanges its sum with the rank whose number differs in bit k. A rank beyond the
//! largest power of two first sends its operand to the rank without the highest bit, and receives the result
//! from it at the end. So all teams that consist of the first ranks of a larger one use its edges, at most
//! ceil(log2 n) for each rank (Welch, Venkata 2014). floor(log2 n) rounds with a message of a block from
//! each rank in each round, and if n is not a power of two, two rounds more and 2 messages more for each
//! rank beyond. Each block larger than a mailbox costs one announcement, except in the first round if the
//! operation is not in place. The ranks beyond are the last ones, so the operation must commute.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::contribution;
use crate::combine::doubling::{Group, Pairing, paired};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllReduce,
    name: "hypercube",
    summary: "recursive doubling over the hypercube, the same edges in all teams of first ranks",
    source: "Welch, Venkata: On Synchronisation and Memory Reuse in OpenSHMEM",
    fold: Fold::Any,
    graph: Graph::Doubling,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (group, pairing) = (Group::team(shape.n, shape.rank), Pairing::over_hypercube(shape.n));
    paired(b, group, pairing, (contribution(shape), shape.block_bytes()), !shape.in_place, 0);
}
