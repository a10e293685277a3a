//! Reports of unmapped memory by the system (`userfaultfd(2)`): the pages of the watched ranges that were
//! unmapped. There is never a page fault: ranges are registered for write protection, and no page is ever
//! protected.
//!
//! Invariant: the system lets a thread that unmaps memory continue when the event was read. `is_telling` is
//! set before that, and cleared when all ranges were reported. So a thread that runs after an unmapping, and
//! finds `is_telling` clear, knows of the unmapping. A thread that gets the addresses again before that finds
//! that they are not watched. The thread that reads the events never waits for a lock while there may be
//! events, because the holder of the lock may be the thread that unmaps. It allocates and frees nothing,
//! because it must not unmap memory itself.

use super::registration::PAGE_BYTES;
use crate::sync::{AtomicBool, Ordering};
use crate::threads::without_signals;
use libc::{c_int, c_ulong};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Takes ranges that were unmapped; `false` if it cannot now.
pub(super) type Tell = Box<dyn Fn(&[Range<usize>]) -> bool + Send>;

const UFFD_USER_MODE_ONLY: c_int = 1;
const UFFD_API: u64 = 0xAA;
const UFFD_FEATURE_PAGEFAULT_FLAG_WP: u64 = 1 << 0;
const UFFD_FEATURE_EVENT_REMAP: u64 = 1 << 2;
const UFFD_FEATURE_EVENT_REMOVE: u64 = 1 << 3;
const UFFD_FEATURE_EVENT_UNMAP: u64 = 1 << 6;
const UFFDIO_API: c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: c_ulong = 0xc020_aa00;
const UFFDIO_UNREGISTER: c_ulong = 0x8010_aa01;
const UFFDIO_WRITEPROTECT: c_ulong = 0xc018_aa06;
const UFFDIO_REGISTER_MODE_WP: u64 = 1 << 1;
const UFFD_EVENT_REMAP: u8 = 0x14;
const UFFD_EVENT_REMOVE: u8 = 0x15;
const UFFD_EVENT_UNMAP: u8 = 0x16;
/// Words of an event: its kind, and up to three arguments.
const EVENT_WORDS: usize = 4;
/// Events that are read at a time.
const EVENTS: usize = 16;

/// The watch over mappings; it ends when this is dropped.
pub(super) struct Unmapping {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    events: OwnedFd,
    /// Readable when the watch ends.
    end: OwnedFd,
    is_telling: AtomicBool,
}

impl Unmapping {
    /// Begins to watch; `None` if the system does not permit it.
    pub(super) fn watch(tell: Tell) -> Option<Unmapping> {
        // SAFETY: the call takes two numbers and returns a new descriptor, or -1.
        let fd = unsafe {
            let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | UFFD_USER_MODE_ONLY;
            libc::syscall(libc::SYS_userfaultfd, flags) as c_int
        };
        if fd < 0 {
            return None;
        }
        // SAFETY: the descriptor is new, and no other value owns it.
        let events = unsafe { OwnedFd::from_raw_fd(fd) };
        let features = UFFD_FEATURE_PAGEFAULT_FLAG_WP
            | UFFD_FEATURE_EVENT_REMAP
            | UFFD_FEATURE_EVENT_REMOVE
            | UFFD_FEATURE_EVENT_UNMAP;
        if !request(&events, UFFDIO_API, &mut [UFFD_API, features, 0]) {
            return None;
        }
        let end = eventfd(0, EventfdFlags::CLOEXEC).ok()?;
        let shared = Arc::new(Shared { events, end, is_telling: AtomicBool::new(false) });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("pelago-unmap".into());
        // A handler of the program might unmap memory, and wait for this thread.
        let thread = without_signals(|| thread.spawn(move || theirs.read_and_tell(&tell))).ok()?;
        Some(Unmapping { shared, thread: Some(thread) })
    }

    /// Watches a range of whole pages as well; `false` if it is memory of a kind that cannot be watched.
    pub(super) fn add(&self, range: &Range<usize>) -> bool {
        let mut arguments = [range.start as u64, range.len() as u64, UFFDIO_REGISTER_MODE_WP, 0];
        request(&self.shared.events, UFFDIO_REGISTER, &mut arguments)
    }

