//! K-nomial broadcast: a binomial tree to another base; in each round whoever has the block hands it to
//! k - 1 others. Shallower, with more children.
//!
//! Cost: ceil(log n / log k) rounds, n - 1 messages of the whole block, at most k - 1 of one rank a round.
//! Source: Wilkins et al. 2023, Generalized collective algorithms for the exascale era.

use super::super::schedule::Builder;
use super::super::shape::Shape;
use super::tree;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    let links = tree::k_nomial(shape.relative(), shape.n, shape.tuning.radix);
    super::down(shape, b, &links.map(|relative| shape.absolute(relative)));
}
