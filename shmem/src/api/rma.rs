//! Remote memory access.

use super::*;

api! {
    both generic(RMA) "_put": crate::rma::put, (dest: *mut T, source: *const T, nelems: size_t, pe: c_int);
    both sized(SIZES) "put" "": crate::rma::put,
        (dest: *mut T, source: *const T, nelems: size_t, pe: c_int);
    both plain "putmem": crate::rma::put,
        (dest: *mut c_void, source: *const c_void, nelems: size_t, pe: c_int);
    both generic(RMA_VALUE) "_p": crate::rma::p, (dest: *mut T, value: T, pe: c_int);
    foreign_both generic(LONG_DOUBLE) "_p": crate::foreign, (dest: *mut T, value: T, pe: c_int);
    both generic(RMA) "_get": crate::rma::get, (dest: *mut T, source: *const T, nelems: size_t, pe: c_int);
    both sized(SIZES) "get" "": crate::rma::get,
        (dest: *mut T, source: *const T, nelems: size_t, pe: c_int);
    both plain "getmem": crate::rma::get,
        (dest: *mut c_void, source: *const c_void, nelems: size_t, pe: c_int);
    both generic(RMA_VALUE) "_g": crate::rma::g, (source: *const T, pe: c_int) -> T;
    foreign_both generic(LONG_DOUBLE) "_g": crate::foreign, (source: *const T, pe: c_int) -> T;
    both generic(RMA) "_put_nbi": crate::rma::put_nbi,
        (dest: *mut T, source: *const T, nelems: size_t, pe: c_int);
    both sized(SIZES) "put" "_nbi": crate::rma::put_nbi,
        (dest: *mut T, source: *const T, nelems: size_t, pe: c_int);
    both plain "putmem_nbi": crate::rma::put_nbi,
        (dest: *mut c_void, source: *const c_void, nelems: size_t, pe: c_int);
    both generic(RMA) "_get_nbi": crate::rma::get_nbi,
        (dest: *mut T, source: *const T, nelems: size_t, pe: c_int);
    both sized(SIZES) "get" "_nbi": crate::rma::get_nbi,
        (dest: *mut T, source: *const T, nelems: size_t, pe: c_int);
    both plain "getmem_nbi": crate::rma::get_nbi,
        (dest: *mut c_void, source: *const c_void, nelems: size_t, pe: c_int);
}
