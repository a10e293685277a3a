//! Distributed locks.

use super::*;

api! {
    only plain "set_lock": crate::lock::set, (lock: *mut c_long);
    only plain "clear_lock": crate::lock::clear, (lock: *mut c_long);
    only plain "test_lock": crate::lock::test, (lock: *mut c_long) -> c_int;
}
