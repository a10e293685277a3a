//! The library's one global state: its memory, its teams and its threads.
//!
//! Invariant: it is created by the first initialisation and closed by the last finalisation, which run
//! concurrently with no other call; in between it never moves, so a reference to it is valid for the duration
//! of a call. It dereferences to its memory. The layers below do not know that it is global.
//!
//! If another interface (MPI) still uses the job at the last finalisation, the library rests: the program's
//! variables lie in memory of the job, which goes on. The next initialisation takes it up again.

mod fork;
mod operation;
pub(crate) mod teams;

use crate::base::abi::{THREAD_SINGLE, c_int};
use crate::base::fault::{Call, fail};
use crate::base::hot::{HOT, Hot, JOB, Job};
use crate::handles::counts::Counts;
use crate::symmetric::Memory;
use crate::symmetric::statics::Statics;
use pelago::World;
use pelago::binding::{self, Attached, Left};
use pelago::sync::{AtomicBool, Ordering};
use std::ops::Deref;
use std::ptr::{null, null_mut};
use teams::Teams;

/// The one library of this process.
#[unsafe(link_section = "pelago_state")]
static mut LIBRARY: *mut Library = null_mut();

/// The library while it rests.
#[unsafe(link_section = "pelago_state")]
static mut RESTING: *mut Library = null_mut();

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

/// Makes the library of a world, or takes up the one that rests; opens the fast path.
pub(crate) fn open(attached: Attached, thread_level: c_int) -> pelago::Result<()> {
    if thread_level > THREAD_SINGLE {
        binding::own_all_threads(&attached.world);
    }
    // SAFETY: initialisation runs concurrently with no other call.
    let resting = unsafe { (&raw mut RESTING).replace(null_mut()) };
    let library = match (resting.is_null(), attached.is_new) {
        (false, false) => resting,
        (is_null, _) => {
            if !is_null {
                // SAFETY: `close` has put it there, and its job has ended.
                unsafe { destroy(resting) };
            }
            create(attached)?
        }
    };
    // SAFETY: initialisation runs concurrently with no other call.
    unsafe {
        (*library).thread_level = thread_level;
        LIBRARY = library;
        (*library).open_fast_path();
    }
    Ok(())
}

/// Makes the library of a world.
fn create(attached: Attached) -> pelago::Result<*mut Library> {
    let Attached { world, is_new, program_threads } = attached;
    binding::accept_overlap(&world);
    let world: &'static World = Box::leak(Box::new(world));
    fork::ensure_registered();
    if !is_new {
        // Memory that the other interface has freed is free on all PEs now.
        world.reclaim()?;
    }
    let statics = Statics::share(world, is_new, program_threads)?;
    let foundry = world.foundry()?;
    let memory = Memory::open(world, statics)?;
    let teams = Teams::open(world, foundry, &memory.heap)?;
    let library = Library { memory, teams, counts: Counts::default(), thread_level: THREAD_SINGLE };
    Ok(Box::into_raw(Box::new(library)))
}

impl Library {
    /// Opens the fast path.
    ///
    /// # Safety
    /// No other call runs, and the library never moves.
    unsafe fn open_fast_path(&self) {
        // All its references are to the world, which outlives the library.
        let (hot, world) = (self.hot(), self.memory.world);
        let plain: *const World = if hot.limit > 0 { world } else { null() };
        let outstanding = match &self.checks {
            None => binding::outstanding(world).map(|word| word.cast()),
            Some(_) => Job::NONE.outstanding,
        };
        let (me, n_pes) = (world.my_pe() as c_int, world.n_pes() as c_int);
        // SAFETY: the caller guarantees that no other call runs.
        unsafe {
            JOB = Job { outstanding, plain, me, n_pes, world };
            HOT = hot;
        }
    }
}

/// Closes the library, which may be initialised again. All PEs have reached this call.
pub(crate) fn close() -> pelago::Result<()> {
    let left = binding::detach()?;
    // SAFETY: finalisation runs concurrently with no other call; `open` has set the pointer.
    unsafe {
        HOT = Hot::CLOSED;
        JOB = Job::NONE;
        let library = (&raw mut LIBRARY).replace(null_mut());
        match left {
            Some(left) => {
                destroy(library);
                drop(left);
            }
            None => {
                (*library).rest();
                RESTING = library;
            }
        }
    }
    Ok(())
}

/// Frees a library.
///
/// # Safety
/// `create` has made it, nothing uses it any more, and its world has ended.
unsafe fn destroy(library: *mut Library) {
    // SAFETY: the caller's promise; the world was leaked by `create`, and everything that borrows it is
    // dropped before it.
    unsafe {
        let Library { memory, teams, .. } = *Box::from_raw(library);
        let world: *const World = memory.world;
        drop(teams);
        drop(memory);
        drop(Box::from_raw(world.cast_mut()));
    }
}

impl Library {
    /// Destroys what the program has made in it.
    fn rest(&mut self) {
        self.teams.forget_those_of_program();
        self.memory.forget_blocks();
        self.counts = Counts::default();
    }
}

/// Leaves the job without freeing anything: at the end of the process, whose other threads may still run.
/// If there are none, it says goodbye to peers, which may still be leaving.
pub(crate) fn leave() -> pelago::Result<()> {
    HAS_ENDED.store(true, Ordering::Relaxed);
    // Exit handlers of the program that run later may still call functions.
    // SAFETY: of threads that still run, none synchronises with PEs that end.
    unsafe {
        HOT = Hot::CLOSED;
        JOB.plain = null();
    }
    let is_alone = binding::program_threads().is_ok_and(|threads| threads == 1);
    let left: Option<Left> = binding::detach()?;
    if !is_alone {
        std::mem::forget(left);
    }
    Ok(())
}

/// Whether the library was finalised at the exit of the process: the objects that exit handlers of the
/// program, which run later, still free do not exist any more.
pub(crate) fn has_ended() -> bool {
    HAS_ENDED.load(Ordering::Relaxed)
}

/// Abandons the library without leaving the job: in a child process, which is not a PE.
fn abandon() {
    binding::abandon();
    // SAFETY: the child has no other thread; the abandoned objects are never freed.
    unsafe {
        HOT = Hot::CLOSED;
        JOB = Job::NONE;
        LIBRARY = null_mut();
        RESTING = null_mut();
    }
}
