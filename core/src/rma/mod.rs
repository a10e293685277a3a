//! One-sided operations over the network, for the layers above.

pub mod order;
pub mod remote;
mod transfer;
