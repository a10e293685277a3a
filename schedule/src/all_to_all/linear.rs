//! Linear all-to-all: everything is sent at once, by each rank first to the rank after it.
//!
//! Cost: one round, n - 1 messages of one block of each rank; as many announcements of blocks that do not go
//! straight into a target and fit in no mailbox.
//! Source: Thakur, Rabenseifner, Gropp 2005.

use super::super::schedule::Builder;
use super::super::shape::Shape;
use super::exchange::Exchange;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
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
