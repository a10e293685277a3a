//! Operations of inter-communicators, without reductions.
//!
//! Messages between the groups are exchanges of all members of both groups. Where every member of a group
//! gets the same, its rank 0 gets it and broadcasts it.
//!
//! Invariant: every member takes part in every exchange of all members, if only without a message, so that
//! all count the same operations.

use super::buffers::{Blocks, Elements};
use super::prepare::Prepared;
use super::varying::Messages;
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::Mpi;
use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::{Exchange, Memory, MessageCall, MessageGroup, Receive, Send, Task};
use std::ptr::null_mut;
use std::sync::Arc;

/// The part of a process in an operation with a root.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Root,
    /// Another process of the root's group.
    Idle,
    /// A process of the other group; the root's rank in the remote group.
    Leaf(usize),
}

impl Role {
    pub fn of(comm: &Comm, root: c_int) -> Result<Role> {
        let n = comm.peers().len();
        match root {
            MPI_ROOT => Ok(Role::Root),
            MPI_PROC_NULL => Ok(Role::Idle),
            _ => {
                ensure!(
                    root >= 0 && (root as usize) < n,
                    MPI_ERR_ROOT,
                    "the root is {root}. Give MPI_ROOT, MPI_PROC_NULL, or one of the {n} ranks of the remote \
                     group"
                );
                Ok(Role::Leaf(root as usize))
            }
        }
    }
}

/// The group of all members.
pub fn everyone<'a>(mpi: &Mpi, comm: &'a Comm) -> &'a Arc<MessageGroup> {
    comm.everyone(|pe| mpi.core.node(pe))
}

/// The rank among all members of a rank of the remote group.
pub fn among_all(comm: &Comm, remote: usize) -> usize {
    if comm.is_first() { comm.len() + remote } else { remote }
}

/// Messages between the groups, while an operation is prepared.
struct Between<'a> {
    comm: &'a Comm,
    messages: Messages<'a>,
}

impl<'a> Between<'a> {
    /// For blocks of one size.
    fn new(mpi: &'a Mpi, comm: &'a Comm) -> Between<'a> {
        let mut between = Between::varying(mpi, comm);
        between.messages.exchange.may_be_shorter = false;
        between
    }

    /// For blocks that have sizes of their own.
    fn varying(mpi: &'a Mpi, comm: &'a Comm) -> Between<'a> {
        Between { comm, messages: Messages::new(mpi) }
    }

    /// # Safety
    /// As [`Messages::send`].
    unsafe fn send(&mut self, to: usize, elements: Elements) -> Result {
        // SAFETY: the caller promises what this function requires.
        unsafe { self.messages.send(among_all(self.comm, to), 0, elements).map(drop) }
    }

    /// # Safety
    /// As [`Messages::receive`].
    unsafe fn receive(&mut self, from: usize, elements: Elements) -> Result {
        // SAFETY: the caller promises what this function requires.
        unsafe { self.messages.receive(among_all(self.comm, from), 0, elements).map(drop) }
    }

    fn finish(self, name: &'static str) -> Prepared {
        let Messages { mpi, mut prepared, exchange } = self.messages;
        prepared.push_exchange(everyone(mpi, self.comm), name, *exchange);
        prepared
    }
}

/// The exchange between ranks 0 of both groups: data to send, and a place for those of the other.
pub fn between_leaders(
    comm: &Comm,
    outgoing: Option<(*const u8, usize)>,
    incoming: Option<(*mut u8, usize)>,
) -> Exchange {
    let mut exchange = Exchange::default();
    if comm.my_rank() == 0 {
        let leader = among_all(comm, 0);
        let send = |(from, bytes)| Send { to: leader, slot: 0, from, bytes };
        let receive = |(into, bytes)| Receive { from: leader, slot: 0, into, bytes };
        exchange.sends.extend(outgoing.map(send));
        exchange.receives.extend(incoming.map(receive));
    }
    exchange
}

/// The broadcast within the local group of data that its rank 0 has got.
pub fn spread(data: *mut u8, bytes: usize) -> Task {
    let call = MessageCall { in_place: true, ..MessageCall::of_bytes(Operation::Broadcast, 0, bytes) };
    Task::Call(call, Memory { source: data, target: data, combiner: None })
}

pub fn barrier(mpi: &Mpi, comm: &Comm) -> Result<Prepared> {
    let mut prepared = Prepared::default();
    let memory = Memory { source: null_mut(), target: null_mut(), combiner: None };
    prepared.push(everyone(mpi, comm), Task::Call(MessageCall::of_bytes(Operation::Barrier, 0, 0), memory));
    Ok(prepared)
}

pub unsafe fn bcast(mpi: &Mpi, comm: &Comm, elements: Elements, root: c_int) -> Result<Prepared> {
    let mut between = Between::new(mpi, comm);
    // SAFETY: the caller promises what this function requires.
    unsafe {
        match Role::of(comm, root)? {
            Role::Root => between.send(0, elements)?,
            Role::Idle => {}
            Role::Leaf(root) => {
                let Messages { prepared, exchange, .. } = &mut between.messages;
                let (into, bytes) = prepared.incoming(mpi, elements)?;
                if comm.my_rank() == 0 {
                    exchange.receives.push(Receive { from: among_all(comm, root), slot: 0, into, bytes });
                }
                let mut prepared = between.finish("broadcast");
                prepared.push(&comm.members, spread(into, bytes));
                return Ok(prepared);
            }
        }
    }
    Ok(between.finish("broadcast"))
}

