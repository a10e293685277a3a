//! What libfabric reads from the environment when it is loaded, where the user has not set it.
//!
//! Invariant: the environment is changed only while this process has one thread, as others might read it at
//! the same time.

use crate::threads;
use std::env::{set_var, var_os};

/// Buffers of 16 KiB that each endpoint of the layer `ofi_rxm` fills in when it opens: 4096 by default, which
/// are 70 MB and 20 ms for every PE and every context. Here messages leave them at once for buffers of a PE's
/// own; memory that is put and got needs none.
const RECEIVES: (&str, &str) = ("FI_OFI_RXM_MSG_RX_SIZE", "256");

/// Sets what makes endpoints lighter, for a process that may load libfabric later and has no threads yet; in
/// another one nothing happens, and endpoints are as heavy as libfabric makes them.
pub fn lighten_endpoints() {
    let (name, value) = RECEIVES;
    if matches!(threads::count(), Ok(1)) && var_os(name).is_none() {
        // SAFETY: this process has no other thread that could read the environment at the same time.
        unsafe { set_var(name, value) };
    }
}
