//! Info objects, and the info of communicators.

use crate::abi::*;

api! {
    early MPI_Info_create(info: *mut MPI_Info) => crate::chapters::info::info_create;
    early MPI_Info_create_env(
        argc: c_int, argv: *mut *mut c_char, info: *mut MPI_Info,
    ) => crate::chapters::info::info_create_env;
    early MPI_Info_dup(info: MPI_Info, newinfo: *mut MPI_Info) => crate::chapters::info::info_dup;
    early MPI_Info_free(info: *mut MPI_Info) => crate::chapters::info::info_free;
    early MPI_Info_set(
        info: MPI_Info, key: *const c_char, value: *const c_char,
    ) => crate::chapters::info::info_set;
    early MPI_Info_delete(info: MPI_Info, key: *const c_char) => crate::chapters::info::info_delete;
    early MPI_Info_get(
        info: MPI_Info, key: *const c_char, valuelen: c_int, value: *mut c_char, flag: *mut c_int,
    ) => crate::chapters::info::info_get;
    early MPI_Info_get_string(
        info: MPI_Info, key: *const c_char, buflen: *mut c_int, value: *mut c_char, flag: *mut c_int,
    ) => crate::chapters::info::info_get_string;
    early MPI_Info_get_valuelen(
        info: MPI_Info, key: *const c_char, valuelen: *mut c_int, flag: *mut c_int,
    ) => crate::chapters::info::info_get_valuelen;
    early MPI_Info_get_nkeys(info: MPI_Info, nkeys: *mut c_int) => crate::chapters::info::info_get_nkeys;
    early MPI_Info_get_nthkey(
        info: MPI_Info, n: c_int, key: *mut c_char,
    ) => crate::chapters::info::info_get_nthkey;
    call MPI_Comm_set_info(comm: MPI_Comm, info: MPI_Info) => crate::chapters::info::comm_set_info;
    call MPI_Comm_get_info(comm: MPI_Comm, info_used: *mut MPI_Info) => crate::chapters::info::comm_get_info;
}
