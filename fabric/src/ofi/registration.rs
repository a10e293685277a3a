//! The cache of registered memory: buffers of the program at any address, for providers that require all
//! memory to be registered. Registration takes far longer than a transfer, so memory stays registered for a
//! while. Source: C. Bell, D. Bonachea, A New DMA Registration Strategy for Pinning-Based High
//! Performance Networks (firehose); the new part here is that the system reports unmapped memory
//! (`unmapping.rs`).
//!
//! Invariant: memory in use is registered. Idle registrations are bounded in number and bytes; the least
//! recently used one is closed first. A registration whose pages were unmapped since is never lent, and is
//! closed at the next call that lends. If the system does not report unmapped memory, no idle registration is
//! kept.

use super::unmapping::Unmapping;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Registrations that are kept.
const KEPT_MAX: usize = 256;
/// Bytes that these registrations cover together.
const KEPT_BYTES_MAX: usize = 256 << 20;
/// A registered range begins and ends with pages of this size.
pub(super) const PAGE_BYTES: usize = 4096;

/// A way to register memory.
pub(super) trait Register: Send + Sync + 'static {
    /// Memory that is registered until this is dropped.
    type Region: Send + Sync;
    type Error;

    /// Registers memory that transfers may read and write.
    fn register(&self, range: Range<usize>) -> Result<Self::Region, Self::Error>;

    /// Registers memory that transfers may only read, as the program may.
    fn register_source(&self, range: Range<usize>) -> Result<Self::Region, Self::Error>;

    /// Whether transfers may write there.
    fn is_target(region: &Self::Region) -> bool;
}

/// A cache of registrations.
pub(super) struct Registrations<R: Register> {
    how: R,
    kept: Arc<Mutex<Kept<R::Region>>>,
    /// Reports unmapped ranges to `kept`; `None` if the system does not report them.
    unmapping: Option<Unmapping>,
}

/// Registrations that were removed from the cache, with their ranges.
type Gone<T> = Vec<(Range<usize>, Arc<T>)>;

/// The registrations, by their first byte.
struct Kept<T> {
    regions: BTreeMap<usize, Entry<T>>,
    bytes: usize,
    /// Counts the calls that have lent a registration.
    clock: u64,
    has_stale: bool,
}

struct Entry<T> {
    end: usize,
    lent_at: u64,
    /// Whether some of its pages were unmapped.
    is_stale: bool,
    region: Arc<T>,
}

impl<R: Register> Registrations<R> {
    pub(super) fn new(how: R) -> Registrations<R> {
        let kept =
            Arc::new(Mutex::new(Kept { regions: BTreeMap::new(), bytes: 0, clock: 0, has_stale: false }));
        let theirs = Arc::clone(&kept);
        let unmapping = Unmapping::watch(Box::new(move |gone| match theirs.try_lock() {
            Ok(mut kept) => {
                kept.mark(gone);
                true
            }
            Err(TryLockError::Poisoned(_)) => true,
            Err(TryLockError::WouldBlock) => false,
        }));
        Registrations { how, kept, unmapping }
    }

    /// The registration of a range, for transfers that write there if it is a target. It is in use as long as
    /// the result is held.
    ///
    /// # Errors
    /// If the memory cannot be registered.
    pub(super) fn lend(
        &self,
        start: usize,
        bytes: usize,
        is_target: bool,
    ) -> Result<Arc<R::Region>, R::Error> {
        let range = start / PAGE_BYTES * PAGE_BYTES..(start + bytes).next_multiple_of(PAGE_BYTES);
        let Some(unmapping) = &self.unmapping else {
            return self.register(range, is_target).map(Arc::new);
        };
        let serves = |region: &R::Region| !is_target || R::is_target(region);
        let (found, gone) = loop {
            unmapping.await_told();
            let answer = self.kept().find(&range, serves);
            // Ranges that were unmapped before this call are known, unless they are being reported now.
            if !unmapping.is_telling() {
                break answer;
            }
        };
        self.close(gone);
        match found {
            Some(region) if unmapping.still_watches(&range) => return Ok(region),
            // Another thread is unmapping this range, and its event has not been read.
            Some(_) => {
                let mut kept = self.kept();
                kept.mark(std::slice::from_ref(&range));
                let stale = kept.remove_stale();
                drop(kept);
                self.close(stale);
            }
            None => {}
        }
        let is_watched = unmapping.add(&range);
        let region = Arc::new(self.register(range.clone(), is_target)?);
        if is_watched {
            let mut kept = self.kept();
            let gone = kept.keep(range.clone(), Arc::clone(&region), serves);
            // A thread that has closed another registration may have ended the watch over a part of this one.
            unmapping.add(&range);
            drop(kept);
            self.close(gone);
        }
        Ok(region)
    }

