//! The system calls of the switch of static data.

use rustix::mm::{MapFlags, MremapFlags, ProtFlags};
use std::fs;
use std::ops::Range;
use std::ptr::null_mut;

/// Size of a page.
pub(super) fn page_bytes() -> usize {
    // SAFETY: the C library's function takes any number and writes nothing.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// The file of the program, for messages.
pub(super) fn program() -> String {
    fs::read_link("/proc/self/exe").map_or("a program".to_owned(), |path| path.display().to_string())
}

/// Makes whole pages of this PE's shared memory zero. They are given back to the system, unless they are
/// registered with a network.
pub(super) fn clear(start: *mut u8, bytes: usize, is_registered: bool) {
    // SAFETY: the pages are those of a fresh array, which nothing has used yet.
    unsafe {
        let advice = rustix::mm::Advice::LinuxRemove;
        if is_registered || rustix::mm::madvise(start.cast(), bytes, advice).is_err() {
            start.write_bytes(0, bytes);
        }
    }
}

/// The signals that were blocked before.
pub(super) struct Signals(libc::sigset_t);

/// Blocks all signals of this thread.
pub(super) fn block_signals() -> Signals {
    // SAFETY: any bytes are a valid set of signals; both are locals.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        Signals(before)
    }
}

/// Unblocks the signals that were not blocked before.
pub(super) fn unblock_signals(before: &Signals) {
    // SAFETY: the set was filled in by the system.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before.0, null_mut()) };
}

/// Makes sure that shared memory can be mapped a second time. Valgrind, for example, does not permit it.
pub(super) fn check_second_mapping() -> Result<(), String> {
    let (bytes, access) = (page_bytes(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: these are fresh mappings at addresses of the system's choice, unmapped before any other code
    // has their addresses; the second one exists if the system returns success.
    let outcome = unsafe {
        rustix::mm::mmap_anonymous(null_mut(), bytes, access, MapFlags::SHARED).and_then(|first| {
            let second = rustix::mm::mremap(first, 0, bytes, MremapFlags::MAYMOVE);
            let _ = rustix::mm::munmap(first, bytes);
            rustix::mm::munmap(second?, bytes)
        })
    };
    outcome.map_err(|error| {
        format!("the system, or the tool that the program runs under, maps no memory twice (mremap: {error})")
    })
}

/// Makes sure that all pages are plain memory of this process that it may read and write: no other memory was
/// mapped in their place, and they were not protected. `is_shared` is true if the library itself has mapped
/// them before.
pub(super) fn check_plain(pages: &Range<usize>, is_shared: bool) -> Result<(), String> {
    let maps = fs::read_to_string("/proc/self/maps").map_err(|e| format!("/proc/self/maps: {e}"))?;
    match uncovered(&maps, pages, is_shared) {
        None => Ok(()),
        Some(address) => {
            Err(format!("the program has protected its variables at {address:#x}, or mapped something there"))
        }
    }
}

/// The first address of a range that a list of mappings does not show as plain memory.
fn uncovered(maps: &str, pages: &Range<usize>, is_shared: bool) -> Option<usize> {
    let mut next = pages.start;
    for line in maps.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some((start, end)), Some(access)) =
            (fields.next().and_then(|f| f.split_once('-')), fields.next())
        else {
            continue;
        };
        let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        let (start, end) = (number(start), number(end));
        let is_plain = access == "rw-p" || (is_shared && access == "rw-s") || access == "rwxp";
        if is_plain && start <= next && next < end {
            next = end;
        }
    }
    (next < pages.end).then_some(next)
}
