//! Collective operations: what the ranks of a team do together.
//!
//! An algorithm is a pure function from the [`Shape`](shape::Shape) of an operation to a
//! [`Schedule`](schedule::Schedule): data, which are checked without processes, drawn, simulated, and run by
//! the engine. [`table`] has them all. They are the crate [`pelago_schedule`], which knows no runtime.

pub use pelago_schedule::{check, draw, nodes, schedule, shape, table};

/// Bytes of a mailbox, which a small message is sent to.
pub use pelago_schedule::schedule::MAILBOX_BYTES;

pub mod reduction;
pub mod sync_memory;

mod announced;
pub(crate) mod api;
pub(crate) mod block;
pub(crate) mod call;
pub(crate) mod direct;
pub(crate) mod engine;
mod exchange;
pub(crate) mod hierarchy;
pub(crate) mod plans;
pub(crate) mod request;
pub mod select;
pub(crate) mod span;
pub(crate) mod staging;
pub mod tuning;
mod two_level;
