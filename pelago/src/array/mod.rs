//! Symmetric arrays and the one-sided operations on them.

mod alloc;
pub(crate) mod amo;
pub(crate) mod local;
pub(crate) mod messages;
pub(crate) mod nb;
pub(crate) mod p2p;
pub(crate) mod rma;
pub(crate) mod signal;
pub(crate) mod symmetric;
pub(crate) mod view;
