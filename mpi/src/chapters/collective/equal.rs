//! Operations whose blocks have one size, without reductions.

use super::buffers::{Elements, check_apart, check_same};
use super::form::forms;
use super::inter;
use super::prepare::{Prepared, Work, root_of};
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::error::Result;
use crate::chapters::library::Mpi;
use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::{Memory, MessageCall};
use std::ptr::null_mut;

forms! {
    prepare_barrier: barrier ibarrier barrier_init ();
    prepare_bcast: bcast ibcast bcast_init
        (buffer: *mut c_void, count: i64, datatype: MPI_Datatype, root: c_int);
    prepare_gather: gather igather gather_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcount: i64, recvtype: MPI_Datatype, root: c_int);
    prepare_scatter: scatter iscatter scatter_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcount: i64, recvtype: MPI_Datatype, root: c_int);
    prepare_allgather: allgather iallgather allgather_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcount: i64, recvtype: MPI_Datatype);
    prepare_alltoall: alltoall ialltoall alltoall_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcount: i64, recvtype: MPI_Datatype);
}

/// A call of bytes as all the work of an operation.
fn whole(operation: Operation, root: usize, bytes: usize, source: *const u8, target: *mut u8) -> Work {
    Work::Call(MessageCall::of_bytes(operation, root, bytes), Memory { source, target, combiner: None })
}

unsafe fn prepare_barrier(mpi: &Mpi, comm: &Comm) -> Result<Prepared> {
    if comm.remote.is_some() {
        return inter::barrier(mpi, comm);
    }
    let work = whole(Operation::Barrier, 0, 0, null_mut(), null_mut());
    Ok(Prepared { work, ..Prepared::default() })
}

unsafe fn prepare_bcast(
    mpi: &Mpi,
    comm: &Comm,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    root: c_int,
) -> Result<Prepared> {
    let elements = Elements { buffer, count, datatype };
    if comm.remote.is_some() {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::bcast(mpi, comm, elements, root) };
    }
    let root = root_of(comm, root)?;
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires. The root's buffer is only read.
    let (data, bytes) = unsafe {
        match comm.my_rank() == root {
            true => prepared.outgoing(mpi, elements).map(|(data, bytes)| (data.cast_mut(), bytes))?,
            false => prepared.incoming(mpi, elements)?,
        }
    };
    let call = MessageCall { in_place: true, ..MessageCall::of_bytes(Operation::Broadcast, root, bytes) };
    prepared.work = Work::Call(call, Memory { source: data, target: data, combiner: None });
    Ok(prepared)
}

unsafe fn prepare_gather(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    root: c_int,
) -> Result<Prepared> {
    let mine = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let block = Elements { buffer: recvbuf, count: recvcount, datatype: recvtype };
    if comm.remote.is_some() {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::gather(mpi, comm, mine, block, root) };
    }
    let (root, me) = (root_of(comm, root)?, comm.my_rank());
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires. In place, the root's contribution lies in its
    // block of the result.
    unsafe {
        let mut target = null_mut();
        let (source, bytes) = if me == root {
            let all = prepared.incoming(mpi, block.times(comm.len()))?;
            target = all.0;
            let own = block.block(mpi, me)?;
            let (source, bytes) = prepared.outgoing(mpi, if mine.is_in_place() { own } else { mine })?;
            check_same(bytes, all.1 / comm.len())?;
            if !mine.is_in_place() {
                check_apart(mine.buffer.cast(), own.buffer.cast::<u8>().cast_mut(), bytes)?;
            }
            (source, bytes)
        } else {
            prepared.outgoing(mpi, mine)?
        };
        prepared.work = whole(Operation::Gather, root, bytes, source, target);
    }
    Ok(prepared)
}

unsafe fn prepare_scatter(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    root: c_int,
) -> Result<Prepared> {
    let block = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let mine = Elements { buffer: recvbuf, count: recvcount, datatype: recvtype };
    if comm.remote.is_some() {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::scatter(mpi, comm, block, mine, root) };
    }
    let (root, me) = (root_of(comm, root)?, comm.my_rank());
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires. In place, the root's block stays where it is.
    unsafe {
        let mut source = null_mut::<u8>().cast_const();
        let (target, bytes) = if me == root {
            let all = prepared.outgoing(mpi, block.times(comm.len()))?;
            source = all.0;
            let bytes = all.1 / comm.len();
            if mine.is_in_place() {
                (source.wrapping_add(me * bytes).cast_mut(), bytes)
            } else {
                let own = block.block(mpi, me)?;
                let (target, received) = prepared.incoming(mpi, mine)?;
                check_same(bytes, received)?;
                check_apart(own.buffer.cast(), mine.buffer.cast::<u8>().cast_mut(), bytes)?;
                (target, bytes)
            }
        } else {
            prepared.incoming(mpi, mine)?
        };
        prepared.work = whole(Operation::Scatter, root, bytes, source, target);
    }
    Ok(prepared)
}

unsafe fn prepare_allgather(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
) -> Result<Prepared> {
    let mine = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let block = Elements { buffer: recvbuf, count: recvcount, datatype: recvtype };
    if let Some(remote) = &comm.remote {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::allgather(mpi, comm, mine, block, remote.len()) };
    }
    let n = comm.len();
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires.
    unsafe {
        let (target, all) = prepared.incoming(mpi, block.times(n))?;
        let own = block.block(mpi, comm.my_rank())?;
        let (source, bytes) = prepared.outgoing(mpi, if mine.is_in_place() { own } else { mine })?;
        check_same(bytes, all / n)?;
        if !mine.is_in_place() {
            check_apart(mine.buffer.cast(), own.buffer.cast::<u8>().cast_mut(), bytes)?;
        }
        prepared.work = whole(Operation::AllGather, 0, bytes, source, target);
    }
    Ok(prepared)
}

unsafe fn prepare_alltoall(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
) -> Result<Prepared> {
    let block = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let place = Elements { buffer: recvbuf, count: recvcount, datatype: recvtype };
    if let Some(remote) = &comm.remote {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::alltoall(mpi, comm, block, place, remote.len()) };
    }
    let n = comm.len();
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires.
    unsafe {
        let (target, all) = prepared.incoming(mpi, place.times(n))?;
        let from = if block.is_in_place() { place } else { block };
        let (source, bytes) = prepared.outgoing(mpi, from.times(n))?;
        check_same(bytes, all)?;
        if !block.is_in_place() {
            check_apart(block.buffer.cast(), recvbuf.cast(), bytes)?;
        }
        prepared.work = whole(Operation::AllToAll, 0, bytes / n, source, target);
    }
    Ok(prepared)
}
