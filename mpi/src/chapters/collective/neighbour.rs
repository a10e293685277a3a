//! Operations with the neighbours of a topology.
//!
//! Invariant: the k-th edge from one process to another is the same at both. On a grid the message in the
//! negative direction of a dimension is the one from the positive direction at the other end, also where both
//! neighbours are one process.

use super::buffers::{Blocks, Elements, Places, Types};
use super::combine::check_intra;
use super::form::forms;
use super::prepare::Prepared;
use super::varying::Messages;
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::error::{Error, Result};
use crate::chapters::library::Mpi;
use crate::chapters::topology::Topology;
use crate::convert::Integers;

forms! {
    prepare_allgather: neighbor_allgather ineighbor_allgather neighbor_allgather_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcount: i64, recvtype: MPI_Datatype);
    prepare_allgatherv: neighbor_allgatherv ineighbor_allgatherv neighbor_allgatherv_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcounts: Integers, displs: Integers, recvtype: MPI_Datatype);
    prepare_alltoall: neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcount: i64, recvtype: MPI_Datatype);
    prepare_alltoallv: neighbor_alltoallv ineighbor_alltoallv neighbor_alltoallv_init
        (sendbuf: *const c_void, sendcounts: Integers, sdispls: Integers, sendtype: MPI_Datatype,
         recvbuf: *mut c_void, recvcounts: Integers, rdispls: Integers, recvtype: MPI_Datatype);
    prepare_alltoallw: neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init
        (sendbuf: *const c_void, sendcounts: Integers, sdispls: Integers, sendtypes: *const MPI_Datatype,
         recvbuf: *mut c_void, recvcounts: Integers, rdispls: Integers, recvtypes: *const MPI_Datatype);
}

/// The neighbours of this process.
struct Neighbours {
    sources: Vec<c_int>,
    destinations: Vec<c_int>,
    is_grid: bool,
}

impl Neighbours {
    fn of(comm: &Comm) -> Result<Neighbours> {
        check_intra(comm)?;
        let topology = comm.topology.get().ok_or_else(|| {
            Error::new(
                MPI_ERR_TOPOLOGY,
                "the communicator has no topology. Make one by MPI_Cart_create or MPI_Dist_graph_create",
            )
        })?;
        let (sources, destinations) = topology.neighbours(comm.my_rank());
        Ok(Neighbours { sources, destinations, is_grid: matches!(topology, Topology::Cart(_)) })
    }

    /// The receives: number, source and slot.
    fn receives(&self) -> impl Iterator<Item = (usize, usize, u32)> {
        let slot = |number| if self.is_grid { number as u32 } else { 0 };
        let known = self.sources.iter().enumerate().filter(|&(_, &rank)| rank != MPI_PROC_NULL);
        known.map(move |(number, &rank)| (number, rank as usize, slot(number)))
    }

    /// The sends: number, destination and slot. Those to one process leave in the order in which it receives.
    fn sends(&self) -> impl Iterator<Item = (usize, usize, u32)> {
        // The message arrives from the other direction of its dimension.
        let (other_direction, slots) = if self.is_grid { (1, u32::MAX) } else { (0, 0) };
        (0..self.destinations.len()).filter_map(move |position| {
            let number = position ^ other_direction;
            let rank = self.destinations[number];
            (rank != MPI_PROC_NULL).then_some((number, rank as usize, position as u32 & slots))
        })
    }

    /// The operation in which `from` has the data for each destination and `into` the place for each source.
    ///
    /// # Safety
    /// The buffers have the elements, until the operation is over.
    unsafe fn exchange(
        &self,
        mpi: &Mpi,
        from: impl Fn(usize) -> Result<Elements>,
        into: impl Fn(usize) -> Result<Elements>,
        name: &'static str,
    ) -> Result<Prepared> {
        let mut messages = Messages::new(mpi);
        // SAFETY: the caller promises what this function requires.
        unsafe {
            for (number, rank, slot) in self.receives() {
                messages.receive(rank, slot, into(number)?)?;
            }
            for (number, rank, slot) in self.sends() {
                messages.send(rank, slot, from(number)?)?;
            }
        }
        Ok(messages.finish(name))
    }
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
    let neighbours = Neighbours::of(comm)?;
    let mine = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let block = Elements { buffer: recvbuf, count: recvcount, datatype: recvtype };
    let (from, into) = (|_| Ok(mine), |number| block.block(mpi, number));
    // SAFETY: the caller promises what this function requires.
    unsafe { neighbours.exchange(mpi, from, into, "neighbor_allgather") }
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
    let neighbours = Neighbours::of(comm)?;
    let mine = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let all = blocks(recvbuf, recvcounts, Places::Elements(displs), Types::One(recvtype));
    all.check_arrays(neighbours.sources.len())?;
    // SAFETY: the caller promises what this function requires, for the arrays as well.
    unsafe {
        let (from, into) = (|_| Ok(mine), |number| all.get(mpi, number));
        neighbours.exchange(mpi, from, into, "neighbor_allgatherv")
    }
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
    let neighbours = Neighbours::of(comm)?;
    let block = Elements { buffer: sendbuf, count: sendcount, datatype: sendtype };
    let place = Elements { buffer: recvbuf, count: recvcount, datatype: recvtype };
    let (from, into) = (|number| block.block(mpi, number), |number| place.block(mpi, number));
    // SAFETY: the caller promises what this function requires.
    unsafe { neighbours.exchange(mpi, from, into, "neighbor_alltoall") }
}

fn blocks(buffer: *const c_void, counts: Integers, places: Places, types: Types) -> Blocks {
    Blocks { buffer, counts, places, types }
}

unsafe fn all_to_all(
    mpi: &Mpi,
    comm: &Comm,
    from: Blocks,
    into: Blocks,
    name: &'static str,
) -> Result<Prepared> {
    let neighbours = Neighbours::of(comm)?;
    from.check_arrays(neighbours.destinations.len())?;
    into.check_arrays(neighbours.sources.len())?;
    // SAFETY: the caller promises what this function requires, for the arrays as well.
    unsafe {
        let (from, into) = (|number| from.get(mpi, number), |number| into.get(mpi, number));
        neighbours.exchange(mpi, from, into, name)
    }
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
    let from = blocks(sendbuf, sendcounts, Places::Elements(sdispls), Types::One(sendtype));
    let into = blocks(recvbuf, recvcounts, Places::Elements(rdispls), Types::One(recvtype));
    // SAFETY: the caller promises what this function requires.
    unsafe { all_to_all(mpi, comm, from, into, "neighbor_alltoallv") }
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
    let from = blocks(sendbuf, sendcounts, Places::Bytes(sdispls), Types::Each(sendtypes));
    let into = blocks(recvbuf, recvcounts, Places::Bytes(rdispls), Types::Each(recvtypes));
    // SAFETY: the caller promises what this function requires.
    unsafe { all_to_all(mpi, comm, from, into, "neighbor_alltoallw") }
}
