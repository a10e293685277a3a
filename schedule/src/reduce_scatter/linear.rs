//! Linear reduce-scatter: each rank receives its block from all ranks and combines the contributions in the
//! order of ranks.
//!
//! The results are ((x0 op x1) op x2) op ..., as in every algorithm that folds in rank order. One round, n
//! (n - 1) messages of a block. Each block larger than a mailbox costs one announcement more, and a rank
//! needs scratch memory for n - 1 such blocks, since it receives from all ranks at once.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::rank_fold::RankFold;
use crate::combine::transfer::{deliver, take};
use crate::schedule::{Builder, Place, Remote};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::ReduceScatter,
    name: "linear",
    summary: "each rank takes its block from all, in the order of ranks",
    source: "",
    fold: Fold::Ranks,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (n, me, bytes) = (shape.n, shape.rank, shape.block_bytes());
    let others = || (1..n).map(move |distance| (me + distance) % n);
    let is_large = bytes > b.mailbox_bytes();
    // The block from a rank has the buffer with the number of the distance to that rank, from 1 to n - 1.
    let rooms = if is_large { b.scratch((n - 1) * bytes) } else { Place::target(0) };
    let room = |of: usize| rooms.plus(if is_large { ((of + n - me) % n - 1) * bytes } else { 0 });
    if is_large {
        for rank in others() {
            b.announce(rank, n + me, room(rank));
        }
    }
    for rank in others() {
        let into = Remote::Announced { slot: n + rank, offset: 0 };
        if is_large {
            b.wait(rank, n + rank);
        }
        deliver(b, rank, Place::source(rank * bytes), bytes, into, me);
    }
    let own = Place::source(me * bytes);
    let mut fold = RankFold::new(own, Place::target(0), bytes);
    for rank in 0..n {
        let operand = if rank == me { own } else { take(b, rank, bytes, room(rank), rank) };
        fold.add(b, operand);
    }
    fold.finish(b);
}
