//! Caches (OpenSHMEM 1.4, 9.12, removed in 1.5). The caches of all systems that Pelago supports are coherent,
//! so there is nothing to do.

use crate::base::abi::c_void;
use crate::base::fault::Call;

/// `shmem_clear_cache_inv`, `shmem_set_cache_inv`, `shmem_udcflush`.
pub(crate) unsafe fn nothing(_call: Call) {}

/// `shmem_clear_cache_line_inv`, `shmem_set_cache_line_inv`, `shmem_udcflush_line`.
pub(crate) unsafe fn nothing_at(_call: Call, _dest: *mut c_void) {}
