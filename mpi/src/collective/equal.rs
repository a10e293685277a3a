//! Operations whose blocks have one size.

use super::form::forms;
use super::prepare::{Elements, Prepared, Work, root_of};
use crate::abi::*;
use crate::comm::Comm;
use crate::error::Result;
use crate::library::Mpi;
use crate::op;
use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::MessageCall;

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
    prepare_reduce: reduce ireduce reduce_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: MPI_Datatype, op: MPI_Op,
         root: c_int);
    prepare_allreduce: allreduce iallreduce allreduce_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: MPI_Datatype, op: MPI_Op);
}

/// A call of bytes.
fn call(operation: Operation, root: usize, bytes: usize, in_place: bool) -> Work {
    Work::Call(MessageCall { operation, root, count: bytes, element_bytes: 1, in_place })
}

unsafe fn prepare_barrier(_mpi: &Mpi, _comm: &Comm) -> Result<Prepared> {
    Ok(Prepared::new(call(Operation::Barrier, 0, 0, false)))
}

unsafe fn prepare_bcast(
    mpi: &Mpi,
    comm: &Comm,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    root: c_int,
) -> Result<Prepared> {
    let root = root_of(comm, root)?;
    let mut prepared = Prepared::new(Work::Nothing);
    // SAFETY: the caller's promise.
    let bytes =
        unsafe { prepared.target(mpi, Elements { buffer, count, datatype }, comm.my_rank() == root)? };
    prepared.set_in_place();
    prepared.work = call(Operation::Broadcast, root, bytes, true);
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
    let (root, me) = (root_of(comm, root)?, comm.my_rank());
    let mut prepared = Prepared::new(Work::Nothing);
    let mut mine = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let all = Elements { buffer: recvbuf, count: recvcount, datatype: recvtype };
    // SAFETY: the caller's promise. In place, the root's contribution lies in its block of the result.
    let bytes = unsafe {
        if me == root {
            if mine.is_in_place() {
                mine = all.block(mpi, me)?;
            }
            prepared.target(mpi, all.times(comm.len()), false)?;
        }
        prepared.source(mpi, mine)?
    };
    prepared.keep_source_apart(bytes);
    prepared.work = call(Operation::Gather, root, bytes, false);
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
    let (root, me) = (root_of(comm, root)?, comm.my_rank());
    let mut prepared = Prepared::new(Work::Nothing);
    let all = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let mine = Elements { buffer: recvbuf, count: recvcount, datatype: recvtype };
    // SAFETY: the caller's promise. In place, the root's block stays where it is.
    let bytes = unsafe {
        if me == root {
            let bytes = prepared.source(mpi, all.times(comm.len()))? / comm.len();
            match mine.is_in_place() {
                true => prepared.discard_target(bytes),
                false => prepared.target(mpi, mine, false).map(drop)?,
            }
            bytes
        } else {
            prepared.target(mpi, mine, false)?
        }
    };
    prepared.work = call(Operation::Scatter, root, bytes, false);
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
    let mut prepared = Prepared::new(Work::Nothing);
    let mut mine = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let all = Elements { buffer: recvbuf, count: recvcount, datatype: recvtype };
    if mine.is_in_place() {
        mine = all.block(mpi, comm.my_rank())?;
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe {
        prepared.target(mpi, all.times(comm.len()), false)?;
        prepared.source(mpi, mine)?
    };
    prepared.keep_source_apart(bytes);
    prepared.work = call(Operation::AllGather, 0, bytes, false);
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
    let n = comm.len();
    let mut prepared = Prepared::new(Work::Nothing);
    let mut mine = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let all = Elements { buffer: recvbuf, count: recvcount, datatype: recvtype };
    if mine.is_in_place() {
        mine = all;
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe {
        prepared.target(mpi, all.times(n), false)?;
        prepared.source(mpi, mine.times(n))?
    };
    prepared.keep_source_apart(bytes);
    prepared.work = call(Operation::AllToAll, 0, bytes / n, false);
    Ok(prepared)
}

unsafe fn prepare_reduce(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
) -> Result<Prepared> {
    let (root, me) = (root_of(comm, root)?, comm.my_rank());
    let mut prepared = Prepared::new(Work::Nothing);
    let mine = Elements { buffer: sendbuf, count, datatype };
    let result = Elements { buffer: recvbuf, count, datatype };
    let mine = if mine.is_in_place() { result } else { mine };
    // SAFETY: the caller's promise.
    let element_bytes =
        unsafe { op::operands(&mut prepared, mpi, op, mine, (me == root).then_some(result))? };
    prepared.keep_source_apart(count as usize * element_bytes);
    prepared.work = Work::Call(MessageCall {
        operation: Operation::Reduce,
        root,
        count: count as usize,
        element_bytes,
        in_place: false,
    });
    Ok(prepared)
}

unsafe fn prepare_allreduce(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Result<Prepared> {
    let _ = comm;
    let mut prepared = Prepared::new(Work::Nothing);
    let mine = Elements { buffer: sendbuf, count, datatype };
    let result = Elements { buffer: recvbuf, count, datatype };
    let mine = if mine.is_in_place() { result } else { mine };
    // SAFETY: the caller's promise.
    let element_bytes = unsafe { op::operands(&mut prepared, mpi, op, mine, Some(result))? };
    prepared.keep_source_apart(count as usize * element_bytes);
    prepared.work = Work::Call(MessageCall {
        operation: Operation::AllReduce,
        root: 0,
        count: count as usize,
        element_bytes,
        in_place: false,
    });
    Ok(prepared)
}
