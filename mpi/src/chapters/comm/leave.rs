//! How communicators go.
//!
//! Invariant: operations under way keep what they need, so that a handle may be freed before they end.

use super::agree::agree;
use super::{COMMS, freed, no_comm};
use crate::abi::*;
use crate::chapters::attribute::Object;
use crate::chapters::errhandler::Handler;
use crate::chapters::error::{On, Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::chapters::request;

/// `MPI_Comm_free`: local, although the standard has it collective. Operations under way go on.
pub unsafe fn comm_free(mpi: &Mpi, comm: *mut MPI_Comm) -> Result {
    let place = output("comm", comm)?;
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { place.read() };
    free(mpi, handle).map_err(|error| error.on(On::Comm(handle)))?;
    // SAFETY: the caller passes places and arrays that are valid, or null.
    unsafe { place.write(MPI_COMM_NULL) };
    Ok(())
}

fn check_freeable(handle: MPI_Comm) -> Result {
    ensure!(
        !matches!(handle, MPI_COMM_WORLD | MPI_COMM_SELF),
        MPI_ERR_COMM,
        "MPI_COMM_WORLD and MPI_COMM_SELF cannot be freed"
    );
    Ok(())
}

fn free(mpi: &Mpi, handle: MPI_Comm) -> Result {
    check_freeable(handle)?;
    let comm = mpi.share_comm(handle)?;
    comm.attributes.delete_all(Object::Comm(handle))?;
    comm.attached.release(mpi, handle);
    let removed = COMMS.remove(handle.0).ok_or_else(|| no_comm(handle))?;
    let handler = removed.errhandler.get();
    // Not every operation that is under way has a share of its communicator.
    match request::count() > 0 && handler != Handler::First {
        true => freed().insert(handle.0, handler),
        false => freed().remove(&handle.0),
    };
    Ok(())
}

/// `MPI_Comm_disconnect`: completes what is under way, and waits until all members have called it.
pub unsafe fn comm_disconnect(mpi: &Mpi, comm: *mut MPI_Comm) -> Result {
    let place = output("comm", comm)?;
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { place.read() };
    let leave = || {
        check_freeable(handle)?;
        mpi.share_comm(handle)?.attached.flush(mpi);
        request::finish_detached_on(mpi, handle);
        agree(mpi, &*mpi.share_comm(handle)?, Ok([0; 2]))?;
        free(mpi, handle)
    };
    leave().map_err(|error| error.on(On::Comm(handle)))?;
    // SAFETY: the caller passes places and arrays that are valid, or null.
    unsafe { place.write(MPI_COMM_NULL) };
    Ok(())
}
