//! Environment: initialisation, end, versions, time.

use crate::abi::*;

api! {
    early MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) => crate::chapters::setup::init;
    early MPI_Init_thread(
        argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int,
    ) => crate::chapters::setup::init_thread;
    call MPI_Finalize() => crate::chapters::setup::finalize;
    early MPI_Initialized(flag: *mut c_int) => crate::chapters::setup::initialized;
    early MPI_Finalized(flag: *mut c_int) => crate::chapters::setup::finalized;
    call MPI_Query_thread(provided: *mut c_int) => crate::chapters::setup::query_thread;
    call MPI_Is_thread_main(flag: *mut c_int) => crate::chapters::setup::is_thread_main;
    call MPI_Abort(comm: MPI_Comm, errorcode: c_int) => crate::chapters::setup::abort;
    early MPI_Get_version(version: *mut c_int, subversion: *mut c_int) => crate::chapters::setup::get_version;
    early MPI_Get_library_version(
        version: *mut c_char, resultlen: *mut c_int,
    ) => crate::chapters::setup::get_library_version;
    call MPI_Get_processor_name(
        name: *mut c_char, resultlen: *mut c_int,
    ) => crate::chapters::setup::get_processor_name;
    value MPI_Wtime() -> f64 => crate::chapters::setup::wtime;
    value MPI_Wtick() -> f64 => crate::chapters::setup::wtick;
}
