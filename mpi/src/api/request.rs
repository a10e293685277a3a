//! Completion of requests, and statuses.

use crate::abi::*;

api! {
    call MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) => crate::chapters::request::wait;
    call MPI_Test(
        request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status,
    ) => crate::chapters::request::test;
    call MPI_Waitall(
        count: c_int, array_of_requests: *mut MPI_Request, array_of_statuses: *mut MPI_Status,
    ) => crate::chapters::request::waitall;
    call MPI_Testall(
        count: c_int, array_of_requests: *mut MPI_Request, flag: *mut c_int,
        array_of_statuses: *mut MPI_Status,
    ) => crate::chapters::request::testall;
    call MPI_Waitany(
        count: c_int, array_of_requests: *mut MPI_Request, indx: *mut c_int, status: *mut MPI_Status,
    ) => crate::chapters::request::waitany;
    call MPI_Testany(
        count: c_int, array_of_requests: *mut MPI_Request, indx: *mut c_int, flag: *mut c_int,
        status: *mut MPI_Status,
    ) => crate::chapters::request::testany;
    call MPI_Waitsome(
        incount: c_int, array_of_requests: *mut MPI_Request, outcount: *mut c_int,
        array_of_indices: *mut c_int, array_of_statuses: *mut MPI_Status,
    ) => crate::chapters::request::waitsome;
    call MPI_Testsome(
        incount: c_int, array_of_requests: *mut MPI_Request, outcount: *mut c_int,
        array_of_indices: *mut c_int, array_of_statuses: *mut MPI_Status,
    ) => crate::chapters::request::testsome;
    call MPI_Request_free(request: *mut MPI_Request) => crate::chapters::request::request_free;
    call MPI_Request_get_status(
        request: MPI_Request, flag: *mut c_int, status: *mut MPI_Status,
    ) => crate::chapters::request::request_get_status;
    call MPI_Request_get_status_all(
        count: c_int, array_of_requests: *const MPI_Request, flag: *mut c_int,
        array_of_statuses: *mut MPI_Status,
    ) => crate::chapters::request::request_get_status_all;
    call MPI_Request_get_status_any(
        count: c_int, array_of_requests: *const MPI_Request, indx: *mut c_int, flag: *mut c_int,
        status: *mut MPI_Status,
    ) => crate::chapters::request::request_get_status_any;
    call MPI_Request_get_status_some(
        incount: c_int, array_of_requests: *const MPI_Request, outcount: *mut c_int,
        array_of_indices: *mut c_int, array_of_statuses: *mut MPI_Status,
    ) => crate::chapters::request::request_get_status_some;
    call MPI_Grequest_start(
        query_fn: *mut MPI_Grequest_query_function, free_fn: *mut MPI_Grequest_free_function,
        cancel_fn: *mut MPI_Grequest_cancel_function, extra_state: *mut c_void, request: *mut MPI_Request,
    ) => crate::chapters::generalized::grequest_start;
    call MPI_Grequest_complete(request: MPI_Request) => crate::chapters::generalized::grequest_complete;
    call MPI_Cancel(request: *mut MPI_Request) => crate::chapters::request::cancel;
    call MPI_Start(request: *mut MPI_Request) => crate::chapters::request::start;
    call MPI_Startall(
        count: c_int, array_of_requests: *mut MPI_Request,
    ) => crate::chapters::request::startall;
    early MPI_Test_cancelled(
        status: *const MPI_Status, flag: *mut c_int,
    ) => crate::chapters::request::test_cancelled;
    early MPI_Status_set_cancelled(
        status: *mut MPI_Status, flag: c_int,
    ) => crate::chapters::request::status_set_cancelled;
    early MPI_Status_get_source(
        status: *const MPI_Status, source: *mut c_int,
    ) => crate::chapters::request::status_get_source;
    early MPI_Status_set_source(
        status: *mut MPI_Status, source: c_int,
    ) => crate::chapters::request::status_set_source;
    early MPI_Status_get_tag(
        status: *const MPI_Status, tag: *mut c_int,
    ) => crate::chapters::request::status_get_tag;
    early MPI_Status_set_tag(status: *mut MPI_Status, tag: c_int) => crate::chapters::request::status_set_tag;
    early MPI_Status_get_error(
        status: *const MPI_Status, error: *mut c_int,
    ) => crate::chapters::request::status_get_error;
    early MPI_Status_set_error(
        status: *mut MPI_Status, error: c_int,
    ) => crate::chapters::request::status_set_error;
}
