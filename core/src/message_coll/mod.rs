//! Collective operations on private memory: the schedules of `pelago-schedule`, with a two-sided message in
//! the place of each put.
//!
//! The operations of a team (`coll`) put into symmetric memory. Those here work on any memory, in any group
//! of PEs, without memory of their own in the pool, as MPI needs it. Both run the same schedules. A schedule
//! that is written for mailboxes without a limit has nothing but puts with signals: each becomes a message,
//! whose tag has the number of the operation and the slot; the wait for the signal becomes its receive.
//!
//! Invariant: all members of a group start the same operations in the same order.

mod block;
mod direct;
mod exchange;
mod group;
mod online;
mod operation;
mod overlap;
mod plan;
mod running;
mod transfers;

pub use exchange::{Exchange, Receive, Send, Shorter};
pub use group::{MessageGroup, OperationNumber};
pub use operation::{Memory, Outcome, SizeMismatch};
pub use plan::MessageCall;
pub use running::{MessageCollectives, Pending, Stage, Started, Task};
