//! Who is to be woken when which event has come: what makes events real futures.
//!
//! Invariant: whoever makes progress wakes those whose events have come, after it has let go of every lock
//! of the runtime. A waker that is registered in the moment in which its event comes may be missed by that
//! look, but not by the next: a driver looks at least every millisecond. Where nobody drives, futures do not
//! rely on being woken (`future.rs`).

use super::Probe;
use crate::world::World;
use pelago_fabric::sync::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// All that wait in a world.
#[derive(Default)]
pub(crate) struct Wakers {
    /// How many there are, so that a look costs one load when there are none.
    count: AtomicUsize,
    /// Threads that make progress until they are told to end.
    drivers: AtomicUsize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    entries: Vec<Entry>,
    /// The number of the next.
    next: u64,
}

struct Entry {
    number: u64,
    probe: Probe,
    waker: Waker,
}

/// A thread that drives, for as long as this lives.
pub(super) struct Driver<'a>(&'a Wakers);

impl Wakers {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether some thread drives.
    pub(super) fn are_driven(&self) -> bool {
        self.drivers.load(Ordering::Relaxed) != 0
    }

    /// This thread drives from now on.
    pub(super) fn drive(&self) -> Driver<'_> {
        self.drivers.fetch_add(1, Ordering::Relaxed);
        Driver(self)
    }

    /// Has a waker woken when the event comes; in place of the one of this number, if there is one.
    pub(super) fn register(&self, number: Option<u64>, probe: &Probe, waker: &Waker) -> u64 {
        let mut waiting = self.waiting();
        if let Some(entry) = waiting.entries.iter_mut().find(|entry| Some(entry.number) == number) {
            entry.waker.clone_from(waker);
            return entry.number;
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.entries.push(Entry { number, probe: probe.clone(), waker: waker.clone() });
        self.count.store(waiting.entries.len(), Ordering::Relaxed);
        number
    }

    /// Forgets the waker of this number.
    pub(super) fn forget(&self, number: u64) {
        self.take(|entry| entry.number == number);
    }

    /// Wakes those whose events have come.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.count.load(Ordering::Relaxed) != 0 {
            self.wake_those(|entry| entry.probe.has_come());
        }
    }

    #[cold]
    fn wake_those(&self, are_meant: impl Fn(&Entry) -> bool) {
        for entry in self.take(are_meant) {
            entry.waker.wake();
        }
    }

    fn take(&self, are_meant: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let mut waiting = self.waiting();
        let taken = waiting.entries.extract_if(.., |entry| are_meant(entry)).collect();
        self.count.store(waiting.entries.len(), Ordering::Relaxed);
        taken
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        // Those who relied on this thread must look for themselves.
        if self.0.drivers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.wake_those(|_| true);
        }
    }
}

impl World {
    /// Drives until the guard is dropped.
    pub(super) fn driver(&self) -> Driver<'_> {
        self.wakers.drive()
    }
}
