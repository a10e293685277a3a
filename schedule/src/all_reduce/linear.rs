//! Linear all-reduce: one rank combines each part of the block in the order of ranks and sends the result to
//! all ranks.
//!
//! The result is ((x0 op x1) op x2) op ..., as in every algorithm that folds in rank order, whatever the
//! number of parts. The block is cut into as many parts as are needed for a part to fit in a mailbox, at most
//! n. Two rounds, 2 (n - 1) messages of a part for each part; if the n parts are larger than a mailbox, ranks
//! announce their contributions and the combining rank gets them: 3 n (n - 1) messages. In a small team with
//! a small block, each rank sends its block to all others and every rank combines all blocks: one round,
//! n (n - 1) messages.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::rank_fold::RankFold;
use crate::combine::{contribution, parts_bytes};
use crate::schedule::{Builder, Place, Rank, Remote};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllReduce,
    name: "linear",
    summary: "each part is combined by one rank, in the order of ranks, and given to all",
    source: "",
    fold: Fold::Ranks,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

/// The most bytes of a part, also where mailboxes have no limit: one rank combines it.
const PART_BYTES: usize = 64 << 10;
/// The largest team in which every rank combines all small blocks itself.
const DIRECT_RANKS_MAX: usize = 8;

fn build(shape: &Shape, b: &mut Builder) {
    let is_small = shape.block_bytes() <= b.mailbox_bytes().min(PART_BYTES);
    if shape.n == 1 || (shape.n <= DIRECT_RANKS_MAX && is_small) {
        direct(shape, b);
    } else {
        by_parts(shape, b);
    }
}

/// The other ranks, from the next one on, so that the ranks do not all communicate with the same rank at
/// once.
fn others(n: usize, me: Rank) -> impl Iterator<Item = Rank> {
    (1..n).map(move |distance| (me + distance) % n)
}

fn direct(shape: &Shape, b: &mut Builder) {
    let (n, me, bytes) = (shape.n, shape.rank, shape.block_bytes());
    let own = if n == 1 { contribution(shape) } else { shape.source(b) };
    for rank in others(n, me) {
        b.send(rank, own, bytes, me);
    }
    let mut fold = RankFold::new(own, Place::target(0), bytes);
    for rank in 0..n {
        if rank != me {
            b.wait(rank, rank);
        }
        fold.add(b, if rank == me { own } else { Place::mailbox(rank) });
    }
    fold.finish(b);
}

fn by_parts(shape: &Shape, b: &mut Builder) {
    let (n, me) = (shape.n, shape.rank);
    let (own, target) = (contribution(shape), Place::target(0));
    let in_mailbox = (b.mailbox_bytes().min(PART_BYTES) / shape.element_bytes.max(1)).max(1);
    let parts = shape.count.div_ceil(in_mailbox).clamp(1, n);
    let part = |part: Rank| parts_bytes(shape, parts, part, part + 1);
    let is_small = part(0).1 <= b.mailbox_bytes();
    for rank in others(n, me).filter(|&rank| rank < parts) {
        let (offset, bytes) = part(rank);
        match is_small {
            true => b.send(rank, own.plus(offset), bytes, me),
            false => b.announce(rank, me, Place::source(0)),
        }
    }
    if me < parts {
        let (offset, bytes) = part(me);
        let contributions = if is_small { Place::mailbox(0) } else { get_part(shape, b, offset, bytes) };
        let mut fold = RankFold::new(own.plus(offset), target.plus(offset), bytes);
        for rank in 0..n {
            if rank != me && is_small {
                b.wait(rank, rank);
            }
            fold.add(
                b,
                match rank {
                    _ if rank == me => own.plus(offset),
                    _ if is_small => Place::mailbox(rank),
                    _ => contributions.plus(rank * bytes),
                },
            );
        }
        fold.finish(b);
        for rank in others(n, me) {
            b.put_signal(rank, target.plus(offset), Remote::Target(offset), bytes, n + me);
        }
    }
    for rank in others(n, me).filter(|&rank| rank < parts) {
        b.wait(rank, n + rank);
    }
}

/// Gets the contributions of the other ranks to a part, in the order of ranks. Returns where they are stored.
fn get_part(shape: &Shape, b: &mut Builder, offset: usize, bytes: usize) -> Place {
    let into = b.scratch(shape.n * bytes);
    for rank in others(shape.n, shape.rank) {
        b.wait(rank, rank);
        b.get(rank, Remote::Announced { slot: rank, offset }, into.plus(rank * bytes), bytes);
    }
    b.complete();
    into
}
