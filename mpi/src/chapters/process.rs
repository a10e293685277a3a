//! Processes that are created by others: what a job of a fixed size replies. Ports are those of communicators
//! (`comm/port.rs`), and `names.rs` has the names of services.
//!
//! Invariant: the processes of a job are those that its launcher has started. Calls that would add others
//! check their arguments, and fail on each process in the same way, without communication.

use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::info;
use crate::chapters::library::{Mpi, output};
use std::ffi::CStr;

/// Why processes cannot come together.
const FIXED: &str = "a Pelago job has the processes that its launcher has started, and no others";

fn refuse<T>(class: c_int, what: &str) -> Result<T> {
    Err(Error::new(class, format!("{what}: {FIXED}. Start the program with as many as it needs")))
}

/// The text that a program passes.
///
/// # Safety
/// The place is null or that of a string.
pub unsafe fn text(name: &str, place: *const c_char) -> Result<String> {
    ensure!(!place.is_null(), MPI_ERR_ARG, "{name} is null");
    // SAFETY: the caller's pointer is that of a string.
    Ok(unsafe { CStr::from_ptr(place) }.to_string_lossy().into_owned())
}

/// Checks the root of a call on a communicator: whether this process is the root.
pub fn is_root(mpi: &Mpi, comm: MPI_Comm, root: c_int) -> Result<bool> {
    let comm = mpi.comm(comm)?;
    ensure!(comm.remote.is_none(), MPI_ERR_COMM, "the communicator is an inter-communicator");
    let n = comm.len();
    ensure!(
        usize::try_from(root).is_ok_and(|root| root < n),
        MPI_ERR_ROOT,
        "root is {root}, and the communicator has {n} processes. Ranks are below {n}"
    );
    Ok(root as usize == comm.my_rank())
}

/// `MPI_Comm_spawn`: fails with `MPI_ERR_SPAWN`; the codes of the processes are the same.
pub unsafe fn comm_spawn(
    mpi: &Mpi,
    command: *const c_char,
    _argv: *mut *mut c_char,
    maxprocs: c_int,
    info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    intercomm: *mut MPI_Comm,
    errcodes: *mut c_int,
) -> Result {
    let place = output("intercomm", intercomm)?;
    let mut what = "processes cannot be started".to_owned();
    if is_root(mpi, comm, root)? {
        ensure!(maxprocs >= 0, MPI_ERR_ARG, "maxprocs is {maxprocs}, which is negative");
        info::given(info)?;
        // SAFETY: the caller's pointers are valid: the first is a string, the last has maxprocs elements.
        unsafe {
            what = format!("{maxprocs} processes of {:?} cannot be started", text("command", command)?);
            tell_codes(errcodes, maxprocs as usize);
        }
    }
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(MPI_COMM_NULL) };
    refuse(MPI_ERR_SPAWN, &what)
}

/// `MPI_Comm_spawn_multiple`: as `MPI_Comm_spawn`.
pub unsafe fn comm_spawn_multiple(
    mpi: &Mpi,
    count: c_int,
    commands: *mut *mut c_char,
    _argv: *mut *mut *mut c_char,
    maxprocs: *const c_int,
    infos: *const MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    intercomm: *mut MPI_Comm,
    errcodes: *mut c_int,
) -> Result {
    let place = output("intercomm", intercomm)?;
    if is_root(mpi, comm, root)? {
        ensure!(count > 0, MPI_ERR_COUNT, "count is {count}. Give at least one command");
        ensure!(
            !commands.is_null() && !maxprocs.is_null() && !infos.is_null(),
            MPI_ERR_ARG,
            "an array of commands, numbers or infos is null"
        );
        let mut processes = 0;
        for i in 0..count as usize {
            // SAFETY: the caller's arrays have count elements.
            let n = unsafe {
                text("a command", commands.add(i).read())?;
                info::given(infos.add(i).read())?;
                maxprocs.add(i).read()
            };
            ensure!(n >= 0, MPI_ERR_ARG, "maxprocs of command {i} is {n}, which is negative");
            processes += n as usize;
        }
        // SAFETY: the caller's array has an element for each process.
        unsafe { tell_codes(errcodes, processes) };
    }
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(MPI_COMM_NULL) };
    refuse(MPI_ERR_SPAWN, "processes cannot be started")
}

/// Gives each process that was not started its code, unless the program ignores them.
unsafe fn tell_codes(errcodes: *mut c_int, n: usize) {
    if errcodes != MPI_ERRCODES_IGNORE {
        // SAFETY: the caller's array has n elements.
        (0..n).for_each(|i| unsafe { errcodes.add(i).write(MPI_ERR_SPAWN) });
    }
}

/// `MPI_Comm_get_parent`: no process was created by others.
pub unsafe fn comm_get_parent(_mpi: &Mpi, parent: *mut MPI_Comm) -> Result {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("parent", parent)?.write(MPI_COMM_NULL) };
    Ok(())
}
