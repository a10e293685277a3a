//! Contexts (OpenSHMEM 1.6, 9.5): streams of operations that are ordered and completed independently of each
//! other, over the PEs of a team.

use crate::base::abi::{
    CTX_BOUNCE_BUFFER, CTX_NOSTORE, CTX_PRIVATE, CTX_SERIALIZED, Ctx, TeamHandle, c_int, c_long,
};
use crate::base::fault::{Call, fail, output};
use crate::base::hot::Hot;
use crate::handles::context::{CONTEXTS, Context, Members, find};
use crate::handles::counts::Counts;
use crate::handles::team::is_alive;
use crate::library::{self, Library};
use crate::team;
use pelago::{ContextKind, Pe};

/// `shmem_ctx_create`: not collective; 0, or nonzero and `SHMEM_CTX_INVALID`.
pub(crate) unsafe fn create(call: Call, options: c_long, ctx: *mut Ctx) -> c_int {
    // SAFETY: the caller's promises are the same.
    unsafe { create_of(call, TeamHandle::WORLD, options, ctx) }
}

/// `shmem_team_create_ctx`. The number of contexts in the team's configuration is not a limit.
pub(crate) unsafe fn create_of(call: Call, team: TeamHandle, options: c_long, ctx: *mut Ctx) -> c_int {
    let (library, ctx) = (library::of(call), output(call, "ctx", ctx));
    let made = library.make_context(call, team, options);
    // SAFETY: the caller's pointer is valid for one handle.
    unsafe { ctx.write(made.unwrap_or(Ctx::INVALID)) };
    c_int::from(made.is_none())
}

/// `shmem_ctx_destroy`: "performs a quiet operation on the context"; no effect for `SHMEM_CTX_INVALID`.
pub(crate) unsafe fn destroy(call: Call, ctx: Ctx) {
    match ctx {
        Ctx::INVALID => (),
        Ctx::DEFAULT => fail(call, "ctx is SHMEM_CTX_DEFAULT, which cannot be destroyed"),
        _ => {
            let handle = find(call, ctx).expect("not the default context").team;
            if handle != TeamHandle::WORLD && is_alive(handle) {
                team::find(call, handle).contexts().retain(|&other| other != ctx);
            }
            library::of(call).end_context(call, ctx);
        }
    }
}

/// `shmem_ctx_get_team`.
pub(crate) unsafe fn get_team(call: Call, ctx: Ctx, team: *mut TeamHandle) -> c_int {
    library::of(call);
    let team = output(call, "team", team);
    let found = match ctx {
        Ctx::INVALID => TeamHandle::INVALID,
        _ => find(call, ctx).map_or(TeamHandle::WORLD, |context| context.team),
    };
    let found = if is_alive(found) { found } else { TeamHandle::INVALID };
    // SAFETY: the caller's pointer is valid for one handle.
    unsafe { team.write(found) };
    c_int::from(found == TeamHandle::INVALID)
}

impl Library {
    /// A context over the PEs of a team; `None` if there is no such team, an unknown option, or no memory, or
    /// once the exit of the process has finalised.
    fn make_context(&'static self, call: Call, handle: TeamHandle, options: c_long) -> Option<Ctx> {
        if library::has_ended() {
            return None;
        }
        let team = team::find_if_valid(call, "team", handle)?;
        // An option of another library: the program may try again with fewer ones.
        if options & !(CTX_PRIVATE | CTX_SERIALIZED | CTX_NOSTORE | CTX_BOUNCE_BUFFER) != 0 {
            return None;
        }
        let kind = match options {
            _ if options & CTX_PRIVATE != 0 => ContextKind::Private,
            _ if options & CTX_SERIALIZED != 0 => ContextKind::Serialized,
            _ => ContextKind::Shared,
        };
        let stream = self.world.context(kind).ok()?;
        let n_pes = team.team.n_pes();
        // SAFETY: the default context always has this entry.
        let mut hot = *unsafe { Ctx::DEFAULT.hot() };
        let members = (handle != TeamHandle::WORLD).then(|| {
            let pes: Box<[Pe]> = (0..n_pes).map(|rank| team.team.pe(rank)).collect();
            let parts = self.heap.reach().parts;
            // SAFETY: the table has an entry for each PE of the job.
            let parts: Box<[*mut u8]> = pes.iter().map(|&pe| unsafe { *parts.add(pe) }).collect();
            Members { pes, parts }
        });
        if let Some(members) = &members {
            let limit = if hot.limit == 0 { 0 } else { n_pes };
            // The injection path numbers PEs by their number in the job, so for other numbers all calls take
            // the cold functions.
            let far = if limit == 0 { hot.far } else { hot.far.closed(self.world) };
            hot = Hot { limit, parts: members.parts.as_ptr(), far, ..hot };
        } else {
            hot.far = self.heap.via(&stream).far();
        }
        let context = Context { stream, team: handle, members, n_pes, counts: Counts::default() };
        let ctx = CONTEXTS.insert(hot, context).map(Ctx)?;
        if handle != TeamHandle::WORLD && kind != ContextKind::Private {
            team.contexts().push(ctx);
        }
        Some(ctx)
    }
}
