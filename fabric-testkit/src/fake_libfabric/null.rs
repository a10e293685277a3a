//! The null provider: writes, reads and atomics that ask for no entry only count themselves as complete; no
//! data move.
//!
//! Invariant: such a call takes as few instructions as can be: no look at its arguments but for the flags, no
//! mutex. They are counted along where the instructions of the layers above are counted. What asks for an
//! entry moves its data as everywhere, since a job reads its own memory over the net before it starts.

use super::object::of;
use pelago_fabric::ofi::sys::*;
use pelago_fabric::sync::Ordering;

/// Counts an operation, or starts it if these flags ask for an entry. `start` is to call a function of the
/// type of the caller that is not inlined: then a jump leads there, and the count pays nothing for it.
///
/// # Safety
/// The endpoint is an object of this library. It is enabled, and so is bound to its counters.
#[inline(always)]
pub(crate) unsafe fn count_or(
    ep: *mut fid_ep,
    flags: u64,
    fetches: bool,
    start: impl FnOnce() -> isize,
) -> isize {
    // SAFETY: the caller vouches for the endpoint.
    if flags & FI_COMPLETION != 0 { start() } else { unsafe { count(ep, fetches) } }
}

/// Counts an operation.
///
/// # Safety
/// The same as for `count_or`.
#[inline(always)]
pub(crate) unsafe fn count(ep: *mut fid_ep, fetches: bool) -> isize {
    // SAFETY: the caller vouches for the endpoint and so for the counter, and objects are never freed.
    unsafe {
        let value = of(ep).shared.place(fetches).load(Ordering::Relaxed);
        (*value).count.fetch_add(1, Ordering::Relaxed);
    }
    0
}

/// `fi_cntr_read`.
pub(crate) unsafe extern "C" fn read_counter(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: the table is that of counters, which are never freed.
    unsafe { of(cntr).shared.count.load(Ordering::Relaxed) }
}
