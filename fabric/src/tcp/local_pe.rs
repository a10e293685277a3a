//! A PE of this process: its memory regions, its inbox, and the doorbell that other threads ring.

use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::types::{Event, Key, Pe};
use parking_lot::{Mutex, RwLock};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

/// A registered memory region.
#[derive(Clone, Copy)]
struct Region {
    key: Key,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the registering PE has promised that the memory outlives the endpoint; it is accessed by `copy`,
// atomics and the system only.
unsafe impl Send for Region {}
// SAFETY: the memory is shared with other PEs anyway, and accessed in the same ways from any thread.
unsafe impl Sync for Region {}

/// The bit of the keys of memory that is registered for a time. Their lowest bits are the offset of its start
/// in its page.
const EXPOSED_KEYS: Key = 1 << 63;
const PAGE_BITS: u32 = 12;

/// Where a place in another PE's region lies in its page. A region that is not exposed begins with a page.
pub(super) fn offset_in_page(key: Key, offset: u64) -> usize {
    let start = if key & EXPOSED_KEYS == 0 { 0 } else { key };
    (start.wrapping_add(offset) % (1 << PAGE_BITS)) as usize
}

/// A message in the inbox: sender, header, payload.
type Message = (Pe, u64, Vec<u8>);

/// Limits of a full inbox.
const INBOX_MESSAGES: usize = 4096;
const INBOX_BYTES: usize = 4 << 20;

/// A PE of this process.
pub(super) struct LocalPe {
    /// `None` once the endpoint is closed.
    regions: RwLock<Option<Vec<Region>>>,
    /// How often the regions have changed.
    changes: AtomicU64,
    /// How often memory was exposed.
    exposures: AtomicU64,
    inbox: Mutex<Inbox>,
    has_mail: AtomicBool,
    /// An eventfd. It is readable after another thread has delivered something to this PE.
    doorbell: OwnedFd,
    /// Whether a thread writes to the doorbell, or has written and the PE has not read it.
    has_rung: AtomicBool,
}

impl Region {
    #[inline]
    fn place(&self, offset: u64, bytes: usize) -> Option<*mut u8> {
        let offset = usize::try_from(offset).ok()?;
        let is_inside = bytes <= self.bytes && offset <= self.bytes - bytes;
        // SAFETY: the place lies inside the region, which was registered as valid, or just behind.
        is_inside.then(|| unsafe { self.start.as_ptr().add(offset) })
    }
}

/// A copy of a region, which is valid until the regions of its PE change.
#[derive(Default)]
pub(super) struct CachedRegion {
    slot: u16,
    changes: u64,
    region: Option<Region>,
}

#[derive(Default)]
struct Inbox {
    messages: VecDeque<Message>,
    bytes: usize,
    /// Whether the endpoint is closed: messages are dropped.
    is_closed: bool,
}

impl LocalPe {
    pub(super) fn open() -> io::Result<LocalPe> {
        let doorbell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let [has_mail, has_rung] = [false; 2].map(AtomicBool::new);
        let (regions, inbox) = (RwLock::new(Some(Vec::new())), Mutex::default());
        let [changes, exposures] = [1, 0].map(AtomicU64::new);
        Ok(LocalPe { regions, changes, exposures, inbox, has_mail, doorbell, has_rung })
    }

    /// Wakes the PE after another thread has delivered something to it.
    pub(super) fn ring(&self) {
        // SYNC POINT tcp doorbell: releases what was delivered.
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            let _ = rustix::io::write(&self.doorbell, &1_u64.to_ne_bytes());
        }
    }

