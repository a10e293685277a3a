//! How communicators come into being, and how they go.
//!
//! The context of a new communicator is chosen by its rank 0, from numbers that only this PE gives, and told to
//! the others in the exchange that the call makes anyway.

use super::{COMMS, Comm};
use crate::abi::*;
use crate::collective::exchange_words;
use crate::error::{Error, Result, ensure};
use crate::group::{self, Group};
use crate::library::{Mpi, output};
use pelago_core::Pe;
use std::sync::Arc;

/// A handle of a communicator.
pub fn insert(comm: Comm) -> Result<MPI_Comm> {
    let handle = COMMS.insert(Arc::new(comm)).map(MPI_Comm);
    handle.ok_or_else(|| Error::new(MPI_ERR_NO_MEM, "there are too many communicators. Free some"))
}

/// `MPI_Comm_split`.
pub unsafe fn comm_split(
    mpi: &Mpi,
    comm: MPI_Comm,
    color: c_int,
    key: c_int,
    newcomm: *mut MPI_Comm,
) -> Result {
    let place = output("newcomm", newcomm)?;
    let comm = mpi.comm(comm)?;
    ensure!(color >= 0 || color == MPI_UNDEFINED, MPI_ERR_ARG, "color is {color}, which is negative");
    let words = [color as u32 as u64 | (key as u32 as u64) << 32, mpi.new_context()];
    let all = exchange_words(mpi, comm, words)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(MPI_COMM_NULL) };
    if color == MPI_UNDEFINED {
        return Ok(());
    }
    let mut mine: Vec<(c_int, usize)> = (0..all.len())
        .filter(|&rank| all[rank][0] as u32 as c_int == color)
        .map(|rank| ((all[rank][0] >> 32) as u32 as c_int, rank))
        .collect();
    mine.sort_unstable();
    let pes: Vec<Pe> = mine.iter().filter_map(|&(_, rank)| comm.group.pe(rank as c_int)).collect();
    let child = Comm::new(all[mine[0].1][1], Group::of(&pes, mpi.core.my_pe()), None, |pe| mpi.core.node(pe));
    child.errhandler.set(comm.errhandler.get());
    // SAFETY: as above.
    unsafe { place.write(insert(child)?) };
    Ok(())
}

/// `MPI_Comm_dup`.
pub unsafe fn comm_dup(mpi: &Mpi, comm: MPI_Comm, newcomm: *mut MPI_Comm) -> Result {
    let place = output("newcomm", newcomm)?;
    let comm = mpi.comm(comm)?;
    let context = exchange_words(mpi, comm, [0, mpi.new_context()])?[0][1];
    let copy = Comm::new(context, comm.group.clone(), None, |pe| mpi.core.node(pe));
    copy.errhandler.set(comm.errhandler.get());
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(insert(copy)?) };
    Ok(())
}

/// `MPI_Comm_create`.
pub unsafe fn comm_create(mpi: &Mpi, comm: MPI_Comm, group: MPI_Group, newcomm: *mut MPI_Comm) -> Result {
    let place = output("newcomm", newcomm)?;
    let (comm, group) = (mpi.comm(comm)?, group::find(group)?);
    let all = exchange_words(mpi, comm, [0, mpi.new_context()])?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(MPI_COMM_NULL) };
    if group.my_rank().is_none() {
        return Ok(());
    }
    let first = group.pe(0).and_then(|pe| comm.group.rank_of(pe));
    let Some(first) = first else {
        return Err(Error::new(MPI_ERR_GROUP, "the group has a process that the communicator does not have"));
    };
    let child = Comm::new(all[first][1], (*group).clone(), None, |pe| mpi.core.node(pe));
    child.errhandler.set(comm.errhandler.get());
    // SAFETY: as above.
    unsafe { place.write(insert(child)?) };
    Ok(())
}

/// `MPI_Comm_free`. Operations under way keep what they need.
pub unsafe fn comm_free(_mpi: &Mpi, comm: *mut MPI_Comm) -> Result {
    let place = output("comm", comm)?;
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { place.read() };
    ensure!(
        !matches!(handle, MPI_COMM_WORLD | MPI_COMM_SELF),
        MPI_ERR_COMM,
        "MPI_COMM_WORLD and MPI_COMM_SELF cannot be freed"
    );
    ensure!(COMMS.remove(handle.0).is_some(), MPI_ERR_COMM, "the communicator was freed, or never was one");
    // SAFETY: as above.
    unsafe { place.write(MPI_COMM_NULL) };
    Ok(())
}
