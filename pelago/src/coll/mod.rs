//! Collective operations, which the ranks of a team carry out together.
//!
//! An algorithm is a pure function from the [`Shape`](shape::Shape) of an operation to a
//! [`Schedule`](schedule::Schedule): data, which are checked without processes, drawn, simulated, and run by
//! the engine. [`table`] has them all. They are the crate [`pelago_schedule`], which knows no runtime.

pub use pelago_schedule::{check, draw, nodes, schedule, shape, table};

/// Bytes of a mailbox, which a small message is sent to.
pub use pelago_schedule::schedule::MAILBOX_BYTES;

pub mod reduction;
pub mod sync_memory;

pub(crate) mod agree;
pub(crate) mod agreement_record;
mod announced;
pub(crate) mod barrier;
pub(crate) mod block;
pub(crate) mod call;
pub(crate) mod children;
pub(crate) mod direct;
pub(crate) mod engine;
mod exchange;
pub(crate) mod hierarchy;
pub(crate) mod operand;
pub(crate) mod plans;
mod pool;
pub mod select;
pub(crate) mod staging;
pub(crate) mod symmetric_region;
pub(crate) mod team;
pub(crate) mod teams;
pub mod tuning;
mod two_level;
