//! The definitions that all layers use: elements, errors, the encoding of collective calls, the conditions
//! that a PE waits for, counters.

pub(crate) mod atomic_ops;
pub(crate) mod atomic_type;
pub(crate) mod awaited;
pub(crate) mod call;
pub(crate) mod counters;
pub(crate) mod element;
pub(crate) mod error;
pub(crate) mod kind;
pub(crate) mod label;
pub(crate) mod locked;
pub(crate) mod panic_message;
pub(crate) mod semaphore_kind;
pub(crate) mod signal_op;
pub(crate) mod vote;