    /// Stops watching a range. Other ranges that overlap it are not watched there any more.
    pub(super) fn remove(&self, range: &Range<usize>) {
        // If it is unmapped already there is nothing to do.
        request(&self.shared.events, UFFDIO_UNREGISTER, &mut [range.start as u64, range.len() as u64]);
    }

    /// Whether the first and last page of a range are still watched. The system may reuse addresses before it
    /// reports that they were unmapped.
    pub(super) fn still_watches(&self, range: &Range<usize>) -> bool {
        [range.start, range.end - PAGE_BYTES].into_iter().all(|page| {
            // Permitting writes to a page that is not protected has no effect, but fails if the page is not
            // watched.
            request(&self.shared.events, UFFDIO_WRITEPROTECT, &mut [page as u64, PAGE_BYTES as u64, 0])
        })
    }

    /// Whether unmapped ranges are being reported.
    pub(super) fn is_telling(&self) -> bool {
        // SYNC POINT unmapping: acquires the reported ranges.
        self.shared.is_telling.load(Ordering::SeqCst)
    }

    /// Waits until all unmapped ranges were reported.
    pub(super) fn await_told(&self) {
        while self.is_telling() {
            rustix::thread::sched_yield();
        }
    }
}

/// A request to the system about mappings; its arguments are words.
fn request(events: &OwnedFd, code: c_ulong, arguments: &mut [u64]) -> bool {
    // SAFETY: the arguments are as long as the code of the request says, and the system writes only there.
    unsafe { libc::ioctl(events.as_raw_fd(), code, arguments.as_mut_ptr()) == 0 }
}

impl Shared {
    fn read_and_tell(&self, tell: &Tell) {
        loop {
            let mut fds =
                [&self.end, &self.events].map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN));
            // After an interruption the loop looks again.
            let _ = poll(&mut fds, None);
            if !fds[0].revents().is_empty() {
                return;
            }
            self.is_telling.store(true, Ordering::SeqCst);
            let mut gone = Gone::default();
            self.read(&mut gone);
            while !tell(gone.ranges()) {
                self.read(&mut gone);
                rustix::thread::sched_yield();
            }
            // SYNC POINT unmapping: releases the reported ranges.
            self.is_telling.store(false, Ordering::SeqCst);
        }
    }

    /// Reads all events that are available.
    fn read(&self, gone: &mut Gone) {
        loop {
            let mut events = [[0_u64; EVENT_WORDS]; EVENTS];
            // SAFETY: the buffer is a local variable of the given length; any bits are numbers.
            let bytes = unsafe {
                let (room, bytes) = (events.as_mut_ptr().cast(), size_of_val(&events));
                libc::read(self.events.as_raw_fd(), room, bytes)
            };
            let count = usize::try_from(bytes).unwrap_or(0) / size_of::<[u64; EVENT_WORDS]>();
            events.iter().take(count).filter_map(range_of).for_each(|range| gone.add(range));
            if count < EVENTS {
                return;
            }
        }
    }
}

/// Unmapped ranges, in a fixed array; if there are too many, one range that covers all addresses.
struct Gone {
    ranges: [Range<usize>; EVENTS],
    count: usize,
}

impl Default for Gone {
    fn default() -> Gone {
        Gone { ranges: [const { 0..0 }; EVENTS], count: 0 }
    }
}

impl Gone {
    fn add(&mut self, range: Range<usize>) {
        match self.ranges.get_mut(self.count) {
            Some(free) => {
                *free = range;
                self.count += 1;
            }
            None => self.ranges[0] = 0..usize::MAX,
        }
    }

    fn ranges(&self) -> &[Range<usize>] {
        &self.ranges[..self.count]
    }
}

/// The unmapped range of an event.
fn range_of(event: &[u64; EVENT_WORDS]) -> Option<Range<usize>> {
    let [kind, first, second, third] = *event;
    match kind as u8 {
        UFFD_EVENT_UNMAP | UFFD_EVENT_REMOVE => Some(first as usize..second as usize),
        UFFD_EVENT_REMAP => Some(first as usize..first as usize + third as usize),
        _ => None,
    }
}

impl Drop for Unmapping {
    fn drop(&mut self) {
        // The write cannot block: the counter is 0, and this is the only write.
        let _ = rustix::io::write(&self.shared.end, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // The thread returns no value.
            let _ = thread.join();
        }
    }
}
