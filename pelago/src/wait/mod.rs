//! Waiting and progress: how a PE waits, how it serves other PEs meanwhile, and how it detects that its
//! condition can no longer become true.

pub(crate) mod departure;
pub(crate) mod engine;
pub(crate) mod executor;
mod gather;
mod liveness;
mod long;
mod meeting;
mod message_barrier;
pub(crate) mod policy;
mod progress;
pub(crate) mod service;
pub(crate) mod service_thread;
pub(crate) mod stall;
mod waiting;
