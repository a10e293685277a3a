//! The null provider: writes, reads and atomics that request no completion entry only increment a counter; no
//! data move.
//!
//! Invariant: such a call takes as few instructions as possible: it examines only the flags, and takes no
//! mutex. Its instructions are part of the counts of the layers above. Operations that request an entry move
//! their data as in the other providers, because a job reads its own memory over the network before it
//! starts.

use super::object::of;
use pelago_fabric::ofi::sys::*;
use pelago_fabric::sync::Ordering;

/// Counts an operation, or starts it if these flags request an entry. `start` should call a function with the
/// signature of the caller that is not inlined: the compiler then makes a tail call, which costs the counting
/// path nothing.
///
/// # Safety
/// The endpoint is an object of this library. It is enabled, and so bound to its counters.
#[inline(always)]
pub(crate) unsafe fn count_or(
    ep: *mut fid_ep,
    flags: u64,
    fetches: bool,
    start: impl FnOnce() -> isize,
) -> isize {
    // SAFETY: the caller guarantees that the endpoint is valid.
    if flags & FI_COMPLETION != 0 { start() } else { unsafe { count(ep, fetches) } }
}

/// Counts an operation.
///
/// # Safety
/// As for `count_or`.
#[inline(always)]
pub(crate) unsafe fn count(ep: *mut fid_ep, fetches: bool) -> isize {
    // SAFETY: the caller guarantees that the endpoint is valid and bound to its counters, and objects are
    // never freed.
    unsafe {
        let value = of(ep).shared.place(fetches).load(Ordering::Relaxed);
        (*value).count.fetch_add(1, Ordering::Relaxed);
    }
    0
}

/// `fi_cntr_read`.
pub(crate) unsafe extern "C" fn read_counter(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: only the table of counters contains this function, and counters are never freed.
    unsafe { of(cntr).shared.count.load(Ordering::Relaxed) }
}
