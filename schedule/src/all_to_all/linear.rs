//! Linear all-to-all: everything is sent at once, by each rank first to the rank after it.
//!
//! Cost: one round, n - 1 messages of one block of each rank; as many announcements of blocks that do not go
//! straight into a target and fit in no mailbox.
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
