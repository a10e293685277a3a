//! Attributes of communicators, datatypes and windows.

use crate::abi::*;

api! {
    early MPI_Comm_create_keyval(
        comm_copy_attr_fn: *mut MPI_Comm_copy_attr_function,
        comm_delete_attr_fn: *mut MPI_Comm_delete_attr_function, comm_keyval: *mut c_int,
        extra_state: *mut c_void,
    ) => crate::chapters::attribute::comm_create_keyval;
    early MPI_Comm_free_keyval(comm_keyval: *mut c_int) => crate::chapters::attribute::comm_free_keyval;
    call MPI_Comm_set_attr(
        comm: MPI_Comm, comm_keyval: c_int, attribute_val: *mut c_void,
    ) => crate::chapters::attribute::comm_set_attr;
    call MPI_Comm_get_attr(
        comm: MPI_Comm, comm_keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int,
    ) => crate::chapters::attribute::comm_get_attr;
    call MPI_Comm_delete_attr(
        comm: MPI_Comm, comm_keyval: c_int,
    ) => crate::chapters::attribute::comm_delete_attr;
    early MPI_Keyval_create(
        copy_fn: *mut MPI_Copy_function, delete_fn: *mut MPI_Delete_function, keyval: *mut c_int,
        extra_state: *mut c_void,
    ) => crate::chapters::attribute::keyval_create;
    early MPI_Keyval_free(keyval: *mut c_int) => crate::chapters::attribute::comm_free_keyval;
    call MPI_Attr_put(
        comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void,
    ) => crate::chapters::attribute::comm_set_attr;
    call MPI_Attr_get(
        comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int,
    ) => crate::chapters::attribute::comm_get_attr;
    call MPI_Attr_delete(comm: MPI_Comm, keyval: c_int) => crate::chapters::attribute::comm_delete_attr;
    early MPI_Type_create_keyval(
        type_copy_attr_fn: *mut MPI_Type_copy_attr_function,
        type_delete_attr_fn: *mut MPI_Type_delete_attr_function, type_keyval: *mut c_int,
        extra_state: *mut c_void,
    ) => crate::chapters::attribute::type_create_keyval;
    early MPI_Type_free_keyval(type_keyval: *mut c_int) => crate::chapters::attribute::type_free_keyval;
    call MPI_Type_set_attr(
        datatype: MPI_Datatype, type_keyval: c_int, attribute_val: *mut c_void,
    ) => crate::chapters::attribute::type_set_attr;
    call MPI_Type_get_attr(
        datatype: MPI_Datatype, type_keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int,
    ) => crate::chapters::attribute::type_get_attr;
    call MPI_Type_delete_attr(
        datatype: MPI_Datatype, type_keyval: c_int,
    ) => crate::chapters::attribute::type_delete_attr;
    early MPI_Win_create_keyval(
        win_copy_attr_fn: *mut MPI_Win_copy_attr_function,
        win_delete_attr_fn: *mut MPI_Win_delete_attr_function, win_keyval: *mut c_int,
        extra_state: *mut c_void,
    ) => crate::chapters::attribute::win_create_keyval;
    early MPI_Win_free_keyval(win_keyval: *mut c_int) => crate::chapters::attribute::win_free_keyval;
    call MPI_Win_set_attr(
        win: MPI_Win, win_keyval: c_int, attribute_val: *mut c_void,
    ) => crate::chapters::attribute::win_set_attr;
    call MPI_Win_get_attr(
        win: MPI_Win, win_keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int,
    ) => crate::chapters::attribute::win_get_attr;
    call MPI_Win_delete_attr(win: MPI_Win, win_keyval: c_int) => crate::chapters::attribute::win_delete_attr;
}
