//! Linear reduce: the root combines the contributions one after the other, in the order of ranks.
//!
//! The result is ((x0 op x1) op x2) op ..., as in every algorithm that folds in rank order. One round, in
//! which the root receives n - 1 messages of a block each; blocks larger than a mailbox cost n - 1
//! announcements more.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::contribution;
use crate::combine::rank_fold::RankFold;
use crate::combine::transfer::{Inbox, Incoming, Wire, give};
use crate::schedule::{Builder, Place, Rank};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Reduce,
    name: "linear",
    summary: "the root takes all contributions, in the order of ranks",
    source: "",
    fold: Fold::Ranks,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (bytes, root) = (shape.block_bytes(), shape.root);
    let own = contribution(shape);
    let wire = |rank: Rank| Wire { data: rank - usize::from(rank > root), room: 0 };
    if shape.rank != root {
        return give(b, root, own, bytes, wire(shape.rank), false);
    }
    let others = (0..shape.n).filter(|&rank| rank != root);
    let incoming = |rank| Incoming { of: rank, wire: wire(rank), into_target: false };
    let mut inbox = Inbox::open(b, bytes, others.map(incoming).collect());
    let mut fold = RankFold::new(own, Place::target(0), bytes);
    for rank in 0..shape.n {
        let operand = if rank == root { own } else { inbox.receive(b) };
        if fold.add(b, operand) {
            inbox.release(b);
        }
    }
    fold.finish(b);
}
