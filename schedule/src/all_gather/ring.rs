//! Ring all-gather: each rank forwards to the next rank the block that it received from the rank before it.
//!
//! Cost: n - 1 rounds, n - 1 messages of one block from each rank, all to the same neighbour.
//! Source: Thakur, Rabenseifner, Gropp 2005.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::layout::Layout;
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllGather,
    name: "ring",
    summary: "blocks go around a ring of ranks",
    source: "Thakur, Rabenseifner, Gropp 2005",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (layout, me, n) = (Layout::of(shape), shape.rank, shape.n);
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    if n > 1 {
        layout.put_own(b, me, right, 0);
    }
    layout.copy_own(b, me);
    for round in 0..n - 1 {
        if round > 0 {
            let block = (me + n - round) % n;
            layout.pass_on(b, block..block + 1, right, round);
        }
        b.wait(left, round);
    }
}
