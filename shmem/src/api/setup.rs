//! Library setup, exit and query routines.

use super::*;

api! {
    only plain "init": crate::setup::init, ();
    only plain "my_pe": crate::setup::my_pe, () -> c_int;
    only plain "n_pes": crate::setup::n_pes, () -> c_int;
    only plain "finalize": crate::setup::finalize, ();
    only plain "query_initialized": crate::setup::query_initialized, (initialized: *mut c_int);
    only plain "global_exit": crate::setup::global_exit, (status: c_int);
    only plain "pe_accessible": crate::setup::pe_accessible, (pe: c_int) -> c_int;
    only plain "addr_accessible": crate::setup::addr_accessible, (addr: *const c_void, pe: c_int) -> c_int;
    only plain "ptr": crate::setup::ptr, (dest: *const c_void, pe: c_int) -> *mut c_void;
    only plain "info_get_version": crate::setup::info_get_version, (major: *mut c_int, minor: *mut c_int);
    only plain "info_get_name": crate::setup::info_get_name, (name: *mut c_char);
    only plain "init_thread": crate::setup::init_thread,
        (requested: c_int, provided: *mut c_int) -> c_int;
    only plain "query_thread": crate::setup::query_thread, (provided: *mut c_int);
    /// Deprecated.
    only named "start_pes": crate::setup::start_pes, (npes: c_int);
    /// Deprecated.
    only named "_my_pe": crate::setup::my_pe, () -> c_int;
    /// Deprecated.
    only named "_num_pes": crate::setup::n_pes, () -> c_int;
}
