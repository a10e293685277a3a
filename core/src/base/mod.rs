//! The definitions that all layers use: elements, errors, the encoding of collective calls, the conditions
//! that a PE waits for, counters.

pub mod atomic_ops;
pub mod atomic_type;
pub mod awaited;
pub mod call;
pub mod counters;
pub mod datum;
pub mod descriptors;
pub mod element;
pub mod error;
pub mod kind;
pub mod label;
pub mod locked;
pub mod panic_message;
pub mod semaphore_kind;
pub mod signal_op;
pub mod trace;
pub mod vote;
pub mod wait_set;
