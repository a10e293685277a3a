//! Algorithms of scatter: each of the root's blocks goes to the target of its rank.

mod binomial;
mod linear;

use crate::algorithm::Algorithm;

/// The algorithms, in the order in which they are shown.
#[rustfmt::skip] // a line for each
pub(crate) const TABLE: &[Algorithm] = &[
    linear::ALGORITHM,
    binomial::ALGORITHM,
];
