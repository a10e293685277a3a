//! Sessions of contexts.

use super::*;

api! {
    only plain "ctx_session_start": crate::session::start,
        (ctx: Ctx, options: c_long, config: *const SessionConfig, config_mask: c_long);
    only plain "ctx_session_stop": crate::session::stop, (ctx: Ctx);
}
