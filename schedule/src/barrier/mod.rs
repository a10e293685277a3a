//! Algorithms of barrier: none lets a rank leave before all ranks have arrived. They use signals only.

mod dissemination;
mod fixed_tree;
mod hierarchical;
mod hypercube;
mod tree;

use crate::algorithm::Algorithm;

/// The algorithms, in the order in which they are shown.
#[rustfmt::skip] // a line for each
pub(crate) const TABLE: &[Algorithm] = &[
    dissemination::ALGORITHM,
    hypercube::ALGORITHM,
    fixed_tree::ALGORITHM,
    tree::ALGORITHM,
    hierarchical::ALGORITHM,
];
