//! Algorithms of gather: the blocks of all ranks to the root's target.

mod binomial;
mod linear;

use crate::algorithm::Algorithm;

/// The algorithms, in the order in which they are shown.
#[rustfmt::skip] // a line for each
pub(crate) const TABLE: &[Algorithm] = &[
    linear::ALGORITHM,
    binomial::ALGORITHM,
];
