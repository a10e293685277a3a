//! Reductions of inter-communicators: a group combines its data at its rank 0, which hands them over to the
//! other group.

use super::combine::{Operands, hand_out};
use super::inter::{Role, among_all, between_leaders, everyone, spread};
use super::prepare::Prepared;
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::error::Result;
use crate::chapters::library::Mpi;
use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::{Exchange, Memory, Receive, Send, Task};
use std::ptr::null_mut;

/// Combines the data of the local group at its rank 0: their address there, and their length.
///
/// # Safety
/// The source has the elements, until the operation is over.
unsafe fn combine(
    prepared: &mut Prepared,
    comm: &Comm,
    operands: &Operands,
    memory: Memory,
) -> (*mut u8, usize) {
    let count = operands.mine.count as usize;
    let bytes = count * operands.combiner.element_bytes();
    let room = match comm.my_rank() {
        0 => prepared.room(bytes),
        _ => null_mut(),
    };
    let call = operands.call(Operation::Reduce, 0, count);
    prepared.push(&comm.members, Task::Call(call, Memory { target: room, ..memory }));
    (room, bytes)
}

/// A process of the root's group that is not the root.
pub fn idle(mpi: &Mpi, comm: &Comm) -> Prepared {
    let mut prepared = Prepared::default();
    prepared.push_exchange(everyone(mpi, comm), "reduce", Exchange::default());
    prepared
}

pub unsafe fn reduce(mpi: &Mpi, comm: &Comm, mut operands: Operands, root: c_int) -> Result<Prepared> {
    let mut prepared = Prepared::default();
    let mut exchange = Exchange::default();
    match (Role::of(comm, root)?, operands.result) {
        (Role::Root, Some(result)) => {
            // SAFETY: the caller promises what this function requires.
            let (into, bytes) = unsafe { prepared.incoming(mpi, result)? };
            exchange.receives.push(Receive { from: among_all(comm, 0), slot: 0, into, bytes });
        }
        (Role::Leaf(root), _) => {
            operands.result = None;
            // SAFETY: the caller promises what this function requires.
            let (room, bytes) = unsafe {
                let memory = operands.memory(&mut prepared, mpi)?;
                combine(&mut prepared, comm, &operands, memory)
            };
            if comm.my_rank() == 0 {
                exchange.sends.push(Send { to: among_all(comm, root), slot: 0, from: room, bytes });
            }
        }
        _ => {}
    }
    prepared.push_exchange(everyone(mpi, comm), "reduce", exchange);
    Ok(prepared)
}

pub unsafe fn allreduce(mpi: &Mpi, comm: &Comm, operands: Operands) -> Result<Prepared> {
    let mut prepared = Prepared::default();
    operands.mine.check(mpi)?;
    // SAFETY: the caller promises what this function requires.
    let (memory, room, bytes) = unsafe {
        let memory = operands.memory(&mut prepared, mpi)?;
        let (room, bytes) = combine(&mut prepared, comm, &operands, memory.clone());
        (memory, room, bytes)
    };
    let exchange = between_leaders(comm, Some((room, bytes)), Some((memory.target, bytes)));
    prepared.push_exchange(everyone(mpi, comm), "all_reduce", exchange);
    prepared.push(&comm.members, spread(memory.target, bytes));
    Ok(prepared)
}

pub unsafe fn reduce_scatter(mpi: &Mpi, comm: &Comm, operands: Operands, counts: &[i64]) -> Result<Prepared> {
    let mut prepared = Prepared::default();
    operands.mine.check(mpi)?;
    // SAFETY: the caller promises what this function requires.
    let (memory, room, bytes) = unsafe {
        let memory = operands.memory(&mut prepared, mpi)?;
        let (room, bytes) = combine(&mut prepared, comm, &operands, memory.clone());
        (memory, room, bytes)
    };
    let theirs = match comm.my_rank() {
        0 => prepared.room(bytes),
        _ => null_mut(),
    };
    let exchange = between_leaders(comm, Some((room, bytes)), Some((theirs, bytes)));
    prepared.push_exchange(everyone(mpi, comm), "reduce_scatter", exchange);
    let element_bytes = operands.combiner.element_bytes();
    let exchange = hand_out(theirs, memory.target, counts, (comm.my_rank(), element_bytes));
    prepared.push_exchange(&comm.members, "reduce_scatter", exchange);
    Ok(prepared)
}
