//! The tables of the hollow provider: writes, reads and atomics that ask for no entry only count themselves
//! as complete; no data move.
//!
//! Invariant: such a call takes as few instructions as can be: no look at its arguments but for the flags, no
//! mutex. They are counted along where the instructions of the layers above are counted. What asks for an
//! entry moves its data as everywhere, since a job reads its own memory over the net before it starts.

use crate::atomic::{is_compare_valid, is_fetch_valid, is_valid};
use crate::counter::Value;
use crate::endpoint::Counts;
use crate::object::of;
use crate::refusal::Table;
use crate::{atomic, rma};
use libc::c_void;
use pelago_fabric::ofi::sys::*;
use pelago_fabric::sync::{AtomicPtr, Ordering};

/// Reads and writes.
pub(crate) static RMA: fi_ops_rma = fi_ops_rma {
    readmsg: Some(read_message),
    writemsg: Some(write_message),
    inject: Some(inject),
    ..fi_ops_rma::EMPTY
};

/// Atomics.
pub(crate) static ATOMIC: fi_ops_atomic = fi_ops_atomic {
    writemsg: Some(atomic_message),
    inject: Some(inject_atomic),
    readwritemsg: Some(fetch_message),
    compwritemsg: Some(compare_message),
    writevalid: Some(is_valid),
    readwritevalid: Some(is_fetch_valid),
    compwritevalid: Some(is_compare_valid),
    ..fi_ops_atomic::EMPTY
};

/// `fi_cntr_read`.
pub(crate) unsafe extern "C" fn read_counter(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: the table is that of counters, which are never freed.
    unsafe { of(cntr).shared.count.load(Ordering::Relaxed) }
}

/// Counts one operation.
///
/// # Safety
/// The endpoint is enabled, and so is bound to its counters.
#[inline(always)]
unsafe fn count(counter: &AtomicPtr<Value>) {
    // SAFETY: the caller says that the counter is there, and objects are never freed.
    unsafe { (*counter.load(Ordering::Relaxed)).count.fetch_add(1, Ordering::Relaxed) };
}

/// The counters of an endpoint.
///
/// # Safety
/// The endpoint is an object of this library.
#[inline(always)]
unsafe fn counts<'a>(ep: *mut fid_ep) -> &'a Counts {
    // SAFETY: the caller vouches for the endpoint, and objects are never freed.
    unsafe { &of(ep).shared }
}

unsafe extern "C" fn write_message(ep: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    // SAFETY: the table is that of endpoints; who starts an operation has enabled its endpoint.
    unsafe {
        if flags & FI_COMPLETION != 0 {
            return rma::write_message(ep, message, flags);
        }
        count(&counts(ep).writes);
    }
    0
}

unsafe extern "C" fn inject(
    ep: *mut fid_ep,
    _buffer: *const c_void,
    _bytes: usize,
    _peer: fi_addr_t,
    _address: u64,
    _key: u64,
) -> isize {
    // SAFETY: the table is that of endpoints; who starts an operation has enabled its endpoint.
    unsafe { count(&counts(ep).writes) };
    0
}

unsafe extern "C" fn read_message(ep: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    // SAFETY: the table is that of endpoints; who starts an operation has enabled its endpoint.
    unsafe {
        if flags & FI_COMPLETION != 0 {
            return rma::read_message(ep, message, flags);
        }
        count(&counts(ep).reads);
    }
    0
}

unsafe extern "C" fn atomic_message(ep: *mut fid_ep, message: *const fi_msg_atomic, flags: u64) -> isize {
    // SAFETY: the table is that of endpoints; who starts an operation has enabled its endpoint.
    unsafe {
        if flags & FI_COMPLETION != 0 {
            return atomic::write_message(ep, message, flags);
        }
        count(&counts(ep).writes);
    }
    0
}

unsafe extern "C" fn inject_atomic(
    ep: *mut fid_ep,
    _buffer: *const c_void,
    _count: usize,
    _peer: fi_addr_t,
    _address: u64,
    _key: u64,
    _datatype: fi_datatype,
    _op: fi_op,
) -> isize {
    // SAFETY: the table is that of endpoints; who starts an operation has enabled its endpoint.
    unsafe { count(&counts(ep).writes) };
    0
}

unsafe extern "C" fn fetch_message(
    ep: *mut fid_ep,
    message: *const fi_msg_atomic,
    results: *mut fi_ioc,
    result_descriptors: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: the table is that of endpoints; who starts an operation has enabled its endpoint.
    unsafe {
        if flags & FI_COMPLETION != 0 {
            return atomic::fetch_message(ep, message, results, result_descriptors, result_count, flags);
        }
        count(&counts(ep).reads);
    }
    0
}

unsafe extern "C" fn compare_message(
    ep: *mut fid_ep,
    message: *const fi_msg_atomic,
    compares: *const fi_ioc,
    compare_descriptors: *mut *mut c_void,
    compare_count: usize,
    results: *mut fi_ioc,
    result_descriptors: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: the table is that of endpoints; who starts an operation has enabled its endpoint.
    unsafe {
        if flags & FI_COMPLETION != 0 {
            return atomic::compare_message(
                ep,
                message,
                compares,
                compare_descriptors,
                compare_count,
                results,
                result_descriptors,
                result_count,
                flags,
            );
        }
        count(&counts(ep).reads);
    }
    0
}
