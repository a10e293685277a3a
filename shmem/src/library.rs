//! The library's one global state: the world and its memory that is symmetric for C.
//!
//! Invariant: it is created by the first initialisation and closed by the last finalisation, which run
//! concurrently with no other call; in between it never moves, so a reference to it is valid for the duration
//! of a call. Symmetric memory is two arrays of bytes, the same on every PE: the heap, in which `memory.rs`
//! allocates, and the program's static data (`statics.rs`), of which each PE maps its own part twice in its
//! address space.

use crate::abi::{Ctx, THREAD_SINGLE, c_int};
use crate::active_set::ActiveSets;
use crate::blocks::Blocks;
use crate::check::{Checks, User};
use crate::context::{self, Context};
use crate::extension::counts::Counts;
use crate::fault::{Call, Mark, fail};
use crate::hot::{HOT, Hot, JOB, Job};
use crate::say::say;
use crate::statics::Statics;
use crate::team::Groups;
use pelago::binding;
use pelago::binding::Membership;
use pelago::{Pe, Symmetric, View, World};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, Once};

/// The one library of this process.
#[unsafe(link_section = "pelago_state")]
static mut LIBRARY: *mut Library = null_mut();

/// Bytes at the end of the heap that are never allocated, so that the fast path only needs to check the first
/// byte of a value.
const MARGIN_BYTES: usize = 64;
/// The alignment of the heap's part of each PE, and so the largest alignment of its blocks; a small heap is
/// aligned to a page.
const ALIGN_BYTES: usize = 16 << 20;
const PAGE_BYTES: usize = 4096;
/// The overhead of a heap in bytes: its size minus the bytes that can be allocated in it.
pub(crate) const OVERHEAD_BYTES: usize = 2 * ALIGN_BYTES;

/// The state.
pub(crate) struct Library {
    pub(crate) world: &'static World,
    /// Dropped first, as it has views of the arrays with other element types.
    pub(crate) groups: Groups,
    pub(crate) heap: Symmetric<'static, u8>,
    pub(crate) statics: Statics,
    /// The allocated blocks of the heap, by offsets in it.
    pub(crate) blocks: Mutex<Blocks>,
    /// The counts of the default context.
    pub(crate) counts: Counts,
    pub(crate) thread_level: c_int,
    /// Present if `PELAGO_CHECK` is on.
    pub(crate) checks: Option<Checks>,
    /// The largest alignment of blocks.
    pub(crate) align_bytes: usize,
}

/// A symmetric object: its place, the same on every PE, in one of the two arrays.
#[derive(Clone, Copy)]
pub(crate) struct RemoteAddress {
    pub(crate) array: &'static View<'static, u8>,
    pub(crate) offset: usize,
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
    let statics = Statics::share(world, threads)?;
    let active_sets = ActiveSets::open(world)?;
    let free = world.heap_largest_free_bytes();
    let align_bytes = if free >= OVERHEAD_BYTES { ALIGN_BYTES } else { PAGE_BYTES };
    let heap = world.alloc_aligned::<u8>(free.saturating_sub(align_bytes), align_bytes)?;
    let reach = heap.reach();
    let usable = reach.bytes.saturating_sub(MARGIN_BYTES);
    let checks = binding::compares_calls(world).then(Checks::default);
    let limit = if checks.is_some() { 0 } else { reach.limit };
    let looked_at_bytes = if limit > 0 && world.fabric().is_none() { usable } else { 0 };
    let groups = Groups::open(world, active_sets, &heap, checks.is_none())?;
    let blocks = Mutex::new(Blocks::new(usable));
    let counts = Counts::default();
    let library = Library { world, groups, statics, blocks, counts, thread_level, align_bytes, heap, checks };
    let (start, parts) = (reach.own as usize, reach.parts);
    // All its references are to the world, which outlives the library.
    let far = library.heap.far();
    let hot = Hot { limit, start, bytes: usable, parts, looked_at_bytes, far };
    let plain: *const World = if limit > 0 { world } else { null() };
    let outstanding = match &library.checks {
        None => binding::outstanding(world).map(|word| word.cast()),
        Some(_) => Job::NONE.outstanding,
    };
    // SAFETY: initialisation runs concurrently with no other call.
    unsafe {
        LIBRARY = Box::into_raw(Box::new(library));
        JOB = Job { outstanding, plain, me: world.my_pe() as c_int, n_pes: world.n_pes() as c_int };
        HOT = hot;
    }
    Ok(())
}

