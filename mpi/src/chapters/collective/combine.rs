//! Operations that combine elements.
//!
//! Invariant: the schedule is that of source and target apart, also where a member passes `MPI_IN_PLACE`,
//! because members may differ in that; all-reductions of large blocks are the exception.

use super::buffers::{Elements, check_apart};
use super::combining_call;
use super::form::forms;
use super::inter_combine as inter;
use super::prepare::{Prepared, Work, ended, root_of};
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::Mpi;
use crate::chapters::op;
use crate::chapters::p2p::bytes_of;
use crate::convert::Integers;
use pelago_core::coll::reduction::Combiner;
use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::{Exchange, Memory, MessageCall, Receive, Send, Task};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

forms! {
    prepare_reduce: reduce_prepared ireduce reduce_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: MPI_Datatype, op: MPI_Op,
         root: c_int);
    prepare_allreduce: allreduce_prepared iallreduce allreduce_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: MPI_Datatype, op: MPI_Op);
    prepare_reduce_scatter_block: reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: i64, datatype: MPI_Datatype, op: MPI_Op);
    prepare_reduce_scatter: reduce_scatter ireduce_scatter reduce_scatter_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: Integers, datatype: MPI_Datatype,
         op: MPI_Op);
    prepare_scan: scan_prepared iscan scan_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: MPI_Datatype, op: MPI_Op);
    prepare_exscan: exscan_prepared iexscan exscan_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: MPI_Datatype, op: MPI_Op);
}

/// From this length on, an all-reduction in place has the schedule for that, which saves a copy. All members
/// must pass `MPI_IN_PLACE` then, as the standard says; below, members may differ.
const LARGE_BYTES: usize = 8 << 10;

/// Results of this length that nobody needs go to the stack.
const UNDEFINED_BYTES: usize = 1 << 10;

/// The arguments that all reductions have.
pub(super) struct Operands {
    /// The source, and the target if this rank has one.
    pub mine: Elements,
    pub result: Option<Elements>,
    pub combiner: Combiner,
}

impl Operands {
    pub fn new(
        mpi: &Mpi,
        (sendbuf, recvbuf): (*const c_void, *mut c_void),
        (count, datatype): (i64, MPI_Datatype),
        op: MPI_Op,
    ) -> Result<Operands> {
        let combiner = op::of_reduction(mpi, op, datatype)?;
        let mine = Elements { buffer: sendbuf, count, datatype };
        Ok(Operands { mine, result: Some(Elements { buffer: recvbuf, count, datatype }), combiner })
    }

    /// The source and the target of the operation; null without a target.
    ///
    /// # Safety
    /// The buffers have the elements, until the operation is over.
    pub unsafe fn memory(&self, prepared: &mut Prepared, mpi: &Mpi) -> Result<Memory> {
        let Operands { mine, result, combiner } = self;
        let (mut target, mut target_bytes) = (null_mut(), 0);
        // SAFETY: the caller promises what this function requires.
        unsafe {
            if let Some(result) = result {
                (target, target_bytes) = prepared.incoming(mpi, *result)?;
            }
            let from = match result {
                Some(result) if mine.is_in_place() => Elements { buffer: result.buffer, ..*mine },
                _ => *mine,
            };
            let (source, bytes) = prepared.outgoing(mpi, from)?;
            if let Some(result) = result
                && !mine.is_in_place()
            {
                let bytes = bytes.min(target_bytes);
                check_apart(mine.buffer.cast(), result.buffer.cast::<u8>().cast_mut(), bytes)?;
            }
            Ok(Memory { source, target, combiner: Some(combiner.clone()) })
        }
    }

    /// The call of an operation on `count` elements a block.
    pub fn call(&self, operation: Operation, root: usize, count: usize) -> MessageCall {
        combining_call(operation, root, count, self.combiner.element_bytes())
    }
}

/// Makes the blocking forms of operations that most calls do without preparing them.
macro_rules! blocking {
    ($($name:ident $prepared:ident $operation:ident $root:tt ($($argument:ident)?);)*) => {$(
        pub unsafe fn $name(
            mpi: &Mpi, sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: MPI_Datatype,
            op: MPI_Op, $($argument: c_int,)? comm: MPI_Comm,
        ) -> Result {
            let call = (Operation::$operation, $root, count, datatype, op);
            // SAFETY: the caller promises what these functions require.
            unsafe {
                run_in_one_piece(mpi, comm, call, (sendbuf, recvbuf)).unwrap_or_else(|| {
                    $prepared(mpi, sendbuf, recvbuf, count, datatype, op, $($argument,)? comm)
                })
            }
        }
    )*};
}

blocking! {
    reduce reduce_prepared Reduce root (root);
    allreduce allreduce_prepared AllReduce 0 ();
    scan scan_prepared InclusiveScan 0 ();
    exscan exscan_prepared ExclusiveScan 0 ();
}

