//! Library setup, exit and query routines (OpenSHMEM 1.6, 9.1 and 9.2).
//!
//! Invariant: initialisations are counted since 1.6, and only the last finalisation closes the library; then
//! it may be initialised again. A program that exits with status 0 without it is finalised at its exit, as
//! after `start_pes`.

mod environment;

use crate::base::abi::{THREAD_MULTIPLE, THREAD_SINGLE, VENDOR, VERSION, c_char, c_int, c_void};
use crate::base::fault::{Call, Mark, OrFail, fail, output};
use crate::base::hot::JOB;
use crate::base::say::say;
use crate::extension::{request, space};
use crate::library;
use crate::symmetric::{OVERHEAD_BYTES, statics};
use environment::Environment;
use pelago::binding;
use pelago::sync::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};

/// The state that outlives the library.
struct Setup {
    /// The number of initialisations minus finalisations.
    count: AtomicUsize,
    /// The process ID of the initialised process; 0 before initialisation.
    process: AtomicU32,
    /// The exit status of the whole job, once this PE has requested its end; else `NO_EXIT`.
    global_exit: AtomicI64,
    is_exit_watched: AtomicBool,
}

const NO_EXIT: i64 = i64::MIN;

#[unsafe(link_section = "pelago_state")]
static SETUP: Setup = Setup {
    count: AtomicUsize::new(0),
    process: AtomicU32::new(0),
    global_exit: AtomicI64::new(NO_EXIT),
    is_exit_watched: AtomicBool::new(false),
};

/// Runs when the library is loaded: whichever interface of the process is initialised first makes the heap.
#[used]
#[unsafe(link_section = ".init_array.00102")]
static AT_LOAD: extern "C" fn() = ask_for_heap;

extern "C" fn ask_for_heap() {
    binding::ask_for_settings(heap_settings);
}

/// The settings of the runtime that this library needs. A mistake in the environment is reported by this
/// library's own initialisation.
fn heap_settings() -> Vec<(&'static str, String)> {
    let Ok(environment) = Environment::read() else { return Vec::new() };
    let messages = environment.wants_messages.then(|| (LOG, "debug".to_owned()));
    std::iter::once(heap_size(&environment)).chain(messages).collect()
}

/// `shmem_init`.
pub(crate) unsafe fn init(call: Call) {
    initialize(THREAD_SINGLE).or_fail(call);
}

/// `shmem_init_thread`: 0, or the reason on standard error.
pub(crate) unsafe fn init_thread(call: Call, requested: c_int, provided: *mut c_int) -> c_int {
    let provided = output(call, "provided", provided);
    let outcome = match requested {
        THREAD_SINGLE..=THREAD_MULTIPLE => initialize(requested),
        _ => Err(format!("requested is {requested}, which is no SHMEM_THREAD_... level")),
    };
    match outcome {
        Ok(level) => {
            // SAFETY: the caller's pointer is valid for one value.
            unsafe { provided.write(level) };
            0
        }
        Err(reason) => {
            say(&format!("{call}: {reason}"));
            1
        }
    }
}

/// `start_pes`: "the npes argument is ignored"; a second call has no effect, and the end of the program
/// finalises.
pub(crate) unsafe fn start_pes(call: Call, _npes: c_int) {
    if library::get().is_none() {
        initialize(THREAD_SINGLE).or_fail(call);
    }
}

/// Counts one more initialisation. Returns the thread level in force.
fn initialize(requested: c_int) -> Result<c_int, String> {
    if let Some(library) = library::get() {
        SETUP.count.fetch_add(1, Ordering::Relaxed);
        return Ok(library.thread_level);
    }
    let (process, before) = (std::process::id(), SETUP.process.load(Ordering::Relaxed));
    if before != 0 && before != process {
        return Err(
            "a child of fork is no PE: let it start a program that is one, in a job of its own".into()
        );
    }
    let environment = Environment::read()?;
    binding::name_calls_by(Mark::get);
    // Referred to here, so that the linker takes it out of an archive.
    std::hint::black_box(AT_LOAD)();
    let attached = binding::attach().map_err(|error| error.to_string())?;
    if attached.world.my_pe() == 0 {
        environment.announce();
    }
    library::open(attached, requested).map_err(|error| error.to_string())?;
    SETUP.count.store(1, Ordering::Relaxed);
    SETUP.process.store(process, Ordering::Relaxed);
    if !SETUP.is_exit_watched.swap(true, Ordering::Relaxed) {
        watch_exit();
    }
    Ok(requested)
}