/// From now on a panic ends the job after its message is printed, so no panic unwinds through frames of C. A
/// call that cannot continue, as it waits for a PE that has left, ends the job in the same way.
pub(crate) fn end_job_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let call = Mark::get().map(|call| format!(", in {call}")).unwrap_or_default();
            let place = info.location().map(|place| format!(" [{place}]")).unwrap_or_default();
            let payload = info.payload();
            let words = payload.downcast_ref::<&str>().copied();
            let words = words.or(payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
            say(&format!("{words}{call}{place}"));
            if std::env::var_os("RUST_BACKTRACE").is_some() {
                before(info);
            }
            match get() {
                Some(library) => library.world.abort(101, ""),
                // SAFETY: it has no precondition; exit handlers might wait for what this thread holds.
                None => unsafe { libc::_exit(101) },
            }
        }));
    });
}

/// Closes the library; the process stays in its job and may initialise again. All PEs have reached this call.
pub(crate) fn close() -> Option<Membership> {
    let membership = leave();
    // SAFETY: finalisation runs concurrently with no other call; the world was leaked by `open`, and
    // everything that borrows it is dropped before it.
    unsafe {
        HOT = Hot::CLOSED;
        JOB = Job::NONE;
        let library = Box::from_raw(LIBRARY);
        LIBRARY = null_mut();
        let world: *const World = library.world;
        drop(library);
        drop(Box::from_raw(world.cast_mut()));
    }
    membership
}

/// Leaves the job without freeing anything: at the end of the process, whose other threads may still run.
pub(crate) fn leave() -> Option<Membership> {
    get().and_then(|library| binding::detach(library.world))
}

/// Abandons the library without leaving the job: in a child process, which is not a PE.
pub(crate) fn abandon() {
    // SAFETY: the child has no other thread; the abandoned objects are never freed.
    unsafe {
        HOT = Hot::CLOSED;
        JOB = Job::NONE;
        LIBRARY = null_mut();
    }
}

impl Library {
    /// A barrier of all PEs, which completes the operations of the default context.
    pub(crate) fn barrier(&self, call: Call) {
        let _mark = self.enter_barrier(call);
        self.world.barrier();
    }

    /// The actions before every operation that includes such a barrier.
    pub(crate) fn enter_barrier(&self, call: Call) -> Mark {
        self.settle_sources(call, Some(User::Context(Ctx::DEFAULT)));
        Mark::set(call)
    }

    /// The number of this PE.
    pub(crate) fn me(&self) -> Pe {
        self.world.my_pe()
    }

    /// The place of an address of this PE, if the `bytes` bytes from there on are symmetric.
    pub(crate) fn find(&'static self, address: usize, bytes: usize) -> Option<RemoteAddress> {
        let offset = address.wrapping_sub(self.heap.reach().own as usize);
        if offset < self.heap.len() && bytes <= self.heap.len() - offset {
            return Some(RemoteAddress { array: &self.heap, offset });
        }
        self.statics.find(address, bytes).map(|(array, offset)| RemoteAddress { array, offset })
    }

    /// The same in a call that requires a symmetric address: `what` names the argument.
    pub(crate) fn locate(
        &'static self,
        call: Call,
        what: &str,
        address: usize,
        bytes: usize,
    ) -> RemoteAddress {
        let remote = self.find(address, bytes).unwrap_or_else(|| {
            let heap = self.heap.reach().own as usize;
            let statics = self.statics.description();
            fail(
                call,
                format_args!(
                    "{what} is {bytes} bytes at {address:#x}, which are not symmetric: the heap lies at \
                     {heap:#x} to {:#x}, {statics}. Allocate with shmem_malloc, or make it a global or \
                     static variable of the program",
                    heap + self.heap.len()
                ),
            )
        });
        self.check_object(call, what, address, bytes);
        remote
    }

    /// The PE of the job, from its number in the context's team.
    pub(crate) fn pe(&'static self, call: Call, ctx: Ctx, pe: c_int) -> Pe {
        let (n_pes, translate): (usize, &dyn Fn(Pe) -> Pe) = match context::find(call, ctx) {
            None => (self.world.n_pes(), &|pe| pe),
            Some(context) => (context.n_pes(), &|pe| context.pe(pe)),
        };
        match usize::try_from(pe) {
            Ok(pe) if pe < n_pes => translate(pe),
            _ => {
                fail(call, format_args!("pe is {pe}, but there are {n_pes} PEs, numbered 0 to {}", n_pes - 1))
            }
        }
    }

    /// Calls `work` with an array, seen through a context.
    pub(crate) fn through<R>(
        &'static self,
        call: Call,
        ctx: Ctx,
        array: &View<'static, u8>,
        work: impl FnOnce(&View<'_, u8>) -> R,
    ) -> R {
        let _mark = Mark::set(call);
        let context = context::find(call, ctx);
        let counts = context.map_or(&self.counts, |context| &context.counts);
        counts.of(self.world, || match context.and_then(Context::stream) {
            None => work(array),
            Some(stream) => work(&array.via(stream)),
        })
    }
}
