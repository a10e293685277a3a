//! Algorithms of reduce: the blocks of all ranks, combined, to the root.

mod balanced_tree;
mod binomial;
mod fixed_tree;
mod hierarchical;
mod linear;
mod steps;

use crate::algorithm::Algorithm;

/// The algorithms, in the order in which they are shown.
#[rustfmt::skip] // a line for each
pub(crate) const TABLE: &[Algorithm] = &[
    linear::ALGORITHM,
    balanced_tree::ALGORITHM,
    binomial::ALGORITHM,
    fixed_tree::ALGORITHM,
    hierarchical::ALGORITHM,
];
