//! Sessions.

use crate::abi::*;

api! {
    early MPI_Session_init(
        info: MPI_Info, errhandler: MPI_Errhandler, session: *mut MPI_Session,
    ) => crate::chapters::session::session_init;
    call MPI_Session_finalize(session: *mut MPI_Session) => crate::chapters::session::session_finalize;
    call MPI_Session_get_info(
        session: MPI_Session, info_used: *mut MPI_Info,
    ) => crate::chapters::session::session_get_info;
    call MPI_Session_get_num_psets(
        session: MPI_Session, info: MPI_Info, npset_names: *mut c_int,
    ) => crate::chapters::session::session_get_num_psets;
    call MPI_Session_get_nth_pset(
        session: MPI_Session, info: MPI_Info, n: c_int, pset_len: *mut c_int, pset_name: *mut c_char,
    ) => crate::chapters::session::session_get_nth_pset;
    call MPI_Session_get_pset_info(
        session: MPI_Session, pset_name: *const c_char, info: *mut MPI_Info,
    ) => crate::chapters::session::session_get_pset_info;
    call MPI_Group_from_session_pset(
        session: MPI_Session, pset_name: *const c_char, newgroup: *mut MPI_Group,
    ) => crate::chapters::session::group_from_session_pset;
    call MPI_Session_set_errhandler(
        session: MPI_Session, errhandler: MPI_Errhandler,
    ) => crate::chapters::session::session_set_errhandler;
    call MPI_Session_get_errhandler(
        session: MPI_Session, errhandler: *mut MPI_Errhandler,
    ) => crate::chapters::session::session_get_errhandler;
    call MPI_Session_call_errhandler(
        session: MPI_Session, errorcode: c_int,
    ) => crate::chapters::session::session_call_errhandler;
    large MPI_Session_attach_buffer(
        session: MPI_Session, buffer: *mut c_void, size: Count,
    ) => crate::chapters::session::session_attach_buffer;
    large MPI_Session_detach_buffer(
        session: MPI_Session, buffer_addr: *mut c_void, size: CountOut,
    ) => crate::chapters::session::session_detach_buffer;
    call MPI_Session_flush_buffer(session: MPI_Session) => crate::chapters::session::session_flush_buffer;
    call MPI_Session_iflush_buffer(
        session: MPI_Session, request: *mut MPI_Request,
    ) => crate::chapters::session::session_iflush_buffer;
}
