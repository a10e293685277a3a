//! Stalls: the report of the waits of all PEs when one has waited for long, and the end of a job in which no
//! PE can make progress.
//!
//! A thread that waits longer than a moment enters the *record* of its PE (`record.rs`): the condition that
//! it waits for, and a count that shows that it still polls. The lowest PE that has waited for
//! `PELAGO_STALL_REPORT` reads the records of all, twice, and `judge.rs` decides. If every thread of every PE
//! waits and nothing has changed, the job ends. In every other case the state of each PE is reported once,
//! and PEs that compute, are stopped by a signal or are in a debugger are named. With checks on
//! (`PELAGO_CHECK`) the collections begin at once, and collective calls that cannot match end the job.
//!
//! Invariant: nothing here runs before a wait has spun and yielded; a wait that ends leaves no trace in the
//! record. Over the simulated network, whose time is virtual and which detects hanging jobs by itself, all of
//! it is off.

pub(super) mod judge;
pub(super) mod looker;
pub mod record;
mod sleepers;
pub(super) mod threads;

pub use threads::{Resting, before_job, join_job, others_are_bystanders};

use self::looker::Looker;
use self::record::{Need, RECORD_WORDS};
use crate::Pe;
use crate::base::locked::{locked, try_locked};
use pelago_boot::Settings;
use pelago_fabric::sync::{AtomicBool, AtomicU64, Ordering};
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The minimum time between two collections.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The maximum time between two collections.
const INTERVAL_MAX: Duration = Duration::from_secs(1);
/// The minimum time between two collections if calls are checked.
const INTERVAL_MIN_CHECKED: Duration = Duration::from_millis(8);
/// The number of updates of a record between two collections.
pub(super) const PULSES: u32 = 8;

/// The long waits of a world, and its collections of the other PEs' records.
pub struct Stall {
    pub(super) is_on: bool,
    limit: Option<Duration>,
    is_checked: bool,
    pub(super) waits: Mutex<Waits>,
    looker: Mutex<Looker>,
    pub(super) process: threads::Process,
    /// Whether this PE has reported the waits of all PEs.
    pub(super) has_said: AtomicBool,
    /// Whether a get of another PE's record is outstanding.
    pub(super) is_asking: AtomicBool,
    /// The target of gets of other PEs' records. It lives as long as the world, because the fabric may write
    /// it at any time.
    answer: Box<[AtomicU64; RECORD_WORDS]>,
}

/// The long waits of the threads of this PE.
#[derive(Default)]
pub(super) struct Waits {
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) rounds: u64,
}

/// A long wait of a thread.
pub(super) struct Entry {
    pub(super) since: Instant,
    pub(super) looks: AtomicU64,
    /// The count at the last round.
    pub(super) counted: AtomicU64,
    pub(super) told: Mutex<Told>,
}

/// The thread's description of its wait.
pub(super) struct Told {
    pub(super) text: String,
    pub(super) need: Need,
    pub(super) works: bool,
}

thread_local! {
    /// The PE that the wait of this thread needs next, if its `Awaited` does not name it.
    pub(super) static NEEDED: Cell<Option<Pe>> = const { Cell::new(None) };
}

/// A wait of this thread that determines at each check which PE it needs next.
pub struct Needed(Option<Pe>);

impl Needed {
    pub fn begin() -> Needed {
        Needed(NEEDED.take())
    }

    /// Records the PE that is needed now, if it is known.
    pub fn note(&self, pe: Option<Pe>) {
        NEEDED.set(pe);
    }
}

impl Drop for Needed {
    fn drop(&mut self) {
        NEEDED.set(self.0);
    }
}

impl Stall {
    /// The state for a world that this thread joins. `is_on` is true unless time is virtual.
    pub fn new(is_on: bool, settings: &Settings) -> Stall {
        Stall {
            is_on,
            limit: settings.stall_report,
            is_checked: settings.check,
            waits: Mutex::default(),
            looker: Mutex::new(Looker::new()),
            process: threads::Process::new(),
            has_said: AtomicBool::new(false),
            is_asking: AtomicBool::new(false),
            answer: Box::new(std::array::from_fn(|_| AtomicU64::new(0))),
        }
    }

    /// Whether collective calls are checked.
    pub(super) fn is_checked(&self) -> bool {
        self.is_checked
    }

    pub(super) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    pub(super) fn is_asking(&self, is_asking: bool) {
        self.is_asking.store(is_asking, Ordering::Relaxed);
    }

    pub(super) fn answer(&self) -> &[AtomicU64; RECORD_WORDS] {
        &self.answer
    }

    /// The time from one collection to the next, in a wait of this age.
    pub(super) fn interval(&self, waited: Duration) -> Duration {
        match self.is_checked {
            true => (waited / 4).clamp(INTERVAL_MIN_CHECKED, INTERVAL_MAX),
            false => self.limit.map_or(INTERVAL_MAX, |limit| (limit / 2).clamp(INTERVAL_MIN, INTERVAL_MAX)),
        }
    }

    /// The right to collect the records, unless another thread has it.
    pub(super) fn looker(&self) -> Option<MutexGuard<'_, Looker>> {
        try_locked(&self.looker)
    }
}

impl Stall {
    pub(super) fn is_entry_due(&self, entry: &Entry, now: Instant) -> bool {
        let waited = now.saturating_duration_since(entry.since);
        let is_late = self.limit.is_some_and(|limit| waited >= limit);
        is_late || self.is_checked && locked(&entry.told).need != Need::Unknown
    }
}
