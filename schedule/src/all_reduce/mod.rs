//! Algorithms of all-reduce: the blocks of all ranks, combined, to all ranks. The result has the same bits
//! at all ranks: each element is computed by the same expression at all ranks, or computed once.

mod binomial;
mod fixed_tree;
mod hierarchical;
mod hypercube;
mod lanes;
mod linear;
mod rabenseifner;
mod recursive_doubling;
mod ring;
mod steps;

use crate::algorithm::Algorithm;

/// The algorithms, in the order in which they are shown.
#[rustfmt::skip] // a line for each
pub(crate) const TABLE: &[Algorithm] = &[
    hypercube::ALGORITHM,
    recursive_doubling::ALGORITHM,
    rabenseifner::ALGORITHM,
    ring::ALGORITHM,
    linear::ALGORITHM,
    fixed_tree::ALGORITHM,
    binomial::ALGORITHM,
    hierarchical::ALGORITHM,
    lanes::ALGORITHM,
];
