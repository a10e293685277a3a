//! Binomial broadcast: whoever has the block hands it on, so that each round doubles their number.
//!
//! Cost: ceil(log2 n) rounds, n - 1 messages of the whole block, at most ceil(log2 n) of one rank.
//! Source: Chan, Heimlich, Purkayastha, van de Geijn 2007, the minimum spanning tree broadcast.

use super::super::schedule::Builder;
use super::super::shape::Shape;
use super::tree;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    super::down(
        shape,
        b,
        &tree::k_nomial(shape.relative(), shape.n, 2).map(|relative| shape.absolute(relative)),
    );
}
