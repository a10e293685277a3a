//! Collective communication.
//!
//! Each operation is *prepared*: its arguments are checked, its data get places in one piece, and it becomes
//! one or several calls of `pelago_core::message_coll`. The blocking, the non-blocking and the persistent
//! form of an operation differ only in what they do with it; a persistent one is prepared once.
//!
//! Invariant: what a member does follows from arguments that all members share, so that all run the same
//! schedule: sizes in bytes, the root, the counts, never from a member's datatype or from its use of
//! `MPI_IN_PLACE` where members may differ in it.

mod buffers;
mod combine;
mod equal;
mod form;
mod inter;
mod inter_combine;
mod neighbour;
mod prepare;
mod varying;

pub use combine::*;
pub use equal::*;
pub use neighbour::*;
pub use varying::*;

use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::MessageCall;

/// An operation that combines `count` elements of this many bytes.
fn combining_call(operation: Operation, root: usize, count: usize, element_bytes: usize) -> MessageCall {
    MessageCall { operation, root, count, element_bytes, in_place: false, counts: None }
}
