//! Collective communication.
//!
//! Each operation is *prepared*: its arguments are checked, its data brought into one piece, and it becomes one
//! or several calls of `pelago_core::message_coll`. The blocking, the non-blocking and the persistent form of an
//! operation differ only in what they do with it.
//!
//! Invariant: what a member does follows from arguments that all members share, so that all run the same
//! schedule: sizes in bytes, the root, whether the operation is in place, never from a member's datatype.

mod equal;
mod form;
mod prepare;

pub use equal::*;
pub use prepare::{Elements, Prepared, Work, give, root_of};

use crate::comm::Comm;
use crate::error::Result;
use crate::library::Mpi;
use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::MessageCall;

/// Two words of each member of a communicator, by rank.
pub fn exchange_words(mpi: &Mpi, comm: &Comm, words: [u64; 2]) -> Result<Vec<[u64; 2]>> {
    let mut all = vec![[0u64; 2]; comm.len()];
    let (operation, element_bytes) = (Operation::AllGather, size_of_val(&words));
    let call = MessageCall { operation, root: 0, count: 1, element_bytes, in_place: false };
    let mut prepared = Prepared::new(Work::Call(call));
    prepared.memory.source = words.as_ptr().cast();
    prepared.memory.target = all.as_mut_ptr().cast();
    prepared.run(mpi, comm)?;
    Ok(all)
}
