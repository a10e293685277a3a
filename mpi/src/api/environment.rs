//! Error classes and codes, the binary interface, hardware, memory.

use crate::abi::*;

api! {
    early MPI_Error_class(
        errorcode: c_int, errorclass: *mut c_int,
    ) => crate::chapters::environment::error_class;
    early MPI_Error_string(
        errorcode: c_int, string: *mut c_char, resultlen: *mut c_int,
    ) => crate::chapters::environment::error_string;
    early MPI_Add_error_class(errorclass: *mut c_int) => crate::chapters::environment::add_error_class;
    early MPI_Add_error_code(
        errorclass: c_int, errorcode: *mut c_int,
    ) => crate::chapters::environment::add_error_code;
    early MPI_Add_error_string(
        errorcode: c_int, string: *const c_char,
    ) => crate::chapters::environment::add_error_string;
    early MPI_Remove_error_class(errorclass: c_int) => crate::chapters::environment::remove_error_class;
    early MPI_Remove_error_code(errorcode: c_int) => crate::chapters::environment::remove_error_code;
    early MPI_Remove_error_string(errorcode: c_int) => crate::chapters::environment::remove_error_string;
    early MPI_Abi_get_version(
        abi_major: *mut c_int, abi_minor: *mut c_int,
    ) => crate::chapters::environment::abi_get_version;
    early MPI_Abi_get_info(info: *mut MPI_Info) => crate::chapters::environment::abi_get_info;
    early MPI_Abi_get_fortran_info(info: *mut MPI_Info) => crate::chapters::environment::abi_get_fortran_info;
    early MPI_Abi_set_fortran_info(info: MPI_Info) => crate::chapters::environment::abi_set_fortran_info;
    early MPI_Abi_get_fortran_booleans(
        logical_size: c_int, logical_true: *mut c_void, logical_false: *mut c_void, is_set: *mut c_int,
    ) => crate::chapters::environment::abi_get_fortran_booleans;
    early MPI_Abi_set_fortran_booleans(
        logical_size: c_int, logical_true: *mut c_void, logical_false: *mut c_void,
    ) => crate::chapters::environment::abi_set_fortran_booleans;
    early MPI_Get_hw_resource_info(
        hw_info: *mut MPI_Info,
    ) => crate::chapters::environment::get_hw_resource_info;
    call MPI_Alloc_mem(
        size: MPI_Aint, info: MPI_Info, baseptr: *mut c_void,
    ) => crate::chapters::memory::alloc_mem;
    call MPI_Free_mem(base: *mut c_void) => crate::chapters::memory::free_mem;
    early MPI_Pcontrol(level: c_int) => crate::chapters::environment::pcontrol;
}
