//! Pipelined chain: the block goes from rank to rank in pieces. A rank forwards each piece as soon as it has
//! arrived.
//!
//! Cost, for p pieces: n + p - 2 rounds, (n - 1) p messages; each rank but the last sends the whole block
//! once.
//! Source: Watts and van de Geijn 1995, a pipelined broadcast for multidimensional meshes.

use super::steps::{keep, origin};
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::{Builder, Remote};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Broadcast,
    name: "chain",
    summary: "pieces in a pipeline from rank to rank",
    source: "Watts, van de Geijn 1995",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let relative = shape.relative();
    let pieces = shape.segments(shape.block_bytes());
    for piece in 0..pieces {
        let (offset, bytes) = shape.part_bytes(shape.count, pieces, piece);
        if relative > 0 {
            b.wait(shape.absolute(relative - 1), piece);
        }
        if relative + 1 < shape.n {
            let from = origin(shape).plus(offset);
            b.put_signal(shape.absolute(relative + 1), from, Remote::Target(offset), bytes, piece);
        }
    }
    keep(shape, b);
}
