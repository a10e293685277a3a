//! Signalling operations.

use super::*;

api! {
    both generic(RMA) "_put_signal": crate::signal::put,
        (dest: *mut T, source: *const T, nelems: size_t, sig_addr: *mut u64, signal: u64, sig_op: c_int,
        pe: c_int);
    both sized(SIZES) "put" "_signal": crate::signal::put,
        (dest: *mut T, source: *const T, nelems: size_t, sig_addr: *mut u64, signal: u64,
        sig_op: c_int, pe: c_int);
    both plain "putmem_signal": crate::signal::put,
        (dest: *mut c_void, source: *const c_void, nelems: size_t, sig_addr: *mut u64, signal: u64,
        sig_op: c_int, pe: c_int);
    both generic(RMA) "_put_signal_nbi": crate::signal::put_nbi,
        (dest: *mut T, source: *const T, nelems: size_t, sig_addr: *mut u64, signal: u64, sig_op: c_int,
        pe: c_int);
    both sized(SIZES) "put" "_signal_nbi": crate::signal::put_nbi,
        (dest: *mut T, source: *const T, nelems: size_t, sig_addr: *mut u64, signal: u64,
        sig_op: c_int, pe: c_int);
    both plain "putmem_signal_nbi": crate::signal::put_nbi,
        (dest: *mut c_void, source: *const c_void, nelems: size_t, sig_addr: *mut u64, signal: u64,
        sig_op: c_int, pe: c_int);
    both plain "signal_add": crate::signal::add, (sig_addr: *mut u64, signal: u64, pe: c_int);
    both plain "signal_set": crate::signal::set, (sig_addr: *mut u64, signal: u64, pe: c_int);
    only plain "signal_fetch": crate::signal::fetch, (sig_addr: *const u64) -> u64;
    only plain "signal_wait_until": crate::signal::wait_until,
        (sig_addr: *mut u64, cmp: c_int, cmp_value: u64) -> u64;
}
