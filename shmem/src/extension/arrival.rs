//! Counters of operations that have arrived at a PE (from Sandia OpenSHMEM, which implements them with
//! Portals hardware): a word of symmetric memory, to which a put or get with a counter adds 1 at its target
//! PE.

use crate::base::abi::{CMP_GE, Counter, Ctx, SIGNAL_ADD, c_int, c_long, c_void, size_t};
use crate::base::fault::{Call, fail};
use crate::{amo, library, memory, p2p, rma, signal};

/// `shmemx_ct_create`: collective, a barrier; the counter is 0 on every PE.
pub(crate) unsafe fn create(call: Call, ct: *mut Counter) {
    let place = check(call, ct);
    // SAFETY: the function has no precondition; it checks its arguments itself.
    let word = unsafe { memory::calloc(call, 1, size_of::<u64>()) };
    if word.is_null() {
        fail(call, "the symmetric heap has no room for a counter: set SHMEM_SYMMETRIC_SIZE to more");
    }
    // SAFETY: the caller's pointer is valid for one counter.
    unsafe { place.write(word.cast()) };
}

/// `shmemx_ct_free`: collective, a barrier.
pub(crate) unsafe fn free(call: Call, ct: *mut Counter) {
    let place = check(call, ct);
    // SAFETY: the caller's pointer is valid for one counter; `free` checks that it points to one.
    unsafe { memory::free(call, place.replace(std::ptr::null_mut()).cast()) };
}

fn check(call: Call, ct: *mut Counter) -> *mut Counter {
    if ct.is_null() {
        fail(call, "ct is null: give the place of a counter");
    }
    ct
}

/// `shmemx_ct_get`: the number of operations that have arrived at this PE since the counter was set.
pub(crate) unsafe fn get(call: Call, ct: Counter) -> c_long {
    // SAFETY: the caller's promises are the same.
    unsafe { signal::fetch(call, ct) as c_long }
}

/// `shmemx_ct_set`: sets the counter of this PE only.
pub(crate) unsafe fn set(call: Call, ct: Counter, value: c_long) {
    let me = library::of(call).me() as c_int;
    // SAFETY: the caller's promises are the same.
    unsafe { amo::set(call, Ctx::DEFAULT, ct.cast::<c_long>(), value, me) };
}

/// `shmemx_ct_wait`: until at least `wait_for` operations have arrived at this PE.
pub(crate) unsafe fn wait(call: Call, ct: Counter, wait_for: c_long) {
    // SAFETY: the caller's promises are the same.
    unsafe { p2p::wait(call, "ct", ct.cast::<c_long>(), CMP_GE, wait_for) };
}

/// `shmemx_putmem_ct`: a PE that sees the new value of the counter sees the data.
pub(crate) unsafe fn putmem(
    call: Call,
    ct: Counter,
    target: *mut c_void,
    source: *const c_void,
    len: size_t,
    pe: c_int,
) {
    // SAFETY: the caller's promises are the same.
    unsafe { signal::put(call, Ctx::DEFAULT, target, source, len, ct, 1, SIGNAL_ADD, pe) };
}

/// `shmemx_getmem_ct`: when a PE sees the new value of the counter, the data have been read.
pub(crate) unsafe fn getmem(
    call: Call,
    ct: Counter,
    target: *mut c_void,
    source: *const c_void,
    len: size_t,
    pe: c_int,
) {
    // SAFETY: the caller's promises are the same.
    unsafe {
        rma::get(call, Ctx::DEFAULT, target, source, len, pe);
        signal::add(call, Ctx::DEFAULT, ct, 1, pe);
    }
}
