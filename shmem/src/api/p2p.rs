//! Point-to-point synchronisation.

use super::*;

api! {
    only generic(AMO) "_wait_until": crate::p2p::wait_until, (ivar: *mut T, cmp: c_int, cmp_value: T);
    only generic(AMO) "_wait_until_all": crate::p2p::wait_until_all,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_value: T);
    only generic(AMO) "_wait_until_any": crate::p2p::wait_until_any,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_value: T) -> size_t;
    only generic(AMO) "_wait_until_some": crate::p2p::wait_until_some,
        (ivars: *mut T, nelems: size_t, indices: *mut size_t, status: *const c_int, cmp: c_int,
        cmp_value: T) -> size_t;
    only generic(AMO) "_wait_until_all_vector": crate::p2p::wait_until_all_vector,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_values: *const T);
    only generic(AMO) "_wait_until_any_vector": crate::p2p::wait_until_any_vector,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_values: *const T) -> size_t;
    only generic(AMO) "_wait_until_some_vector": crate::p2p::wait_until_some_vector,
        (ivars: *mut T, nelems: size_t, indices: *mut size_t, status: *const c_int, cmp: c_int,
        cmp_values: *const T) -> size_t;
    only generic(AMO) "_test": crate::p2p::test, (ivar: *mut T, cmp: c_int, cmp_value: T) -> c_int;
    only generic(AMO) "_test_all": crate::p2p::test_all,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_value: T) -> c_int;
    only generic(AMO) "_test_any": crate::p2p::test_any,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_value: T) -> size_t;
    only generic(AMO) "_test_some": crate::p2p::test_some,
        (ivars: *mut T, nelems: size_t, indices: *mut size_t, status: *const c_int, cmp: c_int,
        cmp_value: T) -> size_t;
    only generic(AMO) "_test_all_vector": crate::p2p::test_all_vector,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_values: *const T) -> c_int;
    only generic(AMO) "_test_any_vector": crate::p2p::test_any_vector,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_values: *const T) -> size_t;
    only generic(AMO) "_test_some_vector": crate::p2p::test_some_vector,
        (ivars: *mut T, nelems: size_t, indices: *mut size_t, status: *const c_int, cmp: c_int,
        cmp_values: *const T) -> size_t;
    /// Deprecated.
    only generic(SYNC_DEPRECATED) "_wait_until": crate::p2p::wait_until,
        (ivar: *mut T, cmp: c_int, cmp_value: T);
    /// Deprecated.
    only generic(SYNC_DEPRECATED) "_test": crate::p2p::test,
        (ivar: *mut T, cmp: c_int, cmp_value: T) -> c_int;
    /// Deprecated.
    only plain "wait_until": crate::p2p::wait_until, (ivar: *mut c_long, cmp: c_int, cmp_value: c_long);
    /// Deprecated.
    only plain "wait": crate::p2p::wait_until_other, (ivar: *mut c_long, cmp_value: c_long);
    /// Deprecated.
    only typed(WAIT_DEPRECATED) "_wait": crate::p2p::wait_until_other, (ivar: *mut T, cmp_value: T);
}
