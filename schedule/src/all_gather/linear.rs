//! Linear all-gather: each rank puts its block to every other.
//!
//! Cost: one round, n - 1 messages of one block from each rank. No block is forwarded.
//! Source: Thakur, Rabenseifner, Gropp 2005.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::layout::Layout;
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllGather,
    name: "linear",
    summary: "each rank puts to each other",
    source: "Thakur, Rabenseifner, Gropp 2005",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (layout, me, n) = (Layout::of(shape), shape.rank, shape.n);
    for distance in 1..n {
        layout.put_own(b, me, (me + distance) % n, me);
    }
    layout.copy_own(b, me);
    for of in (1..n).map(|distance| (me + n - distance) % n) {
        b.wait(of, of);
    }
}
