//! Local completion (Cray OpenSHMEMX), and quiet without waiting (OSSS-UCX).
//!
//! For operations over the network the library knows which operations of a context are complete, but not
//! which sources are already free; so local completion is implemented by full completion, which includes it.

use crate::base::abi::{Ctx, c_int};
use crate::base::fault::Call;
use crate::library;
use crate::order;

/// `shmemx_local_complete`, of the default context, and `shmemx_ctx_local_complete`: the local buffers of the
/// context's operations may be used again. No effect for `SHMEM_CTX_INVALID`.
pub(crate) unsafe fn local_complete(call: Call, ctx: Ctx) {
    // SAFETY: the caller's promises are the same.
    unsafe { order::quiet(call, ctx) }
}

/// `shmemx_ctx_local_query`: 1 if `shmemx_local_complete` would not wait.
pub(crate) unsafe fn local_query(call: Call, ctx: Ctx) -> c_int {
    c_int::from(library::of(call).is_quiet(call, ctx))
}

/// `shmemx_quiet_test`: 1 if all operations that were started on the context are complete; the call is then a
/// quiet; else 0.
pub(crate) unsafe fn quiet_test(call: Call, ctx: Ctx) -> c_int {
    c_int::from(library::of(call).is_quiet(call, ctx))
}
