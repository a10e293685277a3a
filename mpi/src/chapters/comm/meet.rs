//! The collective operations by which windows and files come into being, and go.

use super::Comm;
use super::agree::checked;
use crate::chapters::error::Result;
use crate::chapters::library::Mpi;
use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::{Memory, MessageCall};
use std::ptr::null_mut;

fn run(mpi: &Mpi, comm: &Comm, call: &MessageCall, source: *const u8, target: *mut u8) -> Result {
    let memory = Memory { source, target, combiner: None };
    // SAFETY: the callers give memory of the sizes of the call, and the operation is over at return.
    let outcome = unsafe { mpi.core.message_coll.run_call(&mpi.core, &comm.members, call, &memory) };
    checked(outcome)
}

/// Values that members send each other.
///
/// # Safety
/// The type consists of `u64` alone, so that any bytes are a value.
pub unsafe trait Words: Copy {}

// SAFETY: an array of words consists of words alone.
unsafe impl<const N: usize> Words for [u64; N] {}

/// A value of each member of a communicator, by rank.
pub fn gather<T: Words>(mpi: &Mpi, comm: &Comm, mine: T) -> Result<Vec<T>> {
    let mut all = vec![mine; comm.len()];
    let call = MessageCall::of_bytes(Operation::AllGather, 0, size_of::<T>());
    run(mpi, comm, &call, (&raw const mine).cast(), all.as_mut_ptr().cast())?;
    Ok(all)
}

/// Some words of each member of a communicator, by rank.
pub fn gather_words<const N: usize>(mpi: &Mpi, comm: &Comm, words: [u64; N]) -> Result<Vec<[u64; N]>> {
    gather(mpi, comm, words)
}

/// A barrier of the members of a communicator.
pub fn barrier(mpi: &Mpi, comm: &Comm) -> Result {
    match comm.len() {
        1 => Ok(()),
        _ => run(mpi, comm, &MessageCall::of_bytes(Operation::Barrier, 0, 0), null_mut(), null_mut()),
    }
}
