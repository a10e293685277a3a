//! Operations whose blocks have sizes of their own.
//!
//! Invariant: between two members there is a message for every block, empty ones among them, except in
//! exchanges of all with all, where both ends know that a block is empty.

use super::buffers::{Blocks, Elements, Places, Types, check_apart, check_same};
use super::form::forms;
use super::inter;
use super::prepare::{Prepared, Work, root_of};
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::Mpi;
use crate::convert::Integers;
use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::{Exchange, Memory, MessageCall, Receive, Send};
use smallvec::SmallVec;

forms! {
    prepare_gatherv: gatherv igatherv gatherv_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcounts: Integers, displs: Integers, recvtype: MPI_Datatype, root: c_int);
    prepare_scatterv: scatterv iscatterv scatterv_init
        (sendbuf: *const c_void, sendcounts: Integers, displs: Integers, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcount: i64, recvtype: MPI_Datatype, root: c_int);
    prepare_allgatherv: allgatherv iallgatherv allgatherv_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcounts: Integers, displs: Integers, recvtype: MPI_Datatype);
    prepare_alltoallv: alltoallv ialltoallv alltoallv_init
        (sendbuf: *const c_void, sendcounts: Integers, sdispls: Integers, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcounts: Integers, rdispls: Integers, recvtype: MPI_Datatype);
    prepare_alltoallw: alltoallw ialltoallw alltoallw_init
        (sendbuf: *const c_void, sendcounts: Integers, sdispls: Integers, sendtypes: *const MPI_Datatype,
         recvbuf: *mut c_void, recvcounts: Integers, rdispls: Integers, recvtypes: *const MPI_Datatype);
}

/// The messages of an operation, while it is prepared.
pub(super) struct Messages<'a> {
    pub mpi: &'a Mpi,
    pub prepared: Prepared,
    /// In the place where it stays, as it is large.
    pub exchange: Box<Exchange>,
}

impl<'a> Messages<'a> {
    /// Those of an operation whose blocks have sizes of their own: they may be shorter than their room.
    pub fn new(mpi: &'a Mpi) -> Messages<'a> {
        let mut exchange = Box::<Exchange>::default();
        exchange.may_be_shorter = true;
        Messages { mpi, prepared: Prepared::default(), exchange }
    }

    /// Adds the send of elements: its length.
    ///
    /// # Safety
    /// The buffer has the elements, until the operation is over.
    pub unsafe fn send(&mut self, to: usize, slot: u32, elements: Elements) -> Result<usize> {
        // SAFETY: the caller promises what this function requires.
        let (from, bytes) = unsafe { self.prepared.outgoing(self.mpi, elements)? };
        self.exchange.sends.push(Send { to, slot, from, bytes });
        Ok(bytes)
    }

    /// Adds the receive of elements: its length.
    ///
    /// # Safety
    /// The buffer has room for the elements, until the operation is over.
    pub unsafe fn receive(&mut self, from: usize, slot: u32, elements: Elements) -> Result<usize> {
        // SAFETY: the caller promises what this function requires.
        let (into, bytes) = unsafe { self.prepared.incoming(self.mpi, elements)? };
        self.exchange.receives.push(Receive { from, slot, into, bytes });
        Ok(bytes)
    }

    /// Adds the copy of elements of this rank.
    ///
    /// # Safety
    /// As [`send`](Messages::send) and [`receive`](Messages::receive).
    pub unsafe fn copy(&mut self, from: Elements, into: Elements) -> Result {
        // SAFETY: the caller promises what this function requires.
        unsafe {
            let (source, bytes) = self.prepared.outgoing(self.mpi, from)?;
            let (target, received) = self.prepared.incoming(self.mpi, into)?;
            ensure!(
                bytes <= received,
                MPI_ERR_TRUNCATE,
                "this rank's own block has {bytes} bytes, and room for {received}. Give room for all of it"
            );
            // A block that is shorter than its room leaves the rest as it is.
            if let Some(unpack) = self.prepared.unpacks.last_mut().filter(|unpack| unpack.from == target) {
                unpack.bytes = bytes;
            }
            check_apart(source, target, bytes)?;
            self.exchange.copies.push((source, target, bytes));
        }
        Ok(())
    }

    /// The operation, which these messages of the local group are.
    pub fn finish(self, name: &'static str) -> Prepared {
        let Messages { mut prepared, exchange, .. } = self;
        prepared.set_exchange(name, exchange);
        prepared
    }
}

/// Blocks of one datatype at displacements in elements.
fn blocks(buffer: *const c_void, counts: Integers, displs: Integers, datatype: MPI_Datatype) -> Blocks {
    Blocks { buffer, counts, places: Places::Elements(displs), types: Types::One(datatype) }
}

unsafe fn prepare_gatherv(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Integers,
    displs: Integers,
    recvtype: MPI_Datatype,
    root: c_int,
) -> Result<Prepared> {
    let mine = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let all = blocks(recvbuf, recvcounts, displs, recvtype);
    if comm.remote.is_some() {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::gatherv(mpi, comm, mine, all, root) };
    }
    let (root, me) = (root_of(comm, root)?, comm.my_rank());
    let mut messages = Messages::new(mpi);
    // SAFETY: the caller promises what this function requires, for the root's arrays as well.
    unsafe {
        if me == root {
            all.check_arrays(comm.len())?;
            for rank in (0..comm.len()).filter(|&rank| rank != me) {
                messages.receive(rank, 0, all.get(mpi, rank)?)?;
            }
            let own = all.get(mpi, me)?;
            if !mine.is_in_place() {
                messages.copy(mine, own)?;
            } else {
                own.check(mpi)?;
            }
        } else {
            messages.send(root, 0, mine)?;
        }
    }
    Ok(messages.finish("gatherv"))
}

