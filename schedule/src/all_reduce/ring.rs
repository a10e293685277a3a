//! All-reduce around a ring (Patarasuk, Yuan 2009).
//!
//! The block is cut into n parts. Part p starts at rank p and is combined with the contribution of each rank
//! that it reaches; once it is complete, it goes around the ring a second time. 2 (n - 1) rounds, 2 n (n - 1)
//! messages of 1/n of a block: each rank sends 2 (n - 1) / n blocks, which is the minimum, and only to its
//! right neighbour. The operands of part p begin with that of rank p, so the operation must commute.
//!
//! Parts arrive at their final place in the target. In an operation in place the target holds the
//! contributions, so parts larger than a mailbox arrive in scratch memory, which each rank announces once.
//! Each part has its own place there, since a left neighbour may be several parts ahead.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::contribution;
use crate::combine::transfer::{deliver, take};
use crate::schedule::{Builder, Place, Remote};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllReduce,
    name: "ring",
    summary: "n parts go around a ring twice, first to be combined, then to be distributed",
    source: "Patarasuk, Yuan 2009",
    fold: Fold::Any,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (n, me) = (shape.n, shape.rank);
    let (own, target) = (contribution(shape), Place::target(0));
    if n == 1 {
        return b.copy(own, target, shape.block_bytes());
    }
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    let part = |part: usize| shape.part_bytes(shape.count, n, part % n);
    let (first_known, announced) = (n - 1, 2 * n - 2);
    let (_, stride) = part(0);
    let is_apart = shape.in_place && stride > b.mailbox_bytes();
    let rooms = if is_apart { b.scratch((n - 1) * stride) } else { target };
    if is_apart {
        b.announce(left, announced, rooms);
        b.wait(right, announced);
    }
    let room = |round: usize, offset: usize| if is_apart { round * stride } else { offset };
    for round in 0..n - 1 {
        let (offset, bytes) = part(me + n - round);
        let from = if round == 0 { own } else { target };
        let into = match is_apart {
            true => Remote::Announced { slot: announced, offset: room(round, offset) },
            false => Remote::Target(offset),
        };
        deliver(b, right, from.plus(offset), bytes, into, round);
        let (offset, bytes) = part(me + n - round - 1);
        let got = take(b, left, bytes, rooms.plus(room(round, offset)), round);
        b.reduce(got, own.plus(offset), target.plus(offset), bytes);
    }
    for round in 0..n - 1 {
        let (offset, bytes) = part(me + n + 1 - round);
        let slot = first_known + round;
        b.put_signal(right, target.plus(offset), Remote::Target(offset), bytes, slot);
        b.wait(left, slot);
    }
}
