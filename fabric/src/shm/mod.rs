//! Shared memory of the PEs of one node: one memfd, a slot for each PE, one mapping in each process.
//!
//! Invariant: after `connect` every PE maps the same [`Segment`], and a put is complete when it returns.
//! Protocols and their states: README.md beside this file.

pub mod cooperative;
pub mod doorbell;
pub mod fifo;
pub mod flags;
#[cfg(not(loom))]
mod handout;
#[cfg(not(loom))]
mod home;
pub mod readers;
pub mod ring;
#[cfg(not(loom))]
pub mod segment;

#[cfg(all(test, loom))]
mod models;
#[cfg(not(loom))]
mod provider;

#[cfg(not(loom))]
pub use provider::Shm;
#[cfg(not(loom))]
pub use segment::{Layout, Segment};
