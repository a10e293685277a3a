//! The library's one state in a process, and what is known before and after it.
//!
//! Invariant: it is made when the process joins its job and lives until the process ends, so that a reference
//! to it is valid for the duration of a call.

use crate::abi::*;
use crate::chapters::comm::{self, Comm, KeptComm};
use crate::chapters::datatype::{self, Datatype};
use crate::chapters::errhandler::Handler;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::group::Group;
use crate::chapters::tool;
use pelago_boot::{exit_status, print_stderr};
use pelago_core::Core;
use pelago_core::base::trace::{Category, Event};
use pelago_fabric::sync::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::ptr::null_mut;
use std::sync::Arc;

static LIBRARY: AtomicPtr<Mpi> = AtomicPtr::new(null_mut());
/// The same, unless calls are recorded.
static UNRECORDED: AtomicPtr<Mpi> = AtomicPtr::new(null_mut());
static IS_FINALIZED: AtomicBool = AtomicBool::new(false);
static HAS_OPENED: AtomicBool = AtomicBool::new(false);

/// The state.
pub struct Mpi {
    pub core: Core,
    pub world: Arc<Comm>,
    pub own: Arc<Comm>,
    /// The number of contexts that this PE has given to communicators.
    contexts: AtomicU64,
}

/// The bit of a context that tells communicators of MPI from teams.
const MPI_CONTEXT: u64 = 1 << 63;
/// The bit of a context that tells collective operations from messages of the program.
pub const COLLECTIVE: u64 = 1;
/// The bit of a context that tells what partitioned sends announce from messages of the program.
pub const PARTITIONED: u64 = 2;
/// The bits of a context that tell messages by which communicators are made from those of the program: of
/// groups of its members, between the leaders of two groups, and of all members of an inter-communicator
/// or those of one group of a new one.
pub const BY_GROUP: u64 = 1 << 60;
pub const BETWEEN: u64 = 1 << 61;
pub const EVERYONE: u64 = 3 << 60;
/// The bits of contexts that follow from a string, where communicators are made without a parent.
pub const NO_PARENT: u64 = MPI_CONTEXT | 0xf << 59;

impl Mpi {
    /// A context that no other communicator of the job has. Its lowest three bits are clear, and so are bits
    /// 59 to 62: a job has fewer than 2^24 PEs.
    ///
    /// # Errors
    /// If this PE has given 2^32 contexts: the next would be that of another communicator.
    pub fn new_context(&self) -> Result<u64> {
        let number = self.contexts.fetch_add(1, Ordering::Relaxed);
        ensure!(
            number <= u32::MAX.into(),
            MPI_ERR_OTHER,
            "this process cannot make more communicators, windows, files and partitioned sends than 2^32"
        );
        Ok(MPI_CONTEXT | (self.core.my_pe() as u64) << 35 | number << 3)
    }

    /// The communicator with a handle.
    #[inline]
    pub fn comm(&self, handle: MPI_Comm) -> Result<&Comm> {
        match handle {
            MPI_COMM_WORLD => Ok(&self.world),
            MPI_COMM_SELF => Ok(&self.own),
            _ => comm::find(handle),
        }
    }

    /// A share of the communicator with a handle.
    pub fn share_comm(&self, handle: MPI_Comm) -> Result<Arc<Comm>> {
        match handle {
            MPI_COMM_WORLD => Ok(Arc::clone(&self.world)),
            MPI_COMM_SELF => Ok(Arc::clone(&self.own)),
            _ => comm::share(handle),
        }
    }

    /// The communicator with a handle, for an operation that may last longer than the call.
    #[inline]
    pub fn keep_comm(&self, handle: MPI_Comm) -> Result<KeptComm> {
        // The state of the library lives as long as the process.
        match (handle, get()) {
            (MPI_COMM_WORLD, Some(mpi)) => Ok(KeptComm::Predefined(&mpi.world)),
            (MPI_COMM_SELF, Some(mpi)) => Ok(KeptComm::Predefined(&mpi.own)),
            _ => self.share_comm(handle).map(KeptComm::Shared),
        }
    }

    /// The datatype with a handle, for communication: it must be committed.
    #[inline]
    pub fn datatype(&self, handle: MPI_Datatype) -> Result<&Datatype> {
        datatype::find_committed(handle)
    }

    /// The datatype of `count` elements to send or to receive. No elements need none: programs pass
    /// `MPI_DATATYPE_NULL` with an empty message, and other libraries accept it.
    #[inline]
    pub fn layout(&self, count: i64, handle: MPI_Datatype) -> Result<&Datatype> {
        match (count, handle) {
            (0, MPI_DATATYPE_NULL) => self.datatype(MPI_BYTE),
            _ => self.datatype(handle),
        }
    }
}