    /// Registers a range. Idle registrations may be the reason that it cannot be.
    fn register(&self, range: Range<usize>, is_target: bool) -> Result<R::Region, R::Error> {
        self.how.register(range.clone()).or_else(|_| {
            let idle = self.kept().remove_idle();
            self.close(idle);
            let again = self.how.register(range.clone());
            again.or_else(|error| match is_target {
                true => Err(error),
                false => self.how.register_source(range).map_err(|_| error),
            })
        })
    }

    /// Closes registrations. Pages of other ones stay watched. The lock is not held at the end, because
    /// closing may unmap memory.
    fn close(&self, gone: Gone<R::Region>) {
        if let Some(unmapping) = &self.unmapping {
            let kept = self.kept();
            gone.iter().flat_map(|(range, _)| kept.uncovered(range)).for_each(|part| unmapping.remove(&part));
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept<R::Region>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Register> Drop for Registrations<R> {
    /// All registrations are closed here, while the watch continues, because its thread must not close any.
    fn drop(&mut self) {
        let all = self.kept().remove_all();
        self.close(all);
    }
}

impl<T> Kept<T> {
    /// The registration of a range, if there is one, and the registrations that must be closed.
    fn find(&mut self, range: &Range<usize>, serves: impl Fn(&T) -> bool) -> (Option<Arc<T>>, Gone<T>) {
        let gone = self.remove_stale();
        self.clock += 1;
        let clock = self.clock;
        let mut before = self.regions.range_mut(..=range.start).rev();
        let found = before.find(|(_, entry)| entry.end >= range.end && serves(&entry.region));
        let found = found.map(|(_, entry)| {
            entry.lent_at = clock;
            Arc::clone(&entry.region)
        });
        (found, gone)
    }

    /// Keeps a registration, and returns the registrations that were removed to make room for it.
    fn keep(&mut self, range: Range<usize>, region: Arc<T>, serves: impl Fn(&T) -> bool) -> Gone<T> {
        // If two begin at the same address, the longer one stays.
        let is_longer = |entry: &Entry<T>| !entry.is_stale && entry.end >= range.end && serves(&entry.region);
        if self.regions.get(&range.start).is_some_and(is_longer) {
            return Vec::new();
        }
        let mut gone: Vec<_> = self.remove(range.start).into_iter().collect();
        self.clock += 1;
        self.bytes += range.len();
        self.regions
            .insert(range.start, Entry { end: range.end, lent_at: self.clock, is_stale: false, region });
        while self.regions.len() > KEPT_MAX || self.bytes > KEPT_BYTES_MAX {
            let idle = self.regions.iter().filter(|(_, entry)| Arc::strong_count(&entry.region) == 1);
            let Some((&oldest, _)) = idle.min_by_key(|(_, entry)| entry.lent_at) else { break };
            gone.extend(self.remove(oldest));
        }
        gone
    }

    fn remove(&mut self, start: usize) -> Option<(Range<usize>, Arc<T>)> {
        let entry = self.regions.remove(&start)?;
        self.bytes -= entry.end - start;
        Some((start..entry.end, entry.region))
    }

    fn remove_all(&mut self) -> Gone<T> {
        self.remove_if(|_| true)
    }

    /// Removes the registrations that are not in use.
    fn remove_idle(&mut self) -> Gone<T> {
        self.remove_if(|entry| Arc::strong_count(&entry.region) == 1)
    }

    fn remove_if(&mut self, is_meant: impl Fn(&Entry<T>) -> bool) -> Gone<T> {
        let meant = self.regions.iter().filter(|(_, entry)| is_meant(entry));
        let starts: Vec<usize> = meant.map(|(&start, _)| start).collect();
        starts.into_iter().filter_map(|start| self.remove(start)).collect()
    }

    /// Marks the registrations that have pages in one of these ranges. This must not allocate or free memory:
    /// that might unmap memory, and the calling thread is the one that reads the events of unmapping.
    fn mark(&mut self, gone: &[Range<usize>]) {
        for (&start, entry) in &mut self.regions {
            let is_gone = gone.iter().any(|range| start < range.end && range.start < entry.end);
            entry.is_stale |= is_gone;
            self.has_stale |= is_gone;
        }
    }

    /// The parts of a range that no registration has.
    fn uncovered(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let (mut parts, mut at) = (Vec::new(), range.start);
        for (&start, entry) in self.regions.range(..range.end) {
            if start > at {
                parts.push(at..start);
            }
            at = at.max(entry.end);
        }
        if at < range.end {
            parts.push(at..range.end);
        }
        parts
    }

    fn remove_stale(&mut self) -> Gone<T> {
        match std::mem::take(&mut self.has_stale) {
            true => self.remove_if(|entry| entry.is_stale),
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicUsize, Ordering};

    /// Counts the registrations, and those that are open.
    #[derive(Default)]
    struct Counting {
        total: Arc<AtomicUsize>,
        open: Arc<AtomicUsize>,
    }

    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    impl Register for Counting {
        type Region = Counted;
        type Error = ();

        fn register(&self, _range: Range<usize>) -> Result<Counted, ()> {
            self.total.fetch_add(1, Ordering::Relaxed);
            self.open.fetch_add(1, Ordering::Relaxed);
            Ok(Counted(Arc::clone(&self.open)))
        }

        fn register_source(&self, _range: Range<usize>) -> Result<Counted, ()> {
            Err(())
        }

        fn is_target(_: &Counted) -> bool {
            true
        }
    }

    /// A mapping: its start and its length. It is unmapped when it is dropped.
    struct Mapping(usize, usize);

    impl Mapping {
        /// At an address, in place of what is there, or anywhere.
        fn new(at: Option<usize>, bytes: usize) -> Mapping {
            let fixed = if at.is_some() { libc::MAP_FIXED_NOREPLACE } else { 0 };
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed;
            let hint = at.unwrap_or(0) as *mut libc::c_void;
            // SAFETY: a new mapping, which replaces nothing.
            let start = unsafe { libc::mmap(hint, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
            assert_ne!(start, libc::MAP_FAILED);
            Mapping(start as usize, bytes)
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: the mapping is this value's, and nothing refers to it.
            unsafe { libc::munmap(self.0 as *mut libc::c_void, self.1) };
        }
    }

    const PAGES: usize = 16 * PAGE_BYTES;

    fn counts(cache: &Registrations<Counting>) -> [usize; 2] {
        [&cache.how.total, &cache.how.open].map(|count| count.load(Ordering::Relaxed))
    }

    #[test]
    fn what_lies_in_a_registration_is_not_registered_again() {
        let (cache, memory) = (Registrations::new(Counting::default()), Mapping::new(None, PAGES));
        assert!(cache.unmapping.is_some(), "the system says what is unmapped");
        drop(cache.lend(memory.0, PAGES, true).unwrap());
        drop(cache.lend(memory.0 + 5000, 100, true).unwrap());
        drop(cache.lend(memory.0, 1, true).unwrap());
        assert_eq!(counts(&cache), [1, 1]);
        let beyond = Mapping::new(None, PAGES);
        drop(cache.lend(beyond.0 + 1, PAGES - 1, true).unwrap());
        assert_eq!(counts(&cache), [2, 2]);
    }

    #[test]
    fn a_registration_is_found_behind_one_of_a_part() {
        let (cache, memory) = (Registrations::new(Counting::default()), Mapping::new(None, PAGES));
        drop(cache.lend(memory.0 + 4 * PAGE_BYTES, PAGE_BYTES, true).unwrap());
        drop(cache.lend(memory.0, PAGES, true).unwrap());
        drop(cache.lend(memory.0 + 8 * PAGE_BYTES, PAGE_BYTES, true).unwrap());
        assert_eq!(counts(&cache)[0], 2);
    }

    /// Also the pages that it has in common with a registration that was closed are watched.
    #[test]
    fn a_registration_stays_watched_when_one_of_a_part_is_closed() {
        let cache = Registrations::new(Counting::default());
        let (memory, others) = (Mapping::new(None, PAGES), Mapping::new(None, 2 * KEPT_MAX * PAGE_BYTES));
        drop(cache.lend(memory.0 + 4 * PAGE_BYTES, PAGE_BYTES, true).unwrap());
        for i in 1..KEPT_MAX {
            drop(cache.lend(others.0 + 2 * i * PAGE_BYTES, 1, true).unwrap());
        }
        let before = counts(&cache)[0];
        // The oldest, a part of it, has to go.
        drop(cache.lend(memory.0, PAGES, true).unwrap());
        drop(cache.lend(memory.0, PAGES, true).unwrap());
        assert_eq!(counts(&cache)[0], before + 1);
        // SAFETY: the page is mapped, and its contents are of no interest.
        unsafe {
            let page = (memory.0 + 4 * PAGE_BYTES) as *mut libc::c_void;
            libc::madvise(page, PAGE_BYTES, libc::MADV_DONTNEED);
        }
        drop(cache.lend(memory.0, PAGES, true).unwrap());
        assert_eq!(counts(&cache)[0], before + 2, "the page is another one");
    }

    /// Memory that may only be read is registered as a source, and for nothing else.
    #[test]
    fn a_source_is_no_target() {
        /// Refuses to register memory as a target at first.
        #[derive(Default)]
        struct Sources(AtomicUsize);

        impl Register for Sources {
            type Region = bool;
            type Error = &'static str;

            fn register(&self, _range: Range<usize>) -> Result<bool, &'static str> {
                let is_writable = self.0.fetch_add(1, Ordering::Relaxed) >= 4;
                is_writable.then_some(true).ok_or("read-only")
            }

            fn register_source(&self, _range: Range<usize>) -> Result<bool, &'static str> {
                Ok(false)
            }

            fn is_target(region: &bool) -> bool {
                *region
            }
        }

        let (cache, memory) = (Registrations::new(Sources::default()), Mapping::new(None, PAGES));
        assert!(!*cache.lend(memory.0, PAGES, false).unwrap());
        assert!(!*cache.lend(memory.0, 1, false).unwrap());
        assert_eq!(cache.lend(memory.0, PAGES, true).unwrap_err(), "read-only");
        assert!(*cache.lend(memory.0, PAGES, true).unwrap());
        assert!(*cache.lend(memory.0, PAGES, false).unwrap());
    }

    #[test]
    fn memory_that_was_unmapped_is_registered_anew() {
        let (cache, memory) = (Registrations::new(Counting::default()), Mapping::new(None, PAGES));
        let at = memory.0;
        drop(cache.lend(at, PAGES, true).unwrap());
        for round in 2..100 {
            drop(Mapping(at + PAGE_BYTES, PAGE_BYTES));
            let again = Mapping::new(Some(at + PAGE_BYTES), PAGE_BYTES);
            drop(cache.lend(at, PAGES, true).unwrap());
            assert_eq!(counts(&cache), [round, 1], "once for each time that it was mapped");
            std::mem::forget(again);
        }
        // Pages that were given back to the system without being unmapped are new pages as well. SAFETY: the
        // page is mapped, and its contents are of no interest.
        unsafe { libc::madvise(at as *mut libc::c_void, PAGE_BYTES, libc::MADV_DONTNEED) };
        drop(cache.lend(at, PAGES, true).unwrap());
        assert_eq!(counts(&cache), [100, 1]);
    }

    #[test]
    fn what_is_in_use_stays_open_whatever_is_unmapped() {
        let (cache, memory) = (Registrations::new(Counting::default()), Mapping::new(None, PAGES));
        let lent = cache.lend(memory.0, PAGES, true).unwrap();
        drop(memory);
        assert_eq!(counts(&cache), [1, 1]);
        let other = Mapping::new(None, PAGES);
        drop(cache.lend(other.0, 1, true).unwrap());
        assert_eq!(counts(&cache), [2, 2], "it is not kept any more, but in use");
        drop(lent);
        assert_eq!(counts(&cache), [2, 1]);
    }

    #[test]
    fn idle_registrations_are_bounded_and_the_oldest_go_first() {
        let cache = Registrations::new(Counting::default());
        let memory = Mapping::new(None, 3 * KEPT_MAX * PAGE_BYTES);
        let page = |i: usize| cache.lend(memory.0 + 2 * i * PAGE_BYTES, 1, true).unwrap();
        let in_use = page(0);
        (1..=KEPT_MAX).for_each(|i| drop(page(i)));
        assert_eq!(counts(&cache), [KEPT_MAX + 1, KEPT_MAX]);
        drop(page(KEPT_MAX));
        drop(page(0));
        assert_eq!(counts(&cache)[0], KEPT_MAX + 1, "what is in use, and what was used last, are there");
        drop(page(1));
        assert_eq!(counts(&cache)[0], KEPT_MAX + 2, "the oldest had to go");
        drop(in_use);
    }

    #[test]
    fn threads_that_unmap_and_threads_that_lend_do_not_stop_each_other() {
        let cache = Registrations::new(Counting::default());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let memory = Mapping::new(None, PAGES);
                        let lent = cache.lend(memory.0, PAGES, true).unwrap();
                        drop(cache.lend(memory.0, PAGES, true).unwrap());
                        drop(lent);
                    }
                });
            }
        });
        let [total, open] = counts(&cache);
        assert!((2000..=4000).contains(&total) && open <= KEPT_MAX, "{total} registered, {open} open");
    }
}
