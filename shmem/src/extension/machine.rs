//! The clock, and the name of the node (Sandia OpenSHMEM); what holds for programs that use MPI as well
//! (OSSS-UCX).

use crate::base::abi::{PROGRESS_MPI, ThreadNumber, c_char, c_int};
use crate::base::fault::{Call, fail};
use pelago::sync::{AtomicUsize, Ordering};
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// The function that the program has registered last; 0 if none. The library does not call it.
static THREAD_NUMBER: AtomicUsize = AtomicUsize::new(0);

/// `shmemx_wtime`: seconds since a time in the past that is the same for all PEs of a node.
pub(crate) unsafe fn wtime(_call: Call) -> f64 {
    const NANOSECOND: f64 = 1e-9;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the C library writes one value to the place of a local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * NANOSECOND
}

/// `shmemx_nodename`: the system's name for the node; the string stays valid.
pub(crate) unsafe fn nodename(_call: Call) -> *mut c_char {
    static NAME: OnceLock<CString> = OnceLock::new();
    NAME.get_or_init(|| CStr::to_owned(rustix::system::uname().nodename())).as_ptr().cast_mut()
}

/// `shmemx_register_gettid`: may be called at any time, also before initialisation. This library needs no
/// thread numbers; it stores the function.
pub(crate) unsafe fn register_gettid(call: Call, gettid_fn: ThreadNumber) {
    match gettid_fn {
        Some(function) => THREAD_NUMBER.store(function as usize, Ordering::Relaxed),
        None => fail(call, "gettid_fn is null: give a function that numbers the calling thread"),
    }
}

/// `shmemx_query_interoperability`: 1 for a property that holds, else 0. May be called at any time. MPI is
/// on the same runtime: each call that waits makes progress for both interfaces.
pub(crate) unsafe fn query_interoperability(_call: Call, property: c_int) -> c_int {
    (property == PROGRESS_MPI).into()
}
