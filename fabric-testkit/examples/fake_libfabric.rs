//! The fake libfabric as a shared library, for programs that open one by its path (`PELAGO_OFI_LIBRARY`).
//!
//! Invariant: it exports only the functions that the provider `ofi` looks up, under the names of libfabric;
//! each of them calls the function of `pelago_fabric_testkit::fake_libfabric`.

use libc::{c_char, c_int, c_void};
use pelago_fabric::ofi::sys::{fi_fabric_attr, fi_info, fi_type, fid_fabric};
use pelago_fabric_testkit::fake_libfabric::FUNCTIONS;

/// Defines the functions of the library.
macro_rules! exports {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)+) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: the caller follows the rules of libfabric's manual page of the function.
            unsafe { (FUNCTIONS.$name)($($argument),*) }
        })+
    };
}

exports! {
    fi_version() -> u32;
    fi_getinfo(
        version: u32,
        node: *const c_char,
        service: *const c_char,
        flags: u64,
        hints: *const fi_info,
        info: *mut *mut fi_info
    ) -> c_int;
    fi_freeinfo(info: *mut fi_info);
    fi_dupinfo(info: *const fi_info) -> *mut fi_info;
    fi_fabric(attributes: *mut fi_fabric_attr, fabric: *mut *mut fid_fabric, context: *mut c_void) -> c_int;
    fi_strerror(error: c_int) -> *const c_char;
    fi_tostr_r(buffer: *mut c_char, bytes: usize, data: *const c_void, kind: fi_type) -> *mut c_char;
}
