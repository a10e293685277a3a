//! Atomic memory operations.

use super::*;

api! {
    both generic(AMO_EXTENDED) "_atomic_fetch": crate::amo::fetch, (source: *const T, pe: c_int) -> T;
    both generic(AMO_EXTENDED) "_atomic_set": crate::amo::set, (dest: *mut T, value: T, pe: c_int);
    both generic(AMO) "_atomic_compare_swap": crate::amo::compare_swap,
        (dest: *mut T, cond: T, value: T, pe: c_int) -> T;
    both generic(AMO_EXTENDED) "_atomic_swap": crate::amo::swap, (dest: *mut T, value: T, pe: c_int) -> T;
    both generic(AMO) "_atomic_fetch_inc": crate::amo::fetch_inc, (dest: *mut T, pe: c_int) -> T;
    both generic(AMO) "_atomic_inc": crate::amo::inc, (dest: *mut T, pe: c_int);
    both generic(AMO) "_atomic_fetch_add": crate::amo::fetch_add, (dest: *mut T, value: T, pe: c_int) -> T;
    both generic(AMO) "_atomic_add": crate::amo::add, (dest: *mut T, value: T, pe: c_int);
    both generic(AMO_BITWISE) "_atomic_fetch_and": crate::amo::fetch_and,
        (dest: *mut T, value: T, pe: c_int) -> T;
    both generic(AMO_BITWISE) "_atomic_and": crate::amo::and, (dest: *mut T, value: T, pe: c_int);
    both generic(AMO_BITWISE) "_atomic_fetch_or": crate::amo::fetch_or,
        (dest: *mut T, value: T, pe: c_int) -> T;
    both generic(AMO_BITWISE) "_atomic_or": crate::amo::or, (dest: *mut T, value: T, pe: c_int);
    both generic(AMO_BITWISE) "_atomic_fetch_xor": crate::amo::fetch_xor,
        (dest: *mut T, value: T, pe: c_int) -> T;
    both generic(AMO_BITWISE) "_atomic_xor": crate::amo::xor, (dest: *mut T, value: T, pe: c_int);
    both generic(AMO_EXTENDED) "_atomic_fetch_nbi": crate::amo::fetch_nbi,
        (fetch: *mut T, source: *const T, pe: c_int);
    both generic(AMO) "_atomic_compare_swap_nbi": crate::amo::compare_swap_nbi,
        (fetch: *mut T, dest: *mut T, cond: T, value: T, pe: c_int);
    both generic(AMO_EXTENDED) "_atomic_swap_nbi": crate::amo::swap_nbi,
        (fetch: *mut T, dest: *mut T, value: T, pe: c_int);
    both generic(AMO) "_atomic_fetch_inc_nbi": crate::amo::fetch_inc_nbi,
        (fetch: *mut T, dest: *mut T, pe: c_int);
    both generic(AMO) "_atomic_fetch_add_nbi": crate::amo::fetch_add_nbi,
        (fetch: *mut T, dest: *mut T, value: T, pe: c_int);
    both generic(AMO_BITWISE) "_atomic_fetch_and_nbi": crate::amo::fetch_and_nbi,
        (fetch: *mut T, dest: *mut T, value: T, pe: c_int);
    both generic(AMO_BITWISE) "_atomic_fetch_or_nbi": crate::amo::fetch_or_nbi,
        (fetch: *mut T, dest: *mut T, value: T, pe: c_int);
    both generic(AMO_BITWISE) "_atomic_fetch_xor_nbi": crate::amo::fetch_xor_nbi,
        (fetch: *mut T, dest: *mut T, value: T, pe: c_int);
    /// Deprecated.
    only generic(AMO_EXTENDED_DEPRECATED) "_fetch": crate::amo::fetch_default,
        (source: *const T, pe: c_int) -> T;
    /// Deprecated.
    only generic(AMO_EXTENDED_DEPRECATED) "_set": crate::amo::set_default,
        (dest: *mut T, value: T, pe: c_int);
    /// Deprecated.
    only generic(AMO_DEPRECATED) "_cswap": crate::amo::compare_swap_default,
        (dest: *mut T, cond: T, value: T, pe: c_int) -> T;
    /// Deprecated.
    only generic(AMO_EXTENDED_DEPRECATED) "_swap": crate::amo::swap_default,
        (dest: *mut T, value: T, pe: c_int) -> T;
    /// Deprecated.
    only generic(AMO_DEPRECATED) "_finc": crate::amo::fetch_inc_default, (dest: *mut T, pe: c_int) -> T;
    /// Deprecated.
    only generic(AMO_DEPRECATED) "_inc": crate::amo::inc_default, (dest: *mut T, pe: c_int);
    /// Deprecated.
    only generic(AMO_DEPRECATED) "_fadd": crate::amo::fetch_add_default,
        (dest: *mut T, value: T, pe: c_int) -> T;
    /// Deprecated.
    only generic(AMO_DEPRECATED) "_add": crate::amo::add_default, (dest: *mut T, value: T, pe: c_int);
}
