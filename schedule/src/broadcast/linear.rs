//! Linear broadcast: the root puts its block to each rank.
//!
//! Cost: one round, n - 1 messages, all from the root: (n - 1) s bytes leave it for a block of s.
//! Source: folklore; the flat tree of Pjesivac-Grbovic et al. 2007.

use super::super::schedule::{Builder, Remote};
use super::super::shape::Shape;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    if shape.rank != shape.root {
        b.wait(shape.root, super::DATA);
        return;
    }
    for to in (1..shape.n).map(|relative| shape.absolute(relative)) {
        b.put_signal(to, super::origin(shape), Remote::Target(0), shape.block_bytes(), super::DATA);
    }
    super::keep(shape, b);
}
