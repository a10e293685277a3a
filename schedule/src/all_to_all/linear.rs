//! Linear all-to-all: each rank sends all its blocks at once, first to the rank after it.
//!
//! Cost: one round, n - 1 messages of one block from each rank, and one announcement for each block that can
//! neither go straight into a target nor into a mailbox.
//! Source: Thakur, Rabenseifner, Gropp 2005.

use super::exchange::Exchange;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllToAll,
    name: "linear",
    summary: "everything is sent at once",
    source: "Thakur, Rabenseifner, Gropp 2005",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (me, n) = (shape.rank, shape.n);
    let exchange = Exchange::new(shape, b, n);
    for round in 1..n {
        exchange.expect(b, (me + n - round) % n, round);
    }
    for round in 1..n {
        exchange.send(b, (me + round) % n, round);
    }
    exchange.keep(b);
    for round in 1..n {
        exchange.receive(b, (me + n - round) % n, round);
    }
}
