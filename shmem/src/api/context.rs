//! Communication contexts.

use super::*;

api! {
    only plain "ctx_create": crate::context::create, (options: c_long, ctx: *mut Ctx) -> c_int;
    only plain "team_create_ctx": crate::context::create_of,
        (team: TeamHandle, options: c_long, ctx: *mut Ctx) -> c_int;
    only plain "ctx_destroy": crate::context::destroy, (ctx: Ctx);
    only plain "ctx_get_team": crate::context::get_team, (ctx: Ctx, team: *mut TeamHandle) -> c_int;
}