pub unsafe fn gather(
    mpi: &Mpi,
    comm: &Comm,
    mine: Elements,
    block: Elements,
    root: c_int,
) -> Result<Prepared> {
    let mut between = Between::new(mpi, comm);
    // SAFETY: the caller promises what this function requires.
    unsafe {
        match Role::of(comm, root)? {
            Role::Root => {
                for rank in 0..comm.peers().len() {
                    between.receive(rank, block.block(mpi, rank)?)?;
                }
            }
            Role::Idle => {}
            Role::Leaf(root) => between.send(root, mine)?,
        }
    }
    Ok(between.finish("gather"))
}

pub unsafe fn gatherv(mpi: &Mpi, comm: &Comm, mine: Elements, all: Blocks, root: c_int) -> Result<Prepared> {
    let mut between = Between::varying(mpi, comm);
    // SAFETY: the caller promises what this function requires.
    unsafe {
        match Role::of(comm, root)? {
            Role::Root => {
                all.check_arrays(comm.peers().len())?;
                for rank in 0..comm.peers().len() {
                    between.receive(rank, all.get(mpi, rank)?)?;
                }
            }
            Role::Idle => {}
            Role::Leaf(root) => between.send(root, mine)?,
        }
    }
    Ok(between.finish("gatherv"))
}

pub unsafe fn scatter(
    mpi: &Mpi,
    comm: &Comm,
    block: Elements,
    mine: Elements,
    root: c_int,
) -> Result<Prepared> {
    let mut between = Between::new(mpi, comm);
    // SAFETY: the caller promises what this function requires.
    unsafe {
        match Role::of(comm, root)? {
            Role::Root => {
                for rank in 0..comm.peers().len() {
                    between.send(rank, block.block(mpi, rank)?)?;
                }
            }
            Role::Idle => {}
            Role::Leaf(root) => between.receive(root, mine)?,
        }
    }
    Ok(between.finish("scatter"))
}

pub unsafe fn scatterv(mpi: &Mpi, comm: &Comm, all: Blocks, mine: Elements, root: c_int) -> Result<Prepared> {
    let mut between = Between::varying(mpi, comm);
    // SAFETY: the caller promises what this function requires.
    unsafe {
        match Role::of(comm, root)? {
            Role::Root => {
                all.check_arrays(comm.peers().len())?;
                for rank in 0..comm.peers().len() {
                    between.send(rank, all.get(mpi, rank)?)?;
                }
            }
            Role::Idle => {}
            Role::Leaf(root) => between.receive(root, mine)?,
        }
    }
    Ok(between.finish("scatterv"))
}

pub unsafe fn allgather(
    mpi: &Mpi,
    comm: &Comm,
    mine: Elements,
    block: Elements,
    n_remote: usize,
) -> Result<Prepared> {
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires.
    let ((source, bytes), (target, received)) = unsafe {
        let source = prepared.outgoing(mpi, mine)?;
        (source, prepared.incoming(mpi, block.times(n_remote))?)
    };
    let room = match comm.my_rank() {
        0 => prepared.room(bytes * comm.len()),
        _ => null_mut(),
    };
    let memory = Memory { source, target: room, combiner: None };
    prepared.push(&comm.members, Task::Call(MessageCall::of_bytes(Operation::Gather, 0, bytes), memory));
    let outgoing = Some((room.cast_const(), bytes * comm.len()));
    let exchange = between_leaders(comm, outgoing, Some((target, received)));
    prepared.push_exchange(everyone(mpi, comm), "all_gather", exchange);
    prepared.push(&comm.members, spread(target, received));
    Ok(prepared)
}

pub unsafe fn allgatherv(
    mpi: &Mpi,
    comm: &Comm,
    mine: Elements,
    all: Blocks,
    n_remote: usize,
) -> Result<Prepared> {
    all.check_arrays(n_remote)?;
    let mut between = Between::varying(mpi, comm);
    // SAFETY: the caller promises what this function requires.
    unsafe {
        for rank in 0..n_remote {
            between.receive(rank, all.get(mpi, rank)?)?;
        }
        let (from, bytes) = between.messages.prepared.outgoing(mpi, mine)?;
        let to = |rank| Send { to: among_all(comm, rank), slot: 0, from, bytes };
        between.messages.exchange.sends.extend((0..n_remote).map(to));
    }
    Ok(between.finish("allgatherv"))
}

pub unsafe fn alltoall(
    mpi: &Mpi,
    comm: &Comm,
    block: Elements,
    place: Elements,
    n_remote: usize,
) -> Result<Prepared> {
    let mut between = Between::new(mpi, comm);
    // SAFETY: the caller promises what this function requires.
    unsafe {
        block.check(mpi)?;
        for rank in 0..n_remote {
            between.receive(rank, place.block(mpi, rank)?)?;
        }
        for rank in 0..n_remote {
            between.send(rank, block.block(mpi, rank)?)?;
        }
    }
    Ok(between.finish("all_to_all"))
}

/// Of blocks of any size; empty ones cause no message.
pub unsafe fn all_to_all(
    mpi: &Mpi,
    comm: &Comm,
    from: Blocks,
    into: Blocks,
    (n_remote, name): (usize, &'static str),
) -> Result<Prepared> {
    from.check_arrays(n_remote)?;
    into.check_arrays(n_remote)?;
    let mut between = Between::varying(mpi, comm);
    // SAFETY: the caller promises what this function requires.
    unsafe {
        for rank in 0..n_remote {
            let (block, place) = (from.get(mpi, rank)?, into.get(mpi, rank)?);
            if place.bytes(mpi)? > 0 {
                between.receive(rank, place)?;
            }
            if block.bytes(mpi)? > 0 {
                between.send(rank, block)?;
            }
        }
    }
    Ok(between.finish(name))
}