unsafe fn prepare_scatterv(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    sendcounts: Integers,
    displs: Integers,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    root: c_int,
) -> Result<Prepared> {
    let all = blocks(sendbuf, sendcounts, displs, sendtype);
    let mine = Elements { buffer: recvbuf, count: recvcount, datatype: recvtype };
    if comm.remote.is_some() {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::scatterv(mpi, comm, all, mine, root) };
    }
    let (root, me) = (root_of(comm, root)?, comm.my_rank());
    let mut messages = Messages::new(mpi);
    // SAFETY: the caller promises what this function requires, for the root's arrays as well.
    unsafe {
        if me == root {
            all.check_arrays(comm.len())?;
            for rank in (0..comm.len()).filter(|&rank| rank != me) {
                messages.send(rank, 0, all.get(mpi, rank)?)?;
            }
            let own = all.get(mpi, me)?;
            if !mine.is_in_place() {
                messages.copy(own, mine)?;
            } else {
                own.check(mpi)?;
            }
        } else {
            messages.receive(root, 0, mine)?;
        }
    }
    Ok(messages.finish("scatterv"))
}

unsafe fn prepare_allgatherv(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Integers,
    displs: Integers,
    recvtype: MPI_Datatype,
) -> Result<Prepared> {
    let mine = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let all = blocks(recvbuf, recvcounts, displs, recvtype);
    if let Some(remote) = &comm.remote {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::allgatherv(mpi, comm, mine, all, remote.len()) };
    }
    let n = comm.len();
    all.check_arrays(n)?;
    let mut prepared = Prepared::default();
    // SAFETY: the caller promises what this function requires, for the arrays as well.
    unsafe {
        let places = (0..n).map(|rank| all.get(mpi, rank)).collect::<Result<Few<Elements>>>()?;
        let lengths = places.iter().map(|place| place.check(mpi)).collect::<Result<Few<usize>>>()?;
        let own = places[comm.my_rank()];
        let (source, bytes) = prepared.outgoing(mpi, if mine.is_in_place() { own } else { mine })?;
        check_same(bytes, lengths[comm.my_rank()])?;
        if !mine.is_in_place() {
            check_apart(mine.buffer.cast(), own.buffer.cast::<u8>().cast_mut(), bytes)?;
        }
        let target = match contiguous(mpi, &places, &lengths)? {
            Some(start) => start,
            None => {
                let start = prepared.room(lengths.iter().sum());
                let mut offset = 0;
                for (place, &length) in places.iter().zip(&lengths) {
                    prepared.unpack_at_end(*place, start.wrapping_add(offset), length)?;
                    offset += length;
                }
                start
            }
        };
        let memory = Memory { source, target, combiner: None };
        // All members have the same lengths, and so the same call.
        let are_equal = lengths.iter().all(|&length| length == bytes);
        let call = match are_equal {
            true => MessageCall::of_bytes(Operation::AllGather, 0, bytes),
            false => {
                let counts = Some(lengths.as_slice().into());
                MessageCall { counts, ..MessageCall::of_bytes(Operation::AllGather, 0, 0) }
            }
        };
        prepared.work = Work::Call(call, memory);
    }
    Ok(prepared)
}

