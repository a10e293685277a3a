//! Settings that libfabric reads from the environment when it is loaded, unless the user has set them.
//!
//! Invariant: the environment is changed only while this process has one thread, because other threads might
//! read it at the same time.

use crate::threads;
use std::env::{set_var, var_os};

/// Buffers of 16 KiB that each endpoint of the layer `ofi_rxm` fills in when it opens: 4096 by default, which
/// take 70 MB and 20 ms for every PE and every context. Here messages are moved at once from them to the PE's
/// own buffers; puts and gets need none.
const RECEIVES: (&str, &str) = ("FI_OFI_RXM_MSG_RX_SIZE", "256");

/// Makes endpoints of this process smaller. It is for a process that may load libfabric later and has no
/// other threads yet. If there are other threads it does nothing, and endpoints have libfabric's default
/// size.
pub fn lighten_endpoints() {
    let (name, value) = RECEIVES;
    if matches!(threads::count(), Ok(1)) && var_os(name).is_none() {
        // SAFETY: this process has no other thread that could read the environment at the same time.
        unsafe { set_var(name, value) };
    }
}
