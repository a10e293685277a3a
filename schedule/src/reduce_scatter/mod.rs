//! Algorithms of reduce-scatter: the n blocks of all ranks, combined block by block, one result to each rank.

mod linear;
mod recursive_halving;
mod ring;

use crate::algorithm::Algorithm;

/// The algorithms, in the order in which they are shown.
#[rustfmt::skip] // a line for each
pub(crate) const TABLE: &[Algorithm] = &[
    linear::ALGORITHM,
    recursive_halving::ALGORITHM,
    ring::ALGORITHM,
];
