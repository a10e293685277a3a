//! Initialisation and end, and inquiries about the library.

use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::leaks;
use crate::chapters::library::{self, Mpi, output};
use crate::chapters::p2p;
use crate::chapters::request;
use crate::chapters::users::{self, User};
use std::sync::OnceLock;
use std::thread::ThreadId;

/// The text of `MPI_Get_library_version`.
const LIBRARY_VERSION: &str = concat!("Pelago ", env!("CARGO_PKG_VERSION"), ", MPI 5.0 by the standard ABI");

/// `MPI_Init`.
pub unsafe fn init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> Result {
    initialize(MPI_THREAD_SINGLE)
}

/// `MPI_Init_thread`: every level is provided.
pub unsafe fn init_thread(
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> Result {
    let levels = [MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE];
    ensure!(levels.contains(&required), MPI_ERR_ARG, "required is {required}, which is no level of threads");
    output("provided", provided)?;
    initialize(required)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("provided", provided)?.write(required) };
    Ok(())
}

/// Whether the world was initialised, and with which level of threads.
static WORLD: OnceLock<(c_int, ThreadId)> = OnceLock::new();

fn initialize(level: c_int) -> Result {
    ensure!(
        !library::is_finalized(),
        MPI_ERR_OTHER,
        "it is called after MPI_Finalize. A process initialises MPI once"
    );
    let is_first = WORLD.get().is_none();
    ensure!(is_first, MPI_ERR_OTHER, "it is called a second time. A process initialises MPI once");
    users::enter(User::World, level)?;
    WORLD.get_or_init(|| (level, std::thread::current().id()));
    Ok(())
}

/// `MPI_Finalize`.
pub unsafe fn finalize(mpi: &'static Mpi) -> Result {
    ensure!(
        WORLD.get().is_some(),
        MPI_ERR_OTHER,
        "it is called without MPI_Init. Sessions have an end of their own"
    );
    ensure!(!library::is_finalized(), MPI_ERR_OTHER, "it is called a second time");
    crate::chapters::comm::delete_own_attributes(mpi)?;
    leaks::report(mpi);
    p2p::flush_world(mpi);
    request::finish_detached_of(mpi, MPI_SESSION_NULL);
    library::end_world();
    users::leave(mpi)
}

/// `MPI_Initialized`: sessions do not count.
pub unsafe fn initialized(flag: *mut c_int) -> Result {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("flag", flag)?.write(WORLD.get().is_some().into()) };
    Ok(())
}

/// `MPI_Finalized`.
pub unsafe fn finalized(flag: *mut c_int) -> Result {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("flag", flag)?.write(library::is_finalized().into()) };
    Ok(())
}

/// The level of threads and the thread of the initialisation.
fn world() -> Result<(c_int, ThreadId)> {
    WORLD.get().copied().ok_or_else(|| {
        Error::new(
            MPI_ERR_OTHER,
            "it is called without MPI_Init. MPI_Session_get_info has the level of a session",
        )
    })
}

/// `MPI_Query_thread`.
pub unsafe fn query_thread(_mpi: &Mpi, provided: *mut c_int) -> Result {
    let (level, _) = world()?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("provided", provided)?.write(level) };
    Ok(())
}

/// `MPI_Is_thread_main`.
pub unsafe fn is_thread_main(_mpi: &Mpi, flag: *mut c_int) -> Result {
    let is_main = world()?.1 == std::thread::current().id();
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("flag", flag)?.write(is_main.into()) };
    Ok(())
}

/// `MPI_Abort`: ends the whole job.
pub unsafe fn abort(mpi: &Mpi, _comm: MPI_Comm, errorcode: c_int) -> Result {
    mpi.core.abort(errorcode, &format!("MPI_Abort: code {errorcode}"))
}

/// `MPI_Get_version`.
pub unsafe fn get_version(version: *mut c_int, subversion: *mut c_int) -> Result {
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        output("version", version)?.write(MPI_VERSION);
        output("subversion", subversion)?.write(MPI_SUBVERSION);
    }
    Ok(())
}

/// Writes a string with its end and its length.
pub unsafe fn write_text(text: &str, room: c_int, into: *mut c_char, length: *mut c_int) -> Result {
    let bytes = &text.as_bytes()[..text.len().min(room as usize - 1)];
    // SAFETY: the caller's buffer has `room` bytes, and the other pointer is valid for one value.
    unsafe {
        output("the text", into)?.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        into.add(bytes.len()).write(0);
        output("the length", length)?.write(bytes.len() as c_int);
    }
    Ok(())
}

/// `MPI_Get_library_version`.
pub unsafe fn get_library_version(version: *mut c_char, resultlen: *mut c_int) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { write_text(LIBRARY_VERSION, MPI_MAX_LIBRARY_VERSION_STRING, version, resultlen) }
}

/// The name of this host.
pub fn hostname() -> String {
    let mut host = [0u8; MPI_MAX_PROCESSOR_NAME as usize];
    // SAFETY: the buffer is valid for its length.
    unsafe { libc::gethostname(host.as_mut_ptr().cast(), host.len() - 1) };
    let end = host.iter().position(|&byte| byte == 0).unwrap_or(host.len() - 1);
    String::from_utf8_lossy(&host[..end]).into_owned()
}

/// `MPI_Get_processor_name`.
pub unsafe fn get_processor_name(_mpi: &Mpi, name: *mut c_char, resultlen: *mut c_int) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { write_text(&hostname(), MPI_MAX_PROCESSOR_NAME, name, resultlen) }
}

/// `MPI_Wtime`: seconds since a time in the past, the same for all processes of a node.
pub unsafe fn wtime() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is valid for one value.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// `MPI_Wtick`: the resolution of the clock in seconds.
pub unsafe fn wtick() -> f64 {
    let mut step = libc::timespec { tv_sec: 0, tv_nsec: 1 };
    // SAFETY: the place is valid for one value.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &raw mut step) };
    step.tv_sec as f64 + step.tv_nsec as f64 * 1e-9
}
