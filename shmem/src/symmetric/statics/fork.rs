//! Children of `fork` have static data of their own, although those of their parent are shared memory.
//!
//! Invariant: before a fork the forking thread copies the data; the child maps the copy in their place before
//! other code of the program runs in it, and the parent drops the copy. `library/fork.rs` registers the
//! functions.
//!
//! `posix_spawn`, `system`, `popen` and `vfork` do not run these functions and do not need them. A child that
//! is created by the system call directly, or by `_Fork`, shares the variables of its parent.

use super::copy::copy_pages;
use super::extent::{Extent, Run};
use crate::base::fault::fail;
use pelago::binding::thread_count;
use pelago::sync::{AtomicUsize, Ordering};
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};
use std::cell::Cell;
use std::ptr::null_mut;

/// The data that are copied.
struct Watched {
    runs: Vec<Run>,
    bytes: usize,
    is_self_contained: bool,
}

/// The address of the `Watched`; 0 while no data are shared. It is never freed, as a fork may be in progress.
static WATCHED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's copy, between the two sides of a fork.
    static COPY: Cell<*mut u8> = const { Cell::new(null_mut()) };
}

/// From now on the static data are copied at a fork.
pub(super) fn watch(extent: &Extent) {
    let (runs, bytes) = (extent.runs().to_vec(), extent.len_bytes());
    let watched = Watched { runs, bytes, is_self_contained: extent.is_self_contained() };
    // SYNC POINT watched: releases the data that it points to.
    WATCHED.store(Box::into_raw(Box::new(watched)).expose_provenance(), Ordering::Release);
}

/// Whether the static data of this process are shared memory.
pub(super) fn is_watched() -> bool {
    watched().is_some()
}

fn watched() -> Option<&'static Watched> {
    // SYNC POINT watched: acquires the data that it points to.
    let address: *const Watched = std::ptr::with_exposed_provenance(WATCHED.load(Ordering::Acquire));
    // SAFETY: it is null, or was leaked by `watch`.
    unsafe { address.as_ref() }
}

/// Runs before a fork: copies the data.
pub(crate) unsafe extern "C" fn before() {
    let Some(watched) = watched() else { return };
    if watched.is_self_contained && thread_count().is_ok_and(|count| count > 1) {
        fail(
            "fork",
            "in a program that is linked with -static, which has several threads: the child would change the \
             threads of its parent. Link the C library dynamically, or use posix_spawn",
        );
    }
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
    // SAFETY: a fresh mapping at an address of the system's choice touches no memory of ours.
    let copy = unsafe { rustix::mm::mmap_anonymous(null_mut(), watched.bytes, access, flags) };
    let Ok(copy) = copy else { return };
    let copy: *mut u8 = copy.cast();
    for run in &watched.runs {
        // SAFETY: the pages are those of the program's variables, and the copy is fresh and as long as all
        // of them.
        unsafe { copy_pages(&run.pages, run.zeros, copy.wrapping_add(run.offset)) };
    }
    COPY.set(copy);
}

/// Runs in the parent after a fork: drops the copy.
pub(crate) unsafe extern "C" fn in_parent() {
    let (Some(watched), copy) = (watched(), COPY.replace(null_mut())) else { return };
    if !copy.is_null() {
        // SAFETY: it was mapped by `before`, and no other code has its address.
        let _ = unsafe { rustix::mm::munmap(copy.cast(), watched.bytes) };
    }
}

/// Maps the copy in the place of the data.
///
/// # Safety
/// This process is the child of a fork, and no other code of the program has run in it.
pub(crate) unsafe fn give_own_data() {
    let (Some(watched), copy) = (watched(), COPY.replace(null_mut())) else { return };
    let has_moved = |run: &Run| {
        let (from, bytes) = (copy.wrapping_add(run.offset), run.pages.len());
        // SAFETY: the copy has these pages; the child has no other thread that could use the variables.
        let moved = unsafe {
            let to = run.pages.start as *mut _;
            rustix::mm::mremap_fixed(from.cast(), bytes, bytes, MremapFlags::MAYMOVE, to)
        };
        moved.is_ok()
    };
    if copy.is_null() || !watched.runs.iter().all(has_moved) {
        // If this process continued, it would change the variables of its parent.
        let words = b"fork: no memory for a copy of the program's static data: the child ends\n";
        // SAFETY: the message is a constant byte string.
        unsafe { libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len()) };
        // SAFETY: it ends the process without running any code of the program.
        unsafe { libc::_exit(1) };
    }
    WATCHED.store(0, Ordering::Relaxed);
}
