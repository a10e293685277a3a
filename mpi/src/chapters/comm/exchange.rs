//! Blocks of any length that all members of a communicator send each other.

use super::Comm;
use super::agree::checked;
use crate::abi::c_int;
use crate::chapters::error::Result;
use crate::chapters::library::Mpi;
use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::{Exchange, Memory, MessageCall, Receive, Send};

/// Sends each member a block, by rank. The blocks that the members have sent to this one replace the contents
/// of `arrived`, whose memory is used again.
pub fn exchange(mpi: &Mpi, comm: &Comm, blocks: &[Vec<u8>], arrived: &mut Vec<Vec<u8>>) -> Result {
    let lengths: Vec<u64> = blocks.iter().map(|block| block.len() as u64).collect();
    let mut theirs = vec![0u64; comm.len()];
    let memory =
        Memory { source: lengths.as_ptr().cast(), target: theirs.as_mut_ptr().cast(), combiner: None };
    let call = MessageCall::of_bytes(Operation::AllToAll, 0, size_of::<u64>());
    // SAFETY: the memory has the bytes of the call, and the operation is over at return.
    checked(unsafe { mpi.core.message_coll.run_call(&mpi.core, &comm.members, &call, &memory) })?;
    let theirs: Vec<usize> = theirs.into_iter().map(|length| length as usize).collect();
    exchange_known(mpi, comm, blocks, (&theirs, arrived))
}

/// As [`exchange`], where the lengths of the blocks that arrive are known.
pub fn exchange_known(
    mpi: &Mpi,
    comm: &Comm,
    blocks: &[Vec<u8>],
    (lengths, arrived): (&[usize], &mut Vec<Vec<u8>>),
) -> Result {
    arrived.resize_with(comm.len(), Vec::new);
    let mut exchange = Exchange::default();
    for (rank, (block, place)) in blocks.iter().zip(arrived).enumerate() {
        place.resize(lengths[rank], 0);
        let (from, into) = (block.as_ptr(), place.as_mut_ptr());
        if rank == comm.my_rank() {
            assert_eq!(block.len(), place.len(), "the block that a member sends itself");
            exchange.copies.push((from, into, block.len()));
            continue;
        }
        let send = Send { to: rank, slot: 0, from, bytes: block.len() };
        let receive = Receive { from: rank, slot: 0, into, bytes: place.len() };
        exchange.sends.extend((!block.is_empty()).then_some(send));
        exchange.receives.extend((!place.is_empty()).then_some(receive));
    }
    let all = &mpi.core.message_coll;
    // SAFETY: the blocks have the bytes of the exchange, and it is over at return.
    let outcome = unsafe { all.run_exchange(&mpi.core, &comm.members, "exchange of blocks", &exchange) };
    checked(Some(outcome))
}

/// As [`exchange`], for lists of numbers.
pub fn exchange_lists(mpi: &Mpi, comm: &Comm, lists: &[Vec<c_int>]) -> Result<Vec<Vec<c_int>>> {
    let bytes_of = |list: &Vec<c_int>| list.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let blocks: Vec<Vec<u8>> = lists.iter().map(bytes_of).collect();
    let numbers =
        |block: Vec<u8>| block.as_chunks().0.iter().map(|&bytes| c_int::from_ne_bytes(bytes)).collect();
    let mut arrived = Vec::new();
    exchange(mpi, comm, &blocks, &mut arrived)?;
    Ok(arrived.into_iter().map(numbers).collect())
}
