//! Inquiries about communicators.

use crate::abi::*;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::chapters::setup::write_text;
use std::ffi::CStr;

/// `MPI_Comm_size`.
pub unsafe fn comm_size(mpi: &Mpi, comm: MPI_Comm, size: *mut c_int) -> Result {
    let n = mpi.comm(comm)?.len();
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("size", size)?.write(n as c_int) };
    Ok(())
}

/// `MPI_Comm_rank`.
pub unsafe fn comm_rank(mpi: &Mpi, comm: MPI_Comm, rank: *mut c_int) -> Result {
    let me = mpi.comm(comm)?.my_rank();
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("rank", rank)?.write(me as c_int) };
    Ok(())
}

/// `MPI_Comm_test_inter`.
pub unsafe fn comm_test_inter(mpi: &Mpi, comm: MPI_Comm, flag: *mut c_int) -> Result {
    let is_inter = mpi.comm(comm)?.remote.is_some();
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("flag", flag)?.write(is_inter.into()) };
    Ok(())
}

/// `MPI_Comm_remote_size`.
pub unsafe fn comm_remote_size(mpi: &Mpi, comm: MPI_Comm, size: *mut c_int) -> Result {
    let n = mpi.comm(comm)?.check_inter()?.len();
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("size", size)?.write(n as c_int) };
    Ok(())
}

/// `MPI_Comm_group`.
pub unsafe fn comm_group(mpi: &Mpi, comm: MPI_Comm, group: *mut MPI_Group) -> Result {
    let place = output("group", group)?;
    let handle = mpi.comm(comm)?.group.clone().handle()?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(handle) };
    Ok(())
}

/// `MPI_Comm_remote_group`.
pub unsafe fn comm_remote_group(mpi: &Mpi, comm: MPI_Comm, group: *mut MPI_Group) -> Result {
    let place = output("group", group)?;
    let handle = mpi.comm(comm)?.check_inter()?.clone().handle()?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(handle) };
    Ok(())
}

/// `MPI_Comm_compare`.
pub unsafe fn comm_compare(mpi: &Mpi, comm1: MPI_Comm, comm2: MPI_Comm, result: *mut c_int) -> Result {
    let (one, two) = (mpi.comm(comm1)?, mpi.comm(comm2)?);
    let sessions = [one, two].map(|comm| comm.group.session);
    ensure!(
        sessions[0] == sessions[1] || sessions.contains(&MPI_SESSION_NULL),
        MPI_ERR_COMM,
        "the communicators are of two sessions, whose objects cannot be used together"
    );
    let groups = match (&one.remote, &two.remote) {
        (None, None) => one.group.compare(&two.group),
        (Some(a), Some(b)) => {
            let pair = [one.group.compare(&two.group), a.compare(b)];
            [MPI_UNEQUAL, MPI_SIMILAR].into_iter().find(|other| pair.contains(other)).unwrap_or(MPI_IDENT)
        }
        _ => MPI_UNEQUAL,
    };
    let relation = match groups {
        MPI_IDENT if one.context == two.context => MPI_IDENT,
        MPI_IDENT => MPI_CONGRUENT,
        other => other,
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("result", result)?.write(relation) };
    Ok(())
}

/// `MPI_Comm_set_name`.
pub unsafe fn comm_set_name(mpi: &Mpi, comm: MPI_Comm, comm_name: *const c_char) -> Result {
    ensure!(!comm_name.is_null(), MPI_ERR_ARG, "comm_name is null");
    // SAFETY: the caller's pointer is that of a string.
    let name = unsafe { CStr::from_ptr(comm_name) }.to_string_lossy();
    let room = name.len().min(MPI_MAX_OBJECT_NAME as usize - 1);
    let end = (0..=room).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    mpi.comm(comm)?.set_name(&name[..end]);
    Ok(())
}

/// `MPI_Comm_get_name`. The null handle has a name as well.
pub unsafe fn comm_get_name(
    mpi: &Mpi,
    comm: MPI_Comm,
    comm_name: *mut c_char,
    resultlen: *mut c_int,
) -> Result {
    let name = match comm {
        MPI_COMM_NULL => "MPI_COMM_NULL".to_owned(),
        _ => mpi.comm(comm)?.name(),
    };
    // SAFETY: the caller passes places and arrays that are valid, or null.
    unsafe { write_text(&name, MPI_MAX_OBJECT_NAME, comm_name, resultlen) }
}
