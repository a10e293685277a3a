//! Algorithms of the scans: each rank receives the combination of the blocks of the ranks up to it, or before
//! it.

mod chain;
mod doubling;
mod exclusive_doubling;
mod exclusive_linear;
mod inclusive_doubling;
mod inclusive_linear;

use crate::algorithm::Algorithm;

/// The algorithms, in the order in which they are shown.
#[rustfmt::skip] // a line for each
pub(crate) const TABLE: &[Algorithm] = &[
    inclusive_linear::ALGORITHM,
    inclusive_doubling::ALGORITHM,
    exclusive_linear::ALGORITHM,
    exclusive_doubling::ALGORITHM,
];
