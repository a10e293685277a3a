//! The amount of free symmetric memory. Source of the request: OpenSHMEM specification, issue 98.

use crate::base::abi::size_t;
use crate::base::fault::Call;
use crate::library;

/// `shmemx_heap_free`: bytes of the symmetric heap in free blocks, the same on every PE
/// that has no spaces.
pub(crate) unsafe fn free_bytes(call: Call) -> size_t {
    library::of(call).blocks().own.free_bytes()
}

/// `shmemx_heap_largest`: the size of the largest block that `shmem_malloc` could allocate now, as far as
/// this PE knows.
pub(crate) unsafe fn largest_bytes(call: Call) -> size_t {
    library::of(call).blocks().own.largest_free_bytes()
}
