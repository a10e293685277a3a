//! The wakers to call when events have come, which make events real futures.
//!
//! Invariant: a thread that makes progress calls the wakers whose events have come, after it has released
//! every lock of the runtime. A waker that is registered at the moment when its event comes may be missed by
//! this look, but not by the next: a driver looks at least every millisecond. Where no driver runs, futures
//! do not rely on being woken (`future.rs`). No waker is called or dropped while the list is locked, as its
//! drop may drop a future, which forgets its own.

mod probe;

pub use probe::Probe;

use crate::base::locked::locked;
use crate::job::Job;
use crate::job::callback::{self, Callback};
use pelago_fabric::sync::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;

/// All that wait in a world.
#[derive(Default)]
pub struct Wakers {
    /// How many there are, so that a look costs one load when there are none.
    count: AtomicUsize,
    /// Threads that do nothing but make progress.
    drivers: AtomicUsize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// By number.
    entries: BTreeMap<u64, Entry>,
    /// The number of the next.
    next: u64,
}

struct Entry {
    probe: Probe,
    waker: Waker,
}

/// A thread that drives, for as long as this lives.
pub struct Driver<'a> {
    wakers: &'a Wakers,
    job: &'a Job,
}

impl Wakers {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        locked(&self.waiting)
    }

    /// Whether some thread drives.
    pub fn are_driven(&self) -> bool {
        self.drivers.load(Ordering::Relaxed) != 0
    }

    /// Has a waker woken when the event comes; in place of the one of this number, if there is one.
    pub fn register(&self, number: Option<u64>, probe: &Probe, waker: &Waker) -> u64 {
        let entry = Entry { probe: probe.clone(), waker: waker.clone() };
        let mut waiting = self.waiting();
        let number = number.unwrap_or_else(|| {
            waiting.next += 1;
            waiting.next
        });
        let before = waiting.entries.insert(number, entry);
        self.count.store(waiting.entries.len(), Ordering::Relaxed);
        drop(waiting);
        drop(before);
        number
    }

    /// Forgets the waker of this number.
    pub fn forget(&self, number: u64) {
        let mut waiting = self.waiting();
        let entry = waiting.entries.remove(&number);
        self.count.store(waiting.entries.len(), Ordering::Relaxed);
        drop(waiting);
        drop(entry);
    }

    fn take(&self, are_meant: impl Fn(&Probe) -> bool) -> Vec<Entry> {
        let mut waiting = self.waiting();
        let meant = waiting.entries.iter().filter(|(_, entry)| are_meant(&entry.probe));
        let numbers: Vec<u64> = meant.map(|(&number, _)| number).collect();
        let taken = numbers.iter().filter_map(|number| waiting.entries.remove(number)).collect();
        self.count.store(waiting.entries.len(), Ordering::Relaxed);
        taken
    }
}

impl Wakers {
    /// Wakes those whose events have come.
    #[inline]
    pub fn wake_futures(&self, job: &Job) {
        if self.count.load(Ordering::Relaxed) != 0 {
            self.wake_those(job, Probe::has_come);
        }
    }

    /// Wakes the futures whose events can no longer come, so that they report it.
    #[cold]
    pub fn wake_hopeless(&self, job: &Job) {
        self.wake_those(job, |probe| probe.awaits().is_some_and(|pe| job.has_left(pe)));
    }

    /// A waker is the user's code, which may panic in the midst of any wait: then the job has failed, and
    /// nothing touches buffers any more that the wait was to protect.
    #[cold]
    fn wake_those(&self, job: &Job, are_meant: impl Fn(&Probe) -> bool) {
        for entry in self.take(are_meant) {
            callback::run(job, Callback::Waker, || entry.waker.wake());
        }
    }

    /// This thread drives until the guard is dropped.
    pub fn driver<'a>(&'a self, job: &'a Job) -> Driver<'a> {
        self.drivers.fetch_add(1, Ordering::Relaxed);
        Driver { wakers: self, job }
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        // Futures that relied on this thread must poll by themselves.
        if self.wakers.drivers.fetch_sub(1, Ordering::Relaxed) == 1 {
            let outcome = catch_unwind(AssertUnwindSafe(|| self.wakers.wake_those(self.job, |_| true)));
            if let Err(payload) = outcome
                && !std::thread::panicking()
            {
                std::panic::resume_unwind(payload);
            }
        }
    }
}
