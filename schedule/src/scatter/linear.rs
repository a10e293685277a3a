//! Linear scatter: the root puts to each rank its block.
//!
//! Cost: one round, n - 1 messages of one block, all from the root.
//! Source: Chan, Heimlich, Purkayastha, van de Geijn 2007.

use super::super::schedule::{Builder, Place, Remote};
use super::super::shape::Shape;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    if shape.rank != shape.root {
        b.wait(shape.root, super::DATA);
        return;
    }
    let block = shape.block_bytes();
    for to in (1..shape.n).map(|relative| shape.absolute(relative)) {
        b.put_signal(to, Place::source(to * block), Remote::Target(0), block, super::DATA);
    }
    b.copy(Place::source(shape.root * block), Place::target(0), block);
}