/// An operation that combines, its root, the elements of a block, and what combines them.
type Combining = (Operation, c_int, i64, MPI_Datatype, MPI_Op);

/// Runs a blocking operation that needs no memory of its own, as most do, without preparing it. `None` if it
/// is another one, or has a mistake, which is found when it is prepared.
///
/// # Safety
/// The buffers have the elements.
#[inline]
unsafe fn run_in_one_piece(
    mpi: &Mpi,
    comm: MPI_Comm,
    call: Combining,
    buffers: (*const c_void, *mut c_void),
) -> Option<Result> {
    let communicator = mpi.comm(comm).ok()?;
    let (call, mut memory) = in_one_piece(mpi, communicator, call, buffers)?;
    // The result of rank 0 is not defined, and its buffer stays as it is.
    let mut undefined = MaybeUninit::<[u8; UNDEFINED_BYTES]>::uninit();
    if call.operation == Operation::ExclusiveScan && communicator.my_rank() == 0 {
        memory.target = undefined.as_mut_ptr().cast();
        if call.count.saturating_mul(call.element_bytes) > UNDEFINED_BYTES {
            return None;
        }
    }
    let all = &mpi.core.message_coll;
    // SAFETY: the caller promises the elements, and the operation is over at return.
    Some(ended(communicator, unsafe { all.run_call(&mpi.core, &communicator.members, &call, &memory) }))
}

/// An operation that combines elements without gaps by a predefined operation, from one buffer to another.
#[inline]
fn in_one_piece(
    mpi: &Mpi,
    comm: &Comm,
    (operation, root, count, datatype, op): Combining,
    (sendbuf, recvbuf): (*const c_void, *mut c_void),
) -> Option<(MessageCall, Memory)> {
    let me = comm.my_rank();
    let has_result = match operation {
        Operation::Reduce => me == root_of(comm, root).ok()?,
        Operation::ExclusiveScan => me > 0,
        _ => true,
    };
    let is_place = |buffer: *const c_void| !buffer.is_null() && buffer != MPI_IN_PLACE.cast_const();
    let is_target = is_place(recvbuf) && sendbuf != recvbuf.cast_const();
    let are_apart = is_place(sendbuf) && (is_target || !has_result);
    if !are_apart || comm.remote.is_some() || !op::is_predefined(op) {
        return None;
    }
    let layout = mpi.datatype(datatype).ok()?;
    bytes_of(count, layout).ok()?;
    let offset = layout.run(count as usize)?;
    let combiner = op::combiner(op, layout).ok()?;
    let call = combining_call(operation, root as usize, count as usize, combiner.element_bytes());
    let source = sendbuf.cast::<u8>().wrapping_offset(offset);
    let target = if has_result { recvbuf.cast::<u8>().wrapping_offset(offset) } else { null_mut() };
    Some((call, Memory { source, target, combiner: Some(combiner) }))
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
    if comm.remote.is_some() && root == MPI_PROC_NULL {
        return Ok(inter::idle(mpi, comm));
    }
    let mut operands = Operands::new(mpi, (sendbuf, recvbuf), (count, datatype), op)?;
    if comm.remote.is_some() {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::reduce(mpi, comm, operands, root) };
    }
    let root = root_of(comm, root)?;
    if comm.my_rank() != root {
        operands.result = None;
    }
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires.
    let memory = unsafe { operands.memory(&mut prepared, mpi)? };
    prepared.work = Work::Call(operands.call(Operation::Reduce, root, count as usize), memory);
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
    let operands = Operands::new(mpi, (sendbuf, recvbuf), (count, datatype), op)?;
    if comm.remote.is_some() {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::allreduce(mpi, comm, operands) };
    }
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires.
    let mut memory = unsafe { operands.memory(&mut prepared, mpi)? };
    let mut call = operands.call(Operation::AllReduce, 0, count as usize);
    if operands.mine.is_in_place() && call.count * call.element_bytes >= LARGE_BYTES {
        // Of data with gaps the packed ones are combined in place.
        if memory.source != memory.target.cast_const() {
            memory.target = memory.source.cast_mut();
            if let Some(unpack) = prepared.unpacks.last_mut() {
                unpack.from = memory.source;
            }
        }
        call.in_place = true;
    }
    prepared.work = Work::Call(call, memory);
    Ok(prepared)
}

