//! One-sided operations over the net, for all that stand above.

pub(crate) mod order;
pub(crate) mod remote;
mod transfer;