    /// Hands all messages of the inbox to `handle`. Returns their number.
    #[inline]
    pub(super) fn drain_inbox(&self, handle: &mut dyn FnMut(Event<'_>)) -> usize {
        if !self.has_mail.load(Ordering::Relaxed) {
            return 0;
        }
        let messages = {
            let mut inbox = self.inbox.lock();
            self.has_mail.store(false, Ordering::Relaxed);
            inbox.bytes = 0;
            std::mem::take(&mut inbox.messages)
        };
        for (from, header, payload) in &messages {
            handle(Event::Message { from: *from, header: *header, payload });
        }
        messages.len()
    }

    /// Registers a memory region of an open endpoint. Returns `false` if the key is taken.
    pub(super) fn register(&self, key: Key, start: NonNull<u8>, bytes: usize) -> bool {
        let mut regions = self.regions.write();
        let Some(regions) = &mut *regions else { return false };
        let is_free = regions.iter().all(|region| region.key != key);
        if is_free {
            regions.push(Region { key, start, bytes });
            self.note_change();
        }
        is_free
    }

    /// Registers memory for a time. Returns its key, which no other region of this PE has had.
    pub(super) fn expose(&self, start: NonNull<u8>, bytes: usize) -> Key {
        let number = self.exposures.fetch_add(1, Ordering::Relaxed);
        let key = EXPOSED_KEYS | number << PAGE_BITS | (start.as_ptr() as u64 % (1 << PAGE_BITS));
        self.register(key, start, bytes);
        key
    }

    /// Ends the registration of memory.
    pub(super) fn conceal(&self, key: Key) {
        if let Some(regions) = &mut *self.regions.write() {
            regions.retain(|region| region.key != key);
            self.note_change();
        }
    }

    /// Makes copies of regions invalid. The regions are locked for writing.
    fn note_change(&self) {
        // SYNC POINT regions: releases the change.
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The address of `bytes` bytes at an offset of a region. It is null if the endpoint is closed. `None` if
    /// the region does not have these bytes.
    pub(super) fn place(&self, key: Key, offset: u64, bytes: usize) -> Option<*mut u8> {
        self.place_anew(&mut CachedRegion::default(), (0, key), offset, bytes)
    }

    /// The same, of the PE `slot` of the process. It needs no lock if the region is the one that this copy
    /// was made of, and none has changed since.
    #[inline]
    pub(super) fn cached_place(
        &self,
        cached: &mut CachedRegion,
        (slot, key): (u16, Key),
        offset: u64,
        bytes: usize,
    ) -> Option<*mut u8> {
        // SYNC POINT regions: acquires the changes that were made before.
        let changes = self.changes.load(Ordering::Acquire);
        if let Some(region) = &cached.region
            && (cached.slot, cached.changes, region.key) == (slot, changes, key)
        {
            return region.place(offset, bytes);
        }
        self.place_anew(cached, (slot, key), offset, bytes)
    }

    #[cold]
    fn place_anew(
        &self,
        cached: &mut CachedRegion,
        (slot, key): (u16, Key),
        offset: u64,
        bytes: usize,
    ) -> Option<*mut u8> {
        let regions = self.regions.read();
        let Some(regions) = &*regions else { return Some(std::ptr::null_mut()) };
        let region = *regions.iter().find(|region| region.key == key)?;
        // The regions are locked, so this is the number of their last change.
        let changes = self.changes.load(Ordering::Relaxed);
        *cached = CachedRegion { slot, changes, region: Some(region) };
        region.place(offset, bytes)
    }

    /// Closes the endpoint: no region is registered any more, and messages are dropped.
    pub(super) fn close(&self) {
        let mut regions = self.regions.write();
        *regions = None;
        self.note_change();
        drop(regions);
        *self.inbox.lock() = Inbox { is_closed: true, ..Inbox::default() };
    }

    /// Adds a message to the inbox. Returns `false` if the inbox is full.
    pub(super) fn push_message(&self, from: Pe, header: u64, payload: &[u8]) -> bool {
        let mut inbox = self.inbox.lock();
        if inbox.is_closed {
            return true;
        }
        if inbox.messages.len() >= INBOX_MESSAGES || inbox.bytes >= INBOX_BYTES {
            return false;
        }
        inbox.bytes += payload.len();
        inbox.messages.push_back((from, header, payload.to_vec()));
        // The lock orders the messages; this is a hint.
        self.has_mail.store(true, Ordering::Relaxed);
        drop(inbox);
        self.ring();
        true
    }

    /// Whether the inbox has messages.
    pub(super) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Relaxed)
    }

    /// The descriptor of the doorbell.
    pub(super) fn doorbell(&self) -> RawFd {
        self.doorbell.as_raw_fd()
    }

    /// Resets the doorbell. The PE looks for deliveries afterwards.
    pub(super) fn reset_doorbell(&self) {
        // The mark stays until the write that belongs to it was read: a ring that finds it writes nothing.
        if self.has_rung.load(Ordering::Relaxed) && rustix::io::read(&self.doorbell, &mut [0; 8]).is_ok() {
            // SYNC POINT tcp doorbell: acquires what was delivered before rings that have found the mark.
            self.has_rung.swap(false, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::sync::Barrier;

    #[test]
    fn a_copied_region_is_used_only_while_it_is_registered() {
        let [pe, other] = [(); 2].map(|()| LocalPe::open().unwrap());
        let mut memory = [0_u64; 8];
        let start = NonNull::from(&mut memory).cast::<u8>();
        let (mut cached, begin) = (CachedRegion::default(), start.as_ptr());
        assert!(pe.register(0, start, 64) && other.register(0, start, 8));
        for _ in 0..2 {
            let mut place = |pe: &LocalPe, slot, key, offset, bytes| {
                pe.cached_place(&mut cached, (slot, key), offset, bytes)
            };
            assert_eq!(place(&pe, 0, 0, 8, 56), Some(begin.wrapping_add(8)));
            assert_eq!(place(&pe, 0, 0, 8, 57), None, "beyond the end");
            assert_eq!(place(&pe, 0, 0, u64::MAX, 8), None);
            assert_eq!(place(&pe, 0, 1, 0, 8), None, "another key");
            assert_eq!(place(&other, 1, 0, 8, 56), None, "another PE of the process");
        }
        let key = pe.expose(start, 64);
        assert_eq!(pe.cached_place(&mut cached, (0, key), 0, 64), Some(begin));
        assert_eq!(offset_in_page(key, 8), (begin as usize + 8) % 4096);
        assert_eq!(offset_in_page(0, 4096 + 8), 8, "a region that begins with a page");
        assert_ne!(pe.expose(start, 64), key, "each time another key");
        pe.conceal(key);
        assert_eq!(pe.cached_place(&mut cached, (0, key), 0, 64), None, "it is registered no more");
        assert_eq!(pe.cached_place(&mut cached, (0, 0), 0, 64), Some(begin));
        pe.close();
        assert_eq!(pe.cached_place(&mut cached, (0, 0), 0, 64), Some(std::ptr::null_mut()), "it is closed");
    }

    /// A ring that finds the mark writes nothing: it needs the write of the ring that has set it.
    #[test]
    fn a_doorbell_that_is_marked_is_readable() {
        const ROUNDS: usize = 20_000;
        let (pe, barrier) = (LocalPe::open().unwrap(), Barrier::new(2));
        let is_readable = || {
            let mut fds = [PollFd::new(&pe.doorbell, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    barrier.wait();
                    pe.ring();
                    barrier.wait();
                }
            });
            for round in 0..ROUNDS {
                barrier.wait();
                (0..8).for_each(|_| pe.reset_doorbell());
                barrier.wait();
                let is_marked = pe.has_rung.load(Ordering::Relaxed);
                assert!(!is_marked || is_readable(), "in round {round}, nothing wakes the PE");
                pe.reset_doorbell();
                assert!(!is_readable(), "in round {round}, it stays readable");
            }
        });
    }
}
