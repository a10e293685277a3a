//! Algorithms of broadcast: the root's block goes straight into the targets of the others.
//!
//! Invariant: only the root itself writes the root's target, so source and target may be the same memory.

mod balanced_tree;
mod binomial;
mod chain;
mod doubling;
mod fixed_tree;
mod hierarchical;
mod k_nomial;
mod linear;
mod scatter_all_gather;
mod steps;

use crate::algorithm::Algorithm;

/// The algorithms, in the order in which they are shown.
#[rustfmt::skip] // a line for each
pub(crate) const TABLE: &[Algorithm] = &[
    linear::ALGORITHM,
    balanced_tree::ALGORITHM,
    binomial::ALGORITHM,
    k_nomial::ALGORITHM,
    scatter_all_gather::ALGORITHM,
    chain::ALGORITHM,
    doubling::ALGORITHM,
    fixed_tree::ALGORITHM,
    hierarchical::ALGORITHM,
];
