//! Algorithms of all_gather: the blocks of all ranks to the targets of all ranks. All algorithms support
//! blocks of different sizes.

mod bruck;
mod hierarchical;
mod lanes;
mod linear;
mod neighbour_exchange;
mod recursive_doubling;
mod ring;

use crate::algorithm::Algorithm;

/// The algorithms, in the order in which they are shown.
#[rustfmt::skip] // a line for each
pub(crate) const TABLE: &[Algorithm] = &[
    linear::ALGORITHM,
    ring::ALGORITHM,
    bruck::ALGORITHM,
    recursive_doubling::ALGORITHM,
    neighbour_exchange::ALGORITHM,
    hierarchical::ALGORITHM,
    lanes::ALGORITHM,
];
