//! Sessions (OpenSHMEM 1.6, 9.5.6 and 9.5.7): hints about what a context is going to be used for. The library
//! makes no use of them.

use crate::base::abi::{CTX_SESSION_TOTAL_OPS, Ctx, SessionConfig, c_long};
use crate::base::fault::{Call, fail};
use crate::handles::context;
use crate::library;

/// `shmem_ctx_session_start`: no effect for `SHMEM_CTX_INVALID`.
pub(crate) unsafe fn start(
    call: Call,
    ctx: Ctx,
    _options: c_long,
    config: *const SessionConfig,
    config_mask: c_long,
) {
    library::of(call);
    if ctx == Ctx::INVALID {
        return;
    }
    context::find(call, ctx);
    // Other bits may be hints of other libraries: no combination is undefined.
    if config_mask & CTX_SESSION_TOTAL_OPS != 0 && config.is_null() {
        fail(call, "config is null, but config_mask names a member of it");
    }
}

/// `shmem_ctx_session_stop`: "if there is no session, it has no effect".
pub(crate) unsafe fn stop(call: Call, ctx: Ctx) {
    library::of(call);
    if ctx != Ctx::INVALID {
        context::find(call, ctx);
    }
}
