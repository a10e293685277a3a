//! Pairwise all-to-all: in each round a rank sends to one other rank and receives from one other rank, the
//! same one if n is a power of two.
//!
//! Cost: n - 1 rounds, n - 1 messages of one block from each rank, and one announcement for each block that
//! can neither go straight into a target nor into a mailbox. Scratch memory for at most two blocks.
//! Source: Thakur, Rabenseifner, Gropp 2005.

use super::exchange::Exchange;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllToAll,
    name: "pairwise",
    summary: "in each round an exchange with one other rank",
    source: "Thakur, Rabenseifner, Gropp 2005",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (me, n) = (shape.rank, shape.n);
    let exchange = Exchange::new(shape, b, 1);
    exchange.keep(b);
    for round in 1..n {
        let (to, of) = match n.is_power_of_two() {
            true => (me ^ round, me ^ round),
            false => ((me + round) % n, (me + n - round) % n),
        };
        exchange.expect(b, of, round);
        exchange.send(b, to, round);
        exchange.receive(b, of, round);
        if exchange.packs() {
            b.complete();
        }
    }
}
