//! Memory management.

use super::*;

api! {
    only plain "malloc": crate::memory::malloc, (size: size_t) -> *mut c_void;
    only plain "free": crate::memory::free, (ptr: *mut c_void);
    only plain "realloc": crate::memory::realloc, (ptr: *mut c_void, size: size_t) -> *mut c_void;
    only plain "align": crate::memory::align, (alignment: size_t, size: size_t) -> *mut c_void;
    only plain "malloc_with_hints": crate::memory::malloc_with_hints,
        (size: size_t, hints: c_long) -> *mut c_void;
    only plain "calloc": crate::memory::calloc, (count: size_t, size: size_t) -> *mut c_void;
    /// Deprecated.
    only named "shmalloc": crate::memory::malloc, (size: size_t) -> *mut c_void;
    /// Deprecated.
    only named "shfree": crate::memory::free, (ptr: *mut c_void);
    /// Deprecated.
    only named "shrealloc": crate::memory::realloc, (ptr: *mut c_void, size: size_t) -> *mut c_void;
    /// Deprecated.
    only named "shmemalign": crate::memory::align, (alignment: size_t, size: size_t) -> *mut c_void;
}
