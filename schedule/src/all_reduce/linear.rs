//! Linear all-reduce: each part of the block is combined by one rank in the order of ranks, and given to all.
//!
//! The result is ((x0 op x1) op x2) op ..., as in every algorithm that folds so, whatever the number of
//! parts. There are as many parts as it takes to fit in mailboxes, at most n. Two rounds, 2 (n - 1) messages
//! of a part for each part; in parts larger than a mailbox, n of them, contributions are announced and got: 3
//! n (n - 1) messages. Few ranks that have a small block send it to each other and all combine all: one
//! round, n (n - 1) messages.

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

/// So many ranks combine small blocks all by themselves.
const DIRECT_RANKS_MAX: usize = 8;

fn build(shape: &Shape, b: &mut Builder) {
    let is_small = shape.block_bytes() <= b.mailbox_bytes();
    if shape.n == 1 || (shape.n <= DIRECT_RANKS_MAX && is_small) {
        direct(shape, b);
    } else {
        by_parts(shape, b);
    }
}

/// The other ranks, from the next one on, so that not all turn to the same at once.
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
    let in_mailbox = (b.mailbox_bytes() / shape.element_bytes).max(1);
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

/// Gets the others' contributions to a part, to where this says, in the order of ranks.
fn get_part(shape: &Shape, b: &mut Builder, offset: usize, bytes: usize) -> Place {
    let into = b.scratch(shape.n * bytes);
    for rank in others(shape.n, shape.rank) {
        b.wait(rank, rank);
        b.get(rank, Remote::Announced { slot: rank, offset }, into.plus(rank * bytes), bytes);
    }
    b.complete();
    into
}
