//! Collective operations, which the ranks of a team carry out together.
//!
//! An algorithm is a pure function from the [`Shape`](shape::Shape) of an operation to a
//! [`Schedule`](schedule::Schedule): data, which are checked without processes, drawn, simulated, and run by
//! the engine. [`table`] has them all. They are the crate [`pelago_schedule`], which knows no runtime.

pub use pelago_schedule::{candidates, check, draw, estimate, fnv, nodes, schedule, shape, table};

/// Bytes of a mailbox, which a small message is sent to.
pub use pelago_schedule::schedule::MAILBOX_BYTES;

pub mod reduction;
pub mod sync_memory;

pub mod agree;
pub mod agreement_record;
mod announced;
pub mod barrier;
pub mod block;
pub mod call;
pub mod children;
pub mod direct;
pub mod engine;
mod exchange;
pub mod hierarchy;
pub mod online;
pub mod operand;
pub mod plans;
mod pool;
pub mod select;
pub mod split;
pub mod staging;
pub mod symmetric_region;
pub mod team;
pub mod teams;
pub mod tuning;
mod two_level;
