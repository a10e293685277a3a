//! Waiting and progress: how a PE waits, how it serves other PEs meanwhile, and how it detects that its
//! condition can no longer become true.

pub mod departure;
mod ends;
pub mod engine;
pub mod executor;
mod gather;
mod liveness;
mod long;
mod meeting;
mod message_barrier;
pub mod policy;
mod progress;
pub mod service;
pub mod service_thread;
mod sleeps;
pub mod stall;
mod waiting;
