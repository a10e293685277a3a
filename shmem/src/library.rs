//! The library's one global state: its memory, its teams and its threads.
//!
//! Invariant: it is created by the first initialisation and closed by the last finalisation, which run
//! concurrently with no other call; in between it never moves, so a reference to it is valid for the duration
//! of a call. It dereferences to its memory. The layers below do not know that it is global.

mod fork;
mod operation;
pub(crate) mod teams;

use crate::base::abi::{THREAD_SINGLE, c_int};
use crate::base::fault::{Call, Mark, fail};
use crate::base::hot::{HOT, Hot, JOB, Job};
use crate::handles::counts::Counts;
use crate::symmetric::Memory;
use crate::symmetric::statics::Statics;
use pelago::World;
use pelago::binding::{self, Membership};
use pelago::sync::{AtomicBool, Ordering};
use std::ops::Deref;
use std::ptr::{null, null_mut};
use teams::Teams;

/// The one library of this process.
#[unsafe(link_section = "pelago_state")]
static mut LIBRARY: *mut Library = null_mut();

/// Whether the library was finalised at the exit of the process.
#[unsafe(link_section = "pelago_state")]
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// The state.
#[repr(C)]
pub(crate) struct Library {
    /// The first field, so that a reference to the library is one to its memory.
    memory: Memory,
    pub(crate) teams: Teams,
    /// The counts of the default context.
    pub(crate) counts: Counts,
    pub(crate) thread_level: c_int,
}

impl Deref for Library {
    type Target = Memory;

    #[inline(always)]
    fn deref(&self) -> &Memory {
        &self.memory
    }
}

/// The library, if it is initialised.
#[inline]
pub(crate) fn get() -> Option<&'static Library> {
    // SAFETY: only initialisation and finalisation write it, and they run concurrently with no other call.
    unsafe { LIBRARY.as_ref() }
}

/// The library, in a call that needs it.
#[inline]
pub(crate) fn of(call: Call) -> &'static Library {
    get().unwrap_or_else(|| fail(call, "called before shmem_init, or after the last shmem_finalize"))
}

/// Makes the library of a world; opens the fast path. `threads` is the number of threads that this process
/// had before.
pub(crate) fn open(world: World, thread_level: c_int, threads: std::io::Result<usize>) -> pelago::Result<()> {
    binding::accept_overlap(&world);
    if thread_level > THREAD_SINGLE {
        binding::own_all_threads(&world);
    }
    binding::name_calls_by(Mark::get);
    let world: &'static World = Box::leak(Box::new(world));
    fork::ensure_registered();
    let statics = Statics::share(world, threads)?;
    let foundry = world.foundry()?;
    let memory = Memory::open(world, statics)?;
    let teams = Teams::open(world, foundry, &memory.heap)?;
    let library = Library { memory, teams, counts: Counts::default(), thread_level };
    // All its references are to the world, which outlives the library.
    let hot = library.hot();
    let plain: *const World = if hot.limit > 0 { world } else { null() };
    let outstanding = match &library.checks {
        None => binding::outstanding(world).map(|word| word.cast()),
        Some(_) => Job::NONE.outstanding,
    };
    let (me, n_pes) = (world.my_pe() as c_int, world.n_pes() as c_int);
    // SAFETY: initialisation runs concurrently with no other call.
    unsafe {
        LIBRARY = Box::into_raw(Box::new(library));
        JOB = Job { outstanding, plain, me, n_pes, world };
        HOT = hot;
    }
    Ok(())
}

/// Closes the library; the process stays in its job and may initialise again. All PEs have reached this call.
pub(crate) fn close() -> Option<Membership> {
    let membership = detach();
    // SAFETY: finalisation runs concurrently with no other call; the world was leaked by `open`, and
    // everything that borrows it is dropped before it.
    unsafe {
        HOT = Hot::CLOSED;
        JOB = Job::NONE;
        let Library { memory, teams, .. } = *Box::from_raw(LIBRARY);
        LIBRARY = null_mut();
        let world: *const World = memory.world;
        drop(teams);
        drop(memory);
        drop(Box::from_raw(world.cast_mut()));
    }
    membership
}

/// Leaves the job without freeing anything: at the end of the process, whose other threads may still run.
pub(crate) fn leave() -> Option<Membership> {
    HAS_ENDED.store(true, Ordering::Relaxed);
    detach()
}

/// Whether the library was finalised at the exit of the process: the objects that exit handlers of the
/// program, which run later, still free do not exist any more.
pub(crate) fn has_ended() -> bool {
    HAS_ENDED.load(Ordering::Relaxed)
}

fn detach() -> Option<Membership> {
    get().and_then(|library| binding::detach(library.world))
}

/// Abandons the library without leaving the job: in a child process, which is not a PE.
fn abandon() {
    // SAFETY: the child has no other thread; the abandoned objects are never freed.
    unsafe {
        HOT = Hot::CLOSED;
        JOB = Job::NONE;
        LIBRARY = null_mut();
    }
}
