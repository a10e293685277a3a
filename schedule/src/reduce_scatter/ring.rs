//! Reduce-scatter around a ring (Patarasuk, Yuan 2009).
//!
//! The block of rank r starts at its right neighbour and is combined with the contribution of each rank that
//! it reaches, until it reaches r. n - 1 rounds, n (n - 1) messages of a block, which is the minimum number
//! of bytes, and only to the right neighbour. The operands of a block begin with that of r + 1, so the
//! operation must commute.
//!
//! The last block arrives in the target, the others, if larger than a mailbox, in scratch memory, which each
//! rank announces once. Each block has its own place there, since a left neighbour may be several blocks
//! ahead.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::transfer::{deliver, take};
use crate::schedule::{Builder, Place, Remote};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::ReduceScatter,
    name: "ring",
    summary: "each block goes once round a ring to its rank",
    source: "Patarasuk, Yuan 2009",
    fold: Fold::Any,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (n, me, bytes) = (shape.n, shape.rank, shape.block_bytes());
    let target = Place::target(0);
    if n == 1 {
        return b.copy(Place::source(0), target, bytes);
    }
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    let (last, announced) = (n - 2, n - 1);
    let sums = b.scratch(last * bytes);
    if last > 0 && bytes > b.mailbox_bytes() {
        b.announce(left, announced, sums);
        b.wait(right, announced);
    }
    let block = |round: usize| Place::source((me + n - 1 - round) % n * bytes);
    let mut have = block(0);
    for round in 0..=last {
        let into = match round == last {
            true => Remote::Target(0),
            false => Remote::Announced { slot: announced, offset: round * bytes },
        };
        deliver(b, right, have, bytes, into, round);
        let sum = if round == last { target } else { sums.plus(round * bytes) };
        let got = take(b, left, bytes, sum, round);
        b.reduce(got, block(round + 1), sum, bytes);
        have = sum;
    }
}