/// Makes the library of a PE.
pub fn open(core: Core) -> &'static Mpi {
    let (me, n) = (core.my_pe(), core.n_pes());
    let node = |pe| core.node(pe);
    let world = Comm::new(MPI_CONTEXT | 1 << 62, Group::all(n, me), None, node);
    let own = Comm::new(MPI_CONTEXT | 1 << 62 | 8, Group::of(&[me], me), None, node);
    world.set_name("MPI_COMM_WORLD");
    own.set_name("MPI_COMM_SELF");
    let mpi = Box::leak(Box::new(Mpi {
        world: Arc::new(world),
        own: Arc::new(own),
        contexts: AtomicU64::new(0),
        core,
    }));
    HAS_OPENED.store(true, Ordering::Relaxed);
    reopen(mpi);
    mpi
}

/// Lets calls use the library again.
pub fn reopen(mpi: &'static Mpi) {
    // SYNC POINT library: releases the state to `get`.
    LIBRARY.store(std::ptr::from_ref(mpi).cast_mut(), Ordering::Release);
    if !mpi.core.tally.is_recording() {
        // SYNC POINT library: releases the state to `get_unrecorded`.
        UNRECORDED.store(std::ptr::from_ref(mpi).cast_mut(), Ordering::Release);
    }
}

/// The library, while it has users and its calls are not recorded: one load, for the fast path of each call.
#[inline(always)]
pub fn get_unrecorded() -> Option<&'static Mpi> {
    // SYNC POINT library: acquires the state. SAFETY: the state of the library is never freed.
    unsafe { UNRECORDED.load(Ordering::Acquire).as_ref() }
}

/// Makes a call that is recorded; `None` if the library has no users.
#[cold]
#[inline(never)]
pub fn recorded<R>(name: &'static str, call: impl FnOnce(&'static Mpi) -> R) -> Option<R> {
    let mpi = get()?;
    let _span = mpi.core.tally.span(|| Event::new(Category::Mpi, name));
    Some(call(mpi))
}

/// The library, while it has users.
#[inline]
pub fn get() -> Option<&'static Mpi> {
    // SYNC POINT library: acquires the state. SAFETY: the state of the library is never freed.
    unsafe { LIBRARY.load(Ordering::Acquire).as_ref() }
}

/// Whether this process has joined its job.
pub fn has_opened() -> bool {
    HAS_OPENED.load(Ordering::Relaxed)
}

/// Closes the library: calls are refused until it is opened again.
pub fn close() {
    if let Some(mpi) = get() {
        tool::keep_counters(mpi.core.tally.read());
    }
    UNRECORDED.store(null_mut(), Ordering::Release);
    LIBRARY.store(null_mut(), Ordering::Release);
}

/// Notes that `MPI_Finalize` has ended the world.
pub fn end_world() {
    IS_FINALIZED.store(true, Ordering::Relaxed);
}

/// Whether `MPI_Finalize` has ended the world.
pub fn is_finalized() -> bool {
    IS_FINALIZED.load(Ordering::Relaxed)
}

/// The handler of errors before any object exists.
pub fn first_handler() -> Handler {
    Handler::First
}

/// Ends the job because of an error.
#[cold]
pub fn abort(code: c_int, text: &str) -> ! {
    let code = if code == 0 { 1 } else { code };
    match get() {
        Some(mpi) => mpi.core.abort(code, text),
        None => {
            print_stderr(&format!("{text}\n"));
            std::process::exit(exit_status(code))
        }
    }
}

/// Checks the place of a result.
pub fn output<T>(name: &str, place: *mut T) -> Result<*mut T> {
    match place.is_null() {
        true => Err(Error::new(MPI_ERR_ARG, format!("{name} is null. Give the place of the result"))),
        false => Ok(place),
    }
}

/// The name of the function of the interface that this thread executes, for messages: the innermost
/// function of the shared library on the stack, so that calls keep no account of it.
pub fn current_call() -> Option<&'static str> {
    const DEPTH: usize = 128;
    let mut frames = [null_mut::<c_void>(); DEPTH];
    // SAFETY: the buffer has as many places as the call is told.
    let n = unsafe { libc::backtrace(frames.as_mut_ptr(), DEPTH as c_int) };
    frames[..n as usize].iter().find_map(|frame| {
        // SAFETY: any bytes are a value of the struct; the call fills it in, or returns 0. A name of a loaded
        // object lives as long as the object, and this library is never unloaded.
        let name = unsafe {
            let mut found: libc::Dl_info = std::mem::zeroed();
            // A frame holds the address behind its call.
            let is_found = libc::dladdr(frame.wrapping_byte_sub(1), &raw mut found) != 0;
            (is_found && !found.dli_sname.is_null()).then(|| std::ffi::CStr::from_ptr(found.dli_sname))
        };
        let name: &'static str = name?.to_str().ok()?;
        let name = name.strip_prefix('P').unwrap_or(name);
        name.starts_with("MPI_").then_some(name)
    })
}
