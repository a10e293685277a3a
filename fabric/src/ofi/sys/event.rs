//! Completion queues and counters. Source: `fi_cq(3)`, `fi_cntr(3)`.
//!
//! Invariant: attributes and entries of errors are handed over with room behind them ([`super::Padded`]);
//! entries of completions have the size that the format of the queue says.

use super::layout::{structs, tables};
use super::{fi_addr_t, fid, fid_wait};
use libc::{c_char, c_int, c_uint, c_void};

/// `enum fi_wait_obj`: `FI_WAIT_*`.
pub type fi_wait_obj = c_uint;
/// `enum fi_cq_format`: `FI_CQ_FORMAT_*`.
pub type fi_cq_format = c_uint;
/// `enum fi_cq_wait_cond`: `FI_CQ_COND_*`.
pub type fi_cq_wait_cond = c_uint;
/// `enum fi_cntr_events`: `FI_CNTR_EVENTS_COMP`.
pub type fi_cntr_events = c_uint;

structs! {
    /// A completion in the format `FI_CQ_FORMAT_CONTEXT`.
    fi_cq_entry {
        op_context: *mut c_void,
    }
    /// A completion in the format `FI_CQ_FORMAT_MSG`.
    fi_cq_msg_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
    }
    /// A completion in the format `FI_CQ_FORMAT_DATA`.
    fi_cq_data_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
    }
    /// A completion in the format `FI_CQ_FORMAT_TAGGED`.
    fi_cq_tagged_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
        tag: u64,
    }
    /// An operation that failed.
    fi_cq_err_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
        tag: u64,
        olen: usize,
        err: c_int,
        prov_errno: c_int,
        err_data: *mut c_void,
        err_data_size: usize,
    }
    /// The attributes of a completion queue.
    fi_cq_attr {
        size: usize,
        flags: u64,
        format: fi_cq_format,
        wait_obj: fi_wait_obj,
        signaling_vector: c_int,
        wait_cond: fi_cq_wait_cond,
        wait_set: *mut fid_wait,
    }
    /// A completion queue.
    fid_cq {
        fid: fid,
        ops: *mut fi_ops_cq,
    }
    /// The attributes of a counter.
    fi_cntr_attr {
        events: fi_cntr_events,
        wait_obj: fi_wait_obj,
        wait_set: *mut fid_wait,
        flags: u64,
    }
    /// A counter.
    fid_cntr {
        fid: fid,
        ops: *mut fi_ops_cntr,
    }
}

tables! {
    /// The operations of a completion queue.
    fi_ops_cq in ops {
        read(cq: *mut fid_cq, buf: *mut c_void, count: usize) -> isize => fi_cq_read;
        readfrom(
            cq: *mut fid_cq, buf: *mut c_void, count: usize, src_addr: *mut fi_addr_t,
        ) -> isize => fi_cq_readfrom;
        readerr(cq: *mut fid_cq, buf: *mut fi_cq_err_entry, flags: u64) -> isize => fi_cq_readerr;
        sread(
            cq: *mut fid_cq, buf: *mut c_void, count: usize, cond: *const c_void, timeout: c_int,
        ) -> isize => fi_cq_sread;
        sreadfrom(
            cq: *mut fid_cq, buf: *mut c_void, count: usize, src_addr: *mut fi_addr_t, cond: *const c_void,
            timeout: c_int,
        ) -> isize => fi_cq_sreadfrom;
        signal(cq: *mut fid_cq) -> c_int => fi_cq_signal;
        strerror(
            cq: *mut fid_cq, prov_errno: c_int, err_data: *const c_void, buf: *mut c_char, len: usize,
        ) -> *const c_char => fi_cq_strerror;
    }
    /// The operations of a counter.
    fi_ops_cntr in ops {
        read(cntr: *mut fid_cntr) -> u64 => fi_cntr_read;
        readerr(cntr: *mut fid_cntr) -> u64 => fi_cntr_readerr;
        add(cntr: *mut fid_cntr, value: u64) -> c_int => fi_cntr_add;
        set(cntr: *mut fid_cntr, value: u64) -> c_int => fi_cntr_set;
        wait(cntr: *mut fid_cntr, threshold: u64, timeout: c_int) -> c_int => fi_cntr_wait;
        adderr(cntr: *mut fid_cntr, value: u64) -> c_int;
        seterr(cntr: *mut fid_cntr, value: u64) -> c_int;
    }
}