unsafe fn prepare_reduce_scatter_block(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Result<Prepared> {
    let counts = vec![recvcount; comm.len()];
    // SAFETY: the caller promises what this function requires.
    unsafe { reduce_scatter_of(mpi, comm, (sendbuf, recvbuf), &counts, (datatype, op)) }
}

unsafe fn prepare_reduce_scatter(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: Integers,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Result<Prepared> {
    ensure!(!recvcounts.is_null(), MPI_ERR_ARG, "recvcounts is null");
    // SAFETY: the caller's promise: the array has an element for each rank.
    unsafe {
        let counts = recvcounts.list(comm.len());
        reduce_scatter_of(mpi, comm, (sendbuf, recvbuf), &counts, (datatype, op))
    }
}

/// Combines blocks of these numbers of elements; each rank gets its block.
unsafe fn reduce_scatter_of(
    mpi: &Mpi,
    comm: &Comm,
    (sendbuf, recvbuf): (*const c_void, *mut c_void),
    counts: &[i64],
    (datatype, op): (MPI_Datatype, MPI_Op),
) -> Result<Prepared> {
    // A rank with an empty block may have no buffer for it.
    for &count in counts {
        bytes_of(count, mpi.datatype(datatype)?)?;
    }
    let total = counts.iter().fold(0, |sum: i64, &count| sum.saturating_add(count));
    let mut operands = Operands::new(mpi, (sendbuf, recvbuf), (total, datatype), op)?;
    let own = Elements { buffer: recvbuf, count: counts[comm.my_rank()], datatype };
    operands.result = Some(own);
    if comm.remote.is_some() {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::reduce_scatter(mpi, comm, operands, counts) };
    }
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires. In place, the source of all blocks lies where
    // the result begins.
    let memory = unsafe { operands.memory(&mut prepared, mpi)? };
    if counts.iter().all(|&count| count == counts[0]) {
        let call = operands.call(Operation::ReduceScatter, 0, counts[0] as usize);
        prepared.work = Work::Call(call, memory);
        return Ok(prepared);
    }
    let room = match comm.my_rank() {
        0 => prepared.room(total as usize * operands.combiner.element_bytes()),
        _ => null_mut(),
    };
    let combined = Memory { target: room, ..memory.clone() };
    let call = operands.call(Operation::Reduce, 0, total as usize);
    prepared.push(&comm.members, Task::Call(call, combined));
    let element_bytes = operands.combiner.element_bytes();
    let exchange = hand_out(room, memory.target, counts, (comm.my_rank(), element_bytes));
    prepared.push_exchange(&comm.members, "reduce_scatter", exchange);
    Ok(prepared)
}

/// The messages that bring each rank its block of the data of rank 0.
pub(super) fn hand_out(
    source: *const u8,
    target: *mut u8,
    counts: &[i64],
    (me, element_bytes): (usize, usize),
) -> Exchange {
    let mut exchange = Exchange::default();
    let own = counts[me] as usize * element_bytes;
    if me > 0 {
        exchange.receives.push(Receive { from: 0, slot: 0, into: target, bytes: own });
        return exchange;
    }
    exchange.copies.push((source, target, own));
    let mut offset = own;
    for (to, &count) in counts.iter().enumerate().skip(1) {
        let bytes = count as usize * element_bytes;
        exchange.sends.push(Send { to, slot: 0, from: source.wrapping_add(offset), bytes });
        offset += bytes;
    }
    exchange
}

/// Refuses an inter-communicator, for which an operation is not defined.
pub(super) fn check_intra(comm: &Comm) -> Result {
    match &comm.remote {
        None => Ok(()),
        Some(_) => Err(Error::new(
            MPI_ERR_COMM,
            "the operation is not defined for inter-communicators. Merge the groups: MPI_Intercomm_merge",
        )),
    }
}

unsafe fn prepare_scan(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Result<Prepared> {
    check_intra(comm)?;
    let operands = Operands::new(mpi, (sendbuf, recvbuf), (count, datatype), op)?;
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires.
    let memory = unsafe { operands.memory(&mut prepared, mpi)? };
    prepared.work = Work::Call(operands.call(Operation::InclusiveScan, 0, count as usize), memory);
    Ok(prepared)
}

unsafe fn prepare_exscan(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Result<Prepared> {
    check_intra(comm)?;
    let mut operands = Operands::new(mpi, (sendbuf, recvbuf), (count, datatype), op)?;
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires. The result of rank 0 is not defined: its
    // buffer stays as it is.
    let memory = unsafe {
        if comm.my_rank() == 0 {
            if operands.mine.is_in_place() {
                operands.mine.buffer = recvbuf;
            }
            operands.result = None;
            let memory = operands.memory(&mut prepared, mpi)?;
            Memory { target: prepared.room(count as usize * operands.combiner.element_bytes()), ..memory }
        } else {
            operands.memory(&mut prepared, mpi)?
        }
    };
    prepared.work = Work::Call(operands.call(Operation::ExclusiveScan, 0, count as usize), memory);
    Ok(prepared)
}
