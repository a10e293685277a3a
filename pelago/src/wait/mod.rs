//! Waiting and progress: how a PE waits, what it does for others meanwhile, and how it finds that what it
//! waits for can no longer come.

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
