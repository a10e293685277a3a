//! The runtime under Pelago's interfaces: how processes become the processing elements (PEs) of a job, the
//! memory that they share, one-sided operations, active messages, teams and collective operations.
//!
//! Programs use the typed interface, the crate `pelago`. This crate is for those who write an interface: its
//! modules are layers, each of which uses those above it in this list, and none below.
//!
//! | layer | holds |
//! |---|---|
//! | `base` | elements, errors, counters, what a PE waits for |
//! | `memory` | the heap, arrays, which PEs are mapped, the table with one address a PE |
//! | `endpoint` | a provider's endpoint, counts of what was started there, completion counters |
//! | `job` | who this PE is, doorbells, business cards, the failure of a PE |
//! | `progress` | requests and replies, the outbox, departures |
//! | `wait` | wait policy, sleep, progress, liveness, the service thread |
//! | `rma` | puts, gets and quiet over the network |
//! | `coll` | teams, symmetric regions, agreement, the barrier, collective operations |
//! | `region` | allocations of symmetric memory and the operations on them, as bytes |
//! | `messages` | active messages: rings, windows, the execution of handlers |
//! | `msg` | two-sided messages: tag matching, protocols |
//! | `message_coll` | collective operations on private memory, by messages |
//! | `wakers` | the futures to wake when an event has come |
//! | `runtime` | all of them in one struct |
//! | `footprint` | memory and start-up messages of jobs of any size |
//! | `join` | how a process becomes a PE, or several |
//! | `process` | the one core of a process that interfaces for C share |

#![expect(clippy::len_without_is_empty, reason = "a team, and what belongs to one, has a member")]
#![expect(missing_docs, reason = "the layers are open to the crates above, which document what users see")]

pub mod base;
pub mod coll;
pub mod endpoint;
pub mod footprint;
pub mod job;
pub mod join;
pub mod memory;
pub mod message_coll;
pub mod messages;
pub mod msg;
pub mod process;
pub mod progress;
pub mod region;
pub mod rma;
pub mod runtime;
pub mod wait;
pub mod wakers;

#[cfg(test)]
#[path = "../../boot/tests/common/fuzzing.rs"]
mod fuzzing;

pub use base::error::{Error, ErrorKind, Result};
pub use pelago_fabric::Pe;
pub use runtime::Core;
