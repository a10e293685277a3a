//! Error handlers.

use crate::abi::*;

api! {
    early MPI_Comm_create_errhandler(
        comm_errhandler_fn: *mut MPI_Comm_errhandler_function, errhandler: *mut MPI_Errhandler,
    ) => crate::chapters::errhandler::comm_create_errhandler;
    early MPI_Win_create_errhandler(
        win_errhandler_fn: *mut MPI_Win_errhandler_function, errhandler: *mut MPI_Errhandler,
    ) => crate::chapters::errhandler::win_create_errhandler;
    early MPI_File_create_errhandler(
        file_errhandler_fn: *mut MPI_File_errhandler_function, errhandler: *mut MPI_Errhandler,
    ) => crate::chapters::errhandler::file_create_errhandler;
    early MPI_Session_create_errhandler(
        session_errhandler_fn: *mut MPI_Session_errhandler_function, errhandler: *mut MPI_Errhandler,
    ) => crate::chapters::errhandler::session_create_errhandler;
    call MPI_Comm_set_errhandler(
        comm: MPI_Comm, errhandler: MPI_Errhandler,
    ) => crate::chapters::errhandler::comm_set_errhandler;
    call MPI_Comm_get_errhandler(
        comm: MPI_Comm, errhandler: *mut MPI_Errhandler,
    ) => crate::chapters::errhandler::comm_get_errhandler;
    call MPI_Comm_call_errhandler(
        comm: MPI_Comm, errorcode: c_int,
    ) => crate::chapters::errhandler::comm_call_errhandler;
    early MPI_Errhandler_free(
        errhandler: *mut MPI_Errhandler,
    ) => crate::chapters::errhandler::errhandler_free;
}
