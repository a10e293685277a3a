//! Probes.

use super::receive::{found, pattern};
use crate::abi::*;
use crate::error::Result;
use crate::library::{Mpi, output};
use crate::request::{NO_PROCESS, store};

/// `MPI_Probe`.
pub unsafe fn probe(mpi: &Mpi, source: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) -> Result {
    let comm = mpi.comm(comm)?;
    let seen = match pattern(comm, source, tag)? {
        None => NO_PROCESS,
        Some(pattern) => found(comm, &mpi.core.probe(&pattern)),
    };
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { store(status, &seen) };
    Ok(())
}

/// `MPI_Iprobe`.
pub unsafe fn iprobe(
    mpi: &Mpi,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Result {
    let flag = output("flag", flag)?;
    let comm = mpi.comm(comm)?;
    let seen = match pattern(comm, source, tag)? {
        None => Some(NO_PROCESS),
        Some(pattern) => mpi.core.probe_once(&pattern).map(|status| found(comm, &status)),
    };
    // SAFETY: the caller's pointers are valid for one value each; the status may be null.
    unsafe {
        flag.write(seen.is_some().into());
        if let Some(seen) = seen {
            store(status, &seen);
        }
    }
    Ok(())
}