/// The setting of the runtime for the size of the heap, and its value. The heap also holds the static data.
fn heap_size(environment: &Environment) -> (&'static str, String) {
    let overhead_bytes = (OVERHEAD_BYTES + statics::extent_bytes()) as u64;
    match environment.symmetric_size {
        Some(bytes) => (HEAP_SIZE, bytes.saturating_add(overhead_bytes).to_string()),
        None => (HEAP_EXTRA, overhead_bytes.to_string()),
    }
}

const HEAP_SIZE: &str = "PELAGO_HEAP_SIZE";
/// By how much the heap is larger than the default, if `PELAGO_HEAP_SIZE` is not set.
const HEAP_EXTRA: &str = "PELAGO_HEAP_EXTRA";
const LOG: &str = "PELAGO_LOG";

/// `shmem_finalize`: the last one "performs an implicit global barrier to ensure that pending communications
/// are completed"; any other "is equivalent to a call to shmem_barrier_all".
pub(crate) unsafe fn finalize(call: Call) {
    if library::has_ended() {
        return;
    }
    // Undefined by the standard. Programs that do this have finished and lose nothing.
    let Some(library) = library::get().filter(|_| SETUP.count.load(Ordering::Relaxed) > 0) else {
        if SETUP.process.load(Ordering::Relaxed) == 0 {
            fail(call, "called before shmem_init");
        }
        return say(&format!("{call}: called again after the last shmem_finalize: nothing is done"));
    };
    let is_last = SETUP.count.load(Ordering::Relaxed) == 1;
    if is_last {
        request::complete_all(call);
        library.settle_sources(call, None);
    }
    library.barrier(call);
    SETUP.count.fetch_sub(1, Ordering::Relaxed);
    if is_last {
        space::forget_all();
        library::close().or_fail(call);
    }
}

/// `shmem_query_initialized`: at any time, also before initialisation and after finalisation.
pub(crate) unsafe fn query_initialized(call: Call, initialized: *mut c_int) {
    let is_initialized = library::get().is_some() && !library::has_ended();
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output(call, "initialized", initialized).write(is_initialized.into()) };
}

/// `shmem_query_thread`.
pub(crate) unsafe fn query_thread(call: Call, provided: *mut c_int) {
    let level = library::get().map_or(THREAD_SINGLE, |library| library.thread_level);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output(call, "provided", provided).write(level) };
}

