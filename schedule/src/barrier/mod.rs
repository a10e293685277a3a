//! Algorithms of barrier: each lets no rank leave before all have come, by signals alone.

mod dissemination;
mod fixed_tree;
mod hierarchical;
mod tree;

use crate::algorithm::Algorithm;

/// The algorithms, in the order in which they are shown.
#[rustfmt::skip] // a line for each
pub(crate) const TABLE: &[Algorithm] = &[
    dissemination::ALGORITHM,
    tree::ALGORITHM,
    fixed_tree::ALGORITHM,
    hierarchical::ALGORITHM,
];
