//! The contexts that the program has created: streams of operations that are ordered and completed
//! independently of each other, over the PEs of a team.

use super::Handles;
use super::counts::Counts;
use crate::base::abi::{Ctx, TeamHandle};
use crate::base::fault::{Call, fail};
use pelago::Pe;

/// The contexts that the program has created.
pub(crate) static CONTEXTS: Handles<Context> = Handles::new();

/// The context of a handle that is not predefined.
pub(crate) struct Context {
    pub(crate) stream: pelago::Context<'static>,
    pub(crate) team: TeamHandle,
    /// The PE of each member of its team; `None` if the team has all PEs.
    pub(crate) members: Option<Members>,
    pub(crate) n_pes: usize,
    pub(crate) counts: Counts,
}

/// The members of the team of a context.
pub(crate) struct Members {
    pub(crate) pes: Box<[Pe]>,
    /// The start of the heap of each member; the fast path reads it.
    pub(crate) parts: Box<[*mut u8]>,
}

// SAFETY: addresses of shared memory, in a table that is never changed.
unsafe impl Send for Members {}
// SAFETY: as for `Send`: the table is never written.
unsafe impl Sync for Members {}

impl Context {
    /// The PE of the job, from its number in the team.
    pub(crate) fn pe(&self, rank: usize) -> Pe {
        self.members.as_ref().map_or(rank, |members| members.pes[rank])
    }
}

/// The context of a handle; `None` for the default context.
pub(crate) fn find(call: Call, ctx: Ctx) -> Option<&'static Context> {
    match ctx {
        Ctx::DEFAULT => None,
        Ctx::INVALID => fail(call, "ctx is SHMEM_CTX_INVALID"),
        Ctx(address) => Some(CONTEXTS.get(address).unwrap_or_else(|why| {
            fail(call, format_args!("ctx is {address:#x}, a context that {why}"));
        })),
    }
}

/// The stream of a context's operations; `None` for the default context.
pub(crate) fn stream(call: Call, ctx: Ctx) -> Option<&'static pelago::Context<'static>> {
    find(call, ctx).map(|context| &context.stream)
}
