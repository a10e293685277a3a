//! Windows: one-sided communication.
//!
//! Puts, gets and flushes are hot: their functions are the symbols themselves, and return the error code.

use crate::abi::*;

api! {
    large MPI_Accumulate(
        origin_addr: *const c_void, origin_count: Count, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    ) => crate::chapters::win::accumulate;
    call MPI_Compare_and_swap(
        origin_addr: *const c_void, compare_addr: *const c_void, result_addr: *mut c_void,
        datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint, win: MPI_Win,
    ) => crate::chapters::win::compare_and_swap;
    call MPI_Fetch_and_op(
        origin_addr: *const c_void, result_addr: *mut c_void, datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, op: MPI_Op, win: MPI_Win,
    ) => crate::chapters::win::fetch_and_op;
    value MPI_Get(
        origin_addr: *mut c_void, origin_count: c_int, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: c_int, target_datatype: MPI_Datatype, win: MPI_Win,
    ) -> c_int => crate::chapters::win::quick_get;
    value MPI_Get_c(
        origin_addr: *mut c_void, origin_count: MPI_Count, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: MPI_Count, target_datatype: MPI_Datatype, win: MPI_Win,
    ) -> c_int => crate::chapters::win::quick_get_c;
    large MPI_Get_accumulate(
        origin_addr: *const c_void, origin_count: Count, origin_datatype: MPI_Datatype,
        result_addr: *mut c_void, result_count: Count, result_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    ) => crate::chapters::win::get_accumulate;
    value MPI_Put(
        origin_addr: *const c_void, origin_count: c_int, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: c_int, target_datatype: MPI_Datatype, win: MPI_Win,
    ) -> c_int => crate::chapters::win::quick_put;
    value MPI_Put_c(
        origin_addr: *const c_void, origin_count: MPI_Count, origin_datatype: MPI_Datatype,
        target_rank: c_int, target_disp: MPI_Aint, target_count: MPI_Count, target_datatype: MPI_Datatype,
        win: MPI_Win,
    ) -> c_int => crate::chapters::win::quick_put_c;
    large MPI_Raccumulate(
        origin_addr: *const c_void, origin_count: Count, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
        request: *mut MPI_Request,
    ) => crate::chapters::win::raccumulate;
    large MPI_Rget(
        origin_addr: *mut c_void, origin_count: Count, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) => crate::chapters::win::rget;
    large MPI_Rget_accumulate(
        origin_addr: *const c_void, origin_count: Count, origin_datatype: MPI_Datatype,
        result_addr: *mut c_void, result_count: Count, result_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
        request: *mut MPI_Request,
    ) => crate::chapters::win::rget_accumulate;
    large MPI_Rput(
        origin_addr: *const c_void, origin_count: Count, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) => crate::chapters::win::rput;
    large MPI_Win_allocate(
        size: MPI_Aint, disp_unit: DispUnit, info: MPI_Info, comm: MPI_Comm, baseptr: *mut c_void,
        win: *mut MPI_Win,
    ) => crate::chapters::win::win_allocate;
    large MPI_Win_allocate_shared(
        size: MPI_Aint, disp_unit: DispUnit, info: MPI_Info, comm: MPI_Comm, baseptr: *mut c_void,
        win: *mut MPI_Win,
    ) => crate::chapters::win::win_allocate_shared;
    call MPI_Win_attach(win: MPI_Win, base: *mut c_void, size: MPI_Aint) => crate::chapters::win::win_attach;
    call MPI_Win_call_errhandler(win: MPI_Win, errorcode: c_int) => crate::chapters::win::win_call_errhandler;
    call MPI_Win_complete(win: MPI_Win) => crate::chapters::win::win_complete;
    large MPI_Win_create(
        base: *mut c_void, size: MPI_Aint, disp_unit: DispUnit, info: MPI_Info, comm: MPI_Comm,
        win: *mut MPI_Win,
    ) => crate::chapters::win::win_create;
    call MPI_Win_create_dynamic(
        info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win,
    ) => crate::chapters::win::win_create_dynamic;
    call MPI_Win_detach(win: MPI_Win, base: *const c_void) => crate::chapters::win::win_detach;
    call MPI_Win_fence(assert: c_int, win: MPI_Win) => crate::chapters::win::win_fence;
    value MPI_Win_flush(rank: c_int, win: MPI_Win) -> c_int => crate::chapters::win::win_flush;
    call MPI_Win_flush_all(win: MPI_Win) => crate::chapters::win::win_flush_all;
    call MPI_Win_flush_local(rank: c_int, win: MPI_Win) => crate::chapters::win::win_flush_local;
    call MPI_Win_flush_local_all(win: MPI_Win) => crate::chapters::win::win_flush_local_all;
    call MPI_Win_free(win: *mut MPI_Win) => crate::chapters::win::win_free;
    call MPI_Win_get_errhandler(
        win: MPI_Win, errhandler: *mut MPI_Errhandler,
    ) => crate::chapters::win::win_get_errhandler;
    call MPI_Win_get_group(win: MPI_Win, group: *mut MPI_Group) => crate::chapters::win::win_get_group;
    call MPI_Win_get_info(win: MPI_Win, info_used: *mut MPI_Info) => crate::chapters::win::win_get_info;
    call MPI_Win_set_info(win: MPI_Win, info: MPI_Info) => crate::chapters::win::win_set_info;
    call MPI_Win_get_name(
        win: MPI_Win, win_name: *mut c_char, resultlen: *mut c_int,
    ) => crate::chapters::win::win_get_name;
    call MPI_Win_lock(
        lock_type: c_int, rank: c_int, assert: c_int, win: MPI_Win,
    ) => crate::chapters::win::win_lock;
    call MPI_Win_lock_all(assert: c_int, win: MPI_Win) => crate::chapters::win::win_lock_all;
    call MPI_Win_post(group: MPI_Group, assert: c_int, win: MPI_Win) => crate::chapters::win::win_post;
    call MPI_Win_set_errhandler(
        win: MPI_Win, errhandler: MPI_Errhandler,
    ) => crate::chapters::win::win_set_errhandler;
    call MPI_Win_set_name(win: MPI_Win, win_name: *const c_char) => crate::chapters::win::win_set_name;
    large MPI_Win_shared_query(
        win: MPI_Win, rank: c_int, size: *mut MPI_Aint, disp_unit: DispUnitOut, baseptr: *mut c_void,
    ) => crate::chapters::win::win_shared_query;
    call MPI_Win_start(group: MPI_Group, assert: c_int, win: MPI_Win) => crate::chapters::win::win_start;
    call MPI_Win_sync(win: MPI_Win) => crate::chapters::win::win_sync;
    call MPI_Win_test(win: MPI_Win, flag: *mut c_int) => crate::chapters::win::win_test;
    call MPI_Win_unlock(rank: c_int, win: MPI_Win) => crate::chapters::win::win_unlock;
    call MPI_Win_unlock_all(win: MPI_Win) => crate::chapters::win::win_unlock_all;
    call MPI_Win_wait(win: MPI_Win) => crate::chapters::win::win_wait;
}
