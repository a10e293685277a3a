//! Linear gather: each rank puts its block into the root's target.
//!
//! Cost: one round, n - 1 messages of one block, all to the root.
//! Source: Chan, Heimlich, Purkayastha, van de Geijn 2007.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::layout::Layout;
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Gather,
    name: "linear",
    summary: "each rank puts to the root",
    source: "Chan, Heimlich, Purkayastha, van de Geijn 2007",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let layout = Layout::of(shape);
    if shape.rank != shape.root {
        layout.put_own(b, shape.rank, shape.root, shape.rank);
        return;
    }
    layout.copy_own(b, shape.rank);
    for of in (1..shape.n).map(|relative| shape.absolute(relative)) {
        b.wait(of, of);
    }
}
