//! One-sided operations over the network, for the layers above.

pub(crate) mod order;
pub(crate) mod remote;
mod transfer;
