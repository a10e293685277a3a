//! Collective operations: what the ranks of a team do together.
//!
//! An algorithm is a pure function from the [`Shape`](shape::Shape) of an operation to a
//! [`Schedule`](schedule::Schedule): data, which are checked without processes, drawn, simulated, and run by
//! the engine. [`table`] has them all.

pub mod check;
pub mod draw;
pub mod nodes;
pub mod reduction;
pub mod schedule;
pub mod shape;
pub mod table;

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

mod all_gather;
mod all_reduce;
mod all_to_all;
mod barrier;
mod broadcast;
mod combine;
mod gather;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;

/// Bytes of a mailbox, which a small message is sent to.
pub const MAILBOX_BYTES: usize = block::MAILBOX_BYTES;