/// Lists that have an entry for each rank.
type Few<T> = SmallVec<[T; 8]>;

/// The address of the first block, if all lie one behind the other without gaps.
fn contiguous(mpi: &Mpi, places: &[Elements], lengths: &[usize]) -> Result<Option<*mut u8>> {
    let mut start: Option<*mut u8> = None;
    let mut offset = 0;
    for (place, &length) in places.iter().zip(lengths).filter(|&(_, &length)| length > 0) {
        let Some(gap) = mpi.datatype(place.datatype)?.run(place.count as usize) else { return Ok(None) };
        let data = place.buffer.cast::<u8>().cast_mut().wrapping_offset(gap);
        let first = *start.get_or_insert(data);
        if data != first.wrapping_add(offset) {
            return Ok(None);
        }
        offset += length;
    }
    Ok(Some(start.unwrap_or_else(|| places[0].buffer.cast::<u8>().cast_mut())))
}

unsafe fn prepare_alltoallv(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    sendcounts: Integers,
    sdispls: Integers,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Integers,
    rdispls: Integers,
    recvtype: MPI_Datatype,
) -> Result<Prepared> {
    let from = blocks(sendbuf, sendcounts, sdispls, sendtype);
    let into = blocks(recvbuf, recvcounts, rdispls, recvtype);
    // SAFETY: the caller promises what this function requires.
    unsafe { all_to_all(mpi, comm, from, into, "alltoallv") }
}

unsafe fn prepare_alltoallw(
    mpi: &Mpi,
    comm: &Comm,
    sendbuf: *const c_void,
    sendcounts: Integers,
    sdispls: Integers,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Integers,
    rdispls: Integers,
    recvtypes: *const MPI_Datatype,
) -> Result<Prepared> {
    let blocks = |buffer, counts, displs, types| Blocks {
        buffer,
        counts,
        places: Places::Bytes(displs),
        types: Types::Each(types),
    };
    let from = blocks(sendbuf, sendcounts, sdispls, sendtypes);
    let into = blocks(recvbuf.cast_const(), recvcounts, rdispls, recvtypes);
    // SAFETY: the caller promises what this function requires.
    unsafe { all_to_all(mpi, comm, from, into, "alltoallw") }
}

/// Block j of rank i to block i of rank j.
unsafe fn all_to_all(
    mpi: &Mpi,
    comm: &Comm,
    from: Blocks,
    into: Blocks,
    name: &'static str,
) -> Result<Prepared> {
    let (n, me) = (comm.len(), comm.my_rank());
    if let Some(remote) = &comm.remote {
        // SAFETY: the caller promises what this function requires.
        return unsafe { inter::all_to_all(mpi, comm, from, into, (remote.len(), name)) };
    }
    into.check_arrays(n)?;
    let in_place = from.is_in_place();
    if !in_place {
        from.check_arrays(n)?;
        // SAFETY: the caller promises arrays with an element for each rank.
        let is_empty = |rank| unsafe { from.counts.get(rank) } == 0;
        // Blocks of one buffer may be apart, or empty.
        ensure!(
            from != into || from.buffer.is_null() || (0..n).all(is_empty),
            MPI_ERR_BUFFER,
            "sendbuf and recvbuf are the same, with the same counts and places. Use MPI_IN_PLACE, or another \
             buffer"
        );
    }
    let mut messages = Messages::new(mpi);
    // SAFETY: the caller promises what this function requires, for the arrays as well.
    unsafe {
        // The nearest neighbours first, so that not all send to one rank at once.
        for rank in (1..n).map(|distance| (me + n - distance) % n) {
            let place = into.get(mpi, rank)?;
            if place.bytes(mpi)? > 0 {
                messages.receive(rank, 0, place)?;
            }
        }
        for rank in (1..n).map(|distance| (me + distance) % n) {
            let block = if in_place { into.get(mpi, rank)? } else { from.get(mpi, rank)? };
            if block.bytes(mpi)? == 0 {
                continue;
            }
            let (from, bytes) = match in_place {
                true => messages.prepared.copied(mpi, block)?,
                false => messages.prepared.outgoing(mpi, block)?,
            };
            messages.exchange.sends.push(Send { to: rank, slot: 0, from, bytes });
        }
        if !in_place {
            messages.copy(from.get(mpi, me)?, into.get(mpi, me)?)?;
        }
    }
    Ok(messages.finish(name))
}
