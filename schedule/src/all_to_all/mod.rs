//! Algorithms of all_to_all: block j of rank i becomes block i of rank j.

mod bruck;
mod exchange;
mod linear;
mod pairwise;

use crate::algorithm::Algorithm;

/// The algorithms, in the order in which they are shown.
#[rustfmt::skip] // a line for each
pub(crate) const TABLE: &[Algorithm] = &[
    pairwise::ALGORITHM,
    bruck::ALGORITHM,
    linear::ALGORITHM,
];
