//! Atomics on remote memory. Source: `fi_atomic(3)`.
//!
//! Invariant: counts are in elements of the datatype, not in bytes.

use super::layout::{structs, tables};
use super::{fi_addr_t, fi_rma_ioc, fid_ep};
use libc::{c_int, c_uint, c_void};

/// `enum fi_datatype`: `FI_INT8` and so on.
pub type fi_datatype = c_uint;
/// `enum fi_op`: `FI_MIN` and so on.
pub type fi_op = c_uint;

structs! {
    /// A range of local memory, in elements.
    fi_ioc {
        addr: *mut c_void,
        count: usize,
    }
    /// The attributes of an atomic in a domain: elements at a time, and bytes of an element.
    fi_atomic_attr {
        count: usize,
        size: usize,
    }
    /// An atomic.
    fi_msg_atomic {
        msg_iov: *const fi_ioc,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: fi_addr_t,
        rma_iov: *const fi_rma_ioc,
        rma_iov_count: usize,
        datatype: fi_datatype,
        op: fi_op,
        context: *mut c_void,
        data: u64,
    }
}

tables! {
    /// Atomics that fetch nothing, that fetch, and that compare.
    fi_ops_atomic in atomic {
        write(
            ep: *mut fid_ep, buf: *const c_void, count: usize, desc: *mut c_void, dest_addr: fi_addr_t,
            addr: u64,
            key: u64, datatype: fi_datatype, op: fi_op, context: *mut c_void,
        ) -> isize => fi_atomic;
        writev(
            ep: *mut fid_ep, iov: *const fi_ioc, desc: *mut *mut c_void, count: usize, dest_addr: fi_addr_t,
            addr: u64, key: u64, datatype: fi_datatype, op: fi_op, context: *mut c_void,
        ) -> isize;
        writemsg(ep: *mut fid_ep, msg: *const fi_msg_atomic, flags: u64) -> isize => fi_atomicmsg;
        inject(
            ep: *mut fid_ep, buf: *const c_void, count: usize, dest_addr: fi_addr_t, addr: u64, key: u64,
            datatype: fi_datatype, op: fi_op,
        ) -> isize => fi_inject_atomic;
        readwrite(
            ep: *mut fid_ep, buf: *const c_void, count: usize, desc: *mut c_void, result: *mut c_void,
            result_desc: *mut c_void, dest_addr: fi_addr_t, addr: u64, key: u64, datatype: fi_datatype,
            op: fi_op,
            context: *mut c_void,
        ) -> isize => fi_fetch_atomic;
        readwritev(
            ep: *mut fid_ep, iov: *const fi_ioc, desc: *mut *mut c_void, count: usize, resultv: *mut fi_ioc,
            result_desc: *mut *mut c_void, result_count: usize, dest_addr: fi_addr_t, addr: u64, key: u64,
            datatype: fi_datatype, op: fi_op, context: *mut c_void,
        ) -> isize;
        readwritemsg(
            ep: *mut fid_ep, msg: *const fi_msg_atomic, resultv: *mut fi_ioc, result_desc: *mut *mut c_void,
            result_count: usize, flags: u64,
        ) -> isize => fi_fetch_atomicmsg;
        compwrite(
            ep: *mut fid_ep, buf: *const c_void, count: usize, desc: *mut c_void, compare: *const c_void,
            compare_desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, dest_addr: fi_addr_t,
            addr: u64, key: u64, datatype: fi_datatype, op: fi_op, context: *mut c_void,
        ) -> isize => fi_compare_atomic;
        compwritev(
            ep: *mut fid_ep, iov: *const fi_ioc, desc: *mut *mut c_void, count: usize,
            comparev: *const fi_ioc,
            compare_desc: *mut *mut c_void, compare_count: usize, resultv: *mut fi_ioc,
            result_desc: *mut *mut c_void, result_count: usize, dest_addr: fi_addr_t, addr: u64, key: u64,
            datatype: fi_datatype, op: fi_op, context: *mut c_void,
        ) -> isize;
        compwritemsg(
            ep: *mut fid_ep, msg: *const fi_msg_atomic, comparev: *const fi_ioc,
            compare_desc: *mut *mut c_void,
            compare_count: usize, resultv: *mut fi_ioc, result_desc: *mut *mut c_void, result_count: usize,
            flags: u64,
        ) -> isize => fi_compare_atomicmsg;
        writevalid(
            ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize,
        ) -> c_int => fi_atomicvalid;
        readwritevalid(
            ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize,
        ) -> c_int => fi_fetch_atomicvalid;
        compwritevalid(
            ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize,
        ) -> c_int => fi_compare_atomicvalid;
    }
}
