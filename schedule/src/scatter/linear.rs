//! Linear scatter: the root puts each rank's block to that rank.
//!
//! Cost: one round, n - 1 messages of one block, all from the root.
//! Source: Chan, Heimlich, Purkayastha, van de Geijn 2007.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::layout::Layout;
use crate::schedule::{Builder, Place, Rank, Remote, Slot};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Scatter,
    name: "linear",
    summary: "the root puts to each rank",
    source: "Chan, Heimlich, Purkayastha, van de Geijn 2007",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

/// The slot whose signal tells that the blocks have arrived.
const DATA: Slot = 0;

fn build(shape: &Shape, b: &mut Builder) {
    if shape.rank != shape.root {
        b.wait(shape.root, DATA);
        return;
    }
    let layout = Layout::of(shape);
    let block = |rank: Rank| (Place::source(layout.start(rank)), layout.bytes(rank..rank + 1));
    for to in (1..shape.n).map(|relative| shape.absolute(relative)) {
        let (from, bytes) = block(to);
        b.put_signal(to, from, Remote::Target(0), bytes, DATA);
    }
    let (from, bytes) = block(shape.root);
    b.copy(from, Place::target(0), bytes);
}
