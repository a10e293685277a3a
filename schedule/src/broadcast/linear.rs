//! Linear broadcast: the root puts its block to each rank.
//!
//! Cost: one round, n - 1 messages, all from the root: it sends (n - 1) s bytes for a block of s bytes.
//! Source: folklore; the flat tree of Pjesivac-Grbovic et al. 2007.

use super::steps::{DATA, keep, origin};
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::{Builder, Remote};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Broadcast,
    name: "linear",
    summary: "the root puts to each rank",
    source: "Pjesivac-Grbovic et al. 2007",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    if shape.rank != shape.root {
        b.wait(shape.root, DATA);
        return;
    }
    for to in (1..shape.n).map(|relative| shape.absolute(relative)) {
        b.put_signal(to, origin(shape), Remote::Target(0), shape.block_bytes(), DATA);
    }
    keep(shape, b);
}
