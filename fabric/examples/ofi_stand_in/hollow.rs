//! The tables of the hollow provider: writes, reads and atomics only count themselves as complete.
//!
//! Invariant: a call that asks for no entry takes as few instructions as can be: no look at its arguments but
//! for that, no mutex. They are counted along where the instructions of the layers above are counted.

use crate::atomic::{is_compare_valid, is_fetch_valid, is_valid};
use crate::object::{Object, Value, id};
use crate::queue::Entry;
use crate::refusal::none;
use crate::world::{at, world};
use libc::c_void;
use pelago_fabric::ofi::sys::*;
use pelago_fabric::sync::{AtomicPtr, Ordering};

/// Reads and writes.
pub(crate) static RMA: fi_ops_rma = fi_ops_rma {
    size: size_of::<fi_ops_rma>(),
    read: none(),
    readv: none(),
    readmsg: Some(read_message),
    write: none(),
    writev: none(),
    writemsg: Some(write_message),
    inject: Some(inject),
    writedata: none(),
    injectdata: none(),
};

/// Atomics.
pub(crate) static ATOMIC: fi_ops_atomic = fi_ops_atomic {
    size: size_of::<fi_ops_atomic>(),
    write: none(),
    writev: none(),
    writemsg: Some(atomic_message),
    inject: Some(inject_atomic),
    readwrite: none(),
    readwritev: none(),
    readwritemsg: Some(fetch_message),
    compwrite: none(),
    compwritev: none(),
    compwritemsg: Some(compare_message),
    writevalid: Some(is_valid),
    readwritevalid: Some(is_fetch_valid),
    compwritevalid: Some(is_compare_valid),
};

/// `fi_cntr_read`.
pub(crate) unsafe extern "C" fn read_counter(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: the table is that of counters, which are never freed.
    unsafe { (*cntr.cast::<Object<fid_cntr>>()).more.count.load(Ordering::Relaxed) }
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
unsafe fn counts<'a>(ep: *mut fid_ep) -> &'a crate::object::Counts {
    // SAFETY: the caller vouches for the endpoint, and objects are never freed.
    unsafe { &(*ep.cast::<Object<fid_ep>>()).more }
}

/// Leaves the entry of an operation and counts it, unless the queue is full.
///
/// # Safety
/// The endpoint is enabled, and so is bound to its counters.
#[cold]
unsafe fn tell(ep: *mut fid_ep, counter: &AtomicPtr<Value>, context: *mut c_void, flags: u64) -> isize {
    // SAFETY: the caller vouches for the endpoint.
    let id = unsafe { id(ep) };
    let mut world = world();
    let (queue, _) = at(&mut world.endpoints, id).transmits.expect("it is bound before it is enabled");
    let queue = at(&mut world.queues, queue);
    if !queue.has_room(1) {
        return -(FI_EAGAIN as isize);
    }
    queue.push(Entry { context: context.expose_provenance(), flags, ..Entry::default() });
    queue.wake();
    // SAFETY: the caller vouches for the counters.
    unsafe { count(counter) };
    0
}

unsafe extern "C" fn write_message(ep: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    // SAFETY: the table is that of endpoints; who starts an operation has enabled its endpoint.
    unsafe {
        let writes = &counts(ep).writes;
        if flags & FI_COMPLETION != 0 {
            return tell(ep, writes, (*message).context, FI_RMA | FI_WRITE);
        }
        count(writes);
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
        let reads = &counts(ep).reads;
        if flags & FI_COMPLETION != 0 {
            return tell(ep, reads, (*message).context, FI_RMA | FI_READ);
        }
        count(reads);
    }
    0
}

unsafe extern "C" fn atomic_message(ep: *mut fid_ep, message: *const fi_msg_atomic, flags: u64) -> isize {
    // SAFETY: the table is that of endpoints; who starts an operation has enabled its endpoint.
    unsafe {
        let writes = &counts(ep).writes;
        if flags & FI_COMPLETION != 0 {
            return tell(ep, writes, (*message).context, FI_ATOMIC | FI_WRITE);
        }
        count(writes);
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
    _results: *mut fi_ioc,
    _result_descriptors: *mut *mut c_void,
    _result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: the table is that of endpoints; who starts an operation has enabled its endpoint.
    unsafe {
        let reads = &counts(ep).reads;
        if flags & FI_COMPLETION != 0 {
            return tell(ep, reads, (*message).context, FI_ATOMIC | FI_READ);
        }
        count(reads);
    }
    0
}

unsafe extern "C" fn compare_message(
    ep: *mut fid_ep,
    message: *const fi_msg_atomic,
    _compares: *const fi_ioc,
    _compare_descriptors: *mut *mut c_void,
    _compare_count: usize,
    results: *mut fi_ioc,
    result_descriptors: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: the arguments are those of this call, of which nothing but the message is looked at.
    unsafe { fetch_message(ep, message, results, result_descriptors, result_count, flags) }
}