// SAFETY: the prototypes are those of the C library.
unsafe extern "C" {
    /// The C library's function: like `atexit`, but the handler gets the status.
    fn on_exit(work: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    /// The C library's function.
    fn fflush(stream: *mut c_void) -> c_int;
}

/// The name of the call for messages, when the exit of the process finalises.
const AT_EXIT: Call = "shmem_finalize at the exit of the process";

/// Runs when all exit handlers of the program have run.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = end_globally;

fn watch_exit() {
    // Referred to here, so that the linker takes it out of an archive.
    std::hint::black_box(&AT_END);
    // SAFETY: the function needs no argument, and lives as long as the process.
    unsafe { on_exit(at_exit, std::ptr::null_mut()) };
}

/// The end of the process, by `exit` or from `main`: performs the implicit finalisation, unless
/// `shmem_global_exit` was called. If a PE exits with an error, the launcher ends the job.
extern "C" fn at_exit(status: c_int, _argument: *mut c_void) {
    // A child of a fork has copies of all this state, and is not part of the job.
    if SETUP.process.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    if status != 0 || SETUP.global_exit.load(Ordering::Relaxed) != NO_EXIT {
        return;
    }
    if let Some(library) = library::get() {
        request::complete_all(AT_EXIT);
        library.settle_sources(AT_EXIT, None);
        library.barrier(AT_EXIT);
        library::leave().or_fail(AT_EXIT);
    }
}

/// Ends the job as `shmem_global_exit` has requested.
extern "C" fn end_globally() {
    let asked = SETUP.global_exit.load(Ordering::Relaxed);
    if asked == NO_EXIT || SETUP.process.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    if let Some(library) = library::get() {
        // SAFETY: null stands for all streams.
        unsafe { fflush(std::ptr::null_mut()) };
        library.world.abort(asked as c_int, "");
    }
}

/// `shmem_global_exit`: "the exit of all PEs", whatever they do; calls `exit` of the C library on this PE,
/// whose exit handlers run first.
pub(crate) unsafe fn global_exit(call: Call, status: c_int) {
    if library::get().is_none() {
        fail(call, "called before shmem_init, or after the last shmem_finalize");
    }
    // If another PE has ended the job before, the launcher ends this PE: its exit handlers run to their end
    // and its output is written all the same, within the time that the launcher gives.
    if library::of(call).world.n_pes() > 1 {
        // SAFETY: to ignore a signal installs no handler.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    }
    SETUP.global_exit.store(status.into(), Ordering::Relaxed);
    // SAFETY: it has no precondition; the program has requested its end.
    unsafe { libc::exit(status) }
}

/// `shmem_my_pe`.
#[inline(always)]
pub(crate) unsafe fn my_pe(call: Call) -> c_int {
    // SAFETY: only initialisation and finalisation write it, and they run concurrently with no other call.
    let me = unsafe { JOB.me };
    if me < 0 { library::of(call).me() as c_int } else { me }
}

/// `shmem_n_pes`.
#[inline(always)]
pub(crate) unsafe fn n_pes(call: Call) -> c_int {
    // SAFETY: only initialisation and finalisation write it, and they run concurrently with no other call.
    let n_pes = unsafe { JOB.n_pes };
    if n_pes < 0 { library::of(call).world.n_pes() as c_int } else { n_pes }
}

/// `shmem_pe_accessible`: 1 for a PE of the job, 0 for any other number.
pub(crate) unsafe fn pe_accessible(call: Call, pe: c_int) -> c_int {
    let n_pes = library::of(call).world.n_pes();
    c_int::from(usize::try_from(pe).is_ok_and(|pe| pe < n_pes))
}

/// `shmem_addr_accessible`: 1 for a symmetric address and a PE of the job.
pub(crate) unsafe fn addr_accessible(call: Call, addr: *const c_void, pe: c_int) -> c_int {
    let library = library::of(call);
    let is_symmetric = library.find(addr as usize, 1).is_some();
    // SAFETY: the function has no precondition; it checks its arguments itself.
    c_int::from(is_symmetric && unsafe { pe_accessible(call, pe) } == 1)
}

/// `shmem_ptr`: the address at which a symmetric object of another PE is mapped; null if it is not mapped.
pub(crate) unsafe fn ptr(call: Call, dest: *const c_void, pe: c_int) -> *mut c_void {
    let library = library::of(call);
    let pe = usize::try_from(pe).ok().filter(|&pe| pe < library.world.n_pes());
    pe.and_then(|pe| library.mapped(dest, pe)).unwrap_or(std::ptr::null_mut())
}

/// `shmem_info_get_version`.
pub(crate) unsafe fn info_get_version(call: Call, major: *mut c_int, minor: *mut c_int) {
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        output(call, "major", major).write(VERSION.0);
        output(call, "minor", minor).write(VERSION.1);
    }
}

/// `shmem_info_get_name`.
pub(crate) unsafe fn info_get_name(call: Call, name: *mut c_char) {
    let (bytes, name) = (VENDOR.to_bytes_with_nul(), output(call, "name", name));
    // SAFETY: the caller provides SHMEM_MAX_NAME_LEN characters, more than this name has.
    unsafe { name.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
}
