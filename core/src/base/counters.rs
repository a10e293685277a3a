//! Counts of a PE's operations, for tests, reports and tuning. They are kept only when counting is on
//! (`PELAGO_COUNTERS=1`, `Spmd::counters`), off the fast path, like the record of operations (`trace`).

use crate::base::locked::locked;
use crate::base::trace::{Event, Recorder, Span};
use std::sync::Mutex;

/// The operations of a PE since it joined the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Puts issued, including those to this PE itself.
    pub puts: u64,
    /// Bytes of these puts.
    pub put_bytes: u64,
    /// Gets issued, including those from this PE itself.
    pub gets: u64,
    /// Bytes of these gets.
    pub get_bytes: u64,
    /// Atomic operations and signals issued, including those to this PE itself.
    pub atomics: u64,
    /// Blocking collective operations on teams. Barriers are counted separately.
    pub collectives: u64,
    /// Barriers passed, including those inside other collective calls.
    pub barriers: u64,
    /// Puts given to the provider: those over the network, each piece of a long put, and the runtime's own
    /// puts.
    pub net_puts: u64,
    /// Gets given to the provider, counted in the same way.
    pub net_gets: u64,
    /// Messages over the network that pack scattered data, or that request them.
    pub parcels: u64,
    /// Active messages sent over the network, requests and replies. Messages between PEs that map each other
    /// go through shared memory and are not counted.
    pub net_messages: u64,
}

/// The counters and the record of a PE's operations: empty, unless they were asked for.
#[derive(Default)]
pub struct Tally {
    counts: Mutex<Counters>,
    is_counting: bool,
    recorder: Option<Recorder>,
    is_on: bool,
}

impl Tally {
    /// Counters that are kept if `is_counting`, and a recorder.
    pub fn new(is_counting: bool, recorder: Option<Recorder>) -> Tally {
        let is_on = is_counting || recorder.is_some();
        Tally { counts: Mutex::default(), is_counting, recorder, is_on }
    }

    /// Whether operations are counted or recorded, so that their fast paths are closed.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether operations are recorded.
    pub fn is_recording(&self) -> bool {
        self.recorder.is_some()
    }

    pub fn read(&self) -> Counters {
        *locked(&self.counts)
    }

    pub fn add(&self, change: impl FnOnce(&mut Counters)) {
        if self.is_counting {
            self.count(change);
        }
    }

    /// Counts and records an operation that is given to the provider of the network.
    #[inline]
    pub fn add_net(&self, change: impl FnOnce(&mut Counters), event: impl FnOnce() -> Event) {
        if self.is_on {
            self.add(change);
            self.note(event);
        }
    }

    #[cold]
    fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut locked(&self.counts));
    }

    /// Records an operation, which lasts until the result is dropped.
    #[inline]
    #[must_use = "the operation ends when this is dropped"]
    pub fn span(&self, event: impl FnOnce() -> Event) -> Option<Span<'_>> {
        self.recorder.as_ref().map(|recorder| recorder.begin(event()))
    }

    /// Records an event that takes no time.
    #[inline]
    pub fn note(&self, event: impl FnOnce() -> Event) {
        if let Some(recorder) = &self.recorder {
            recorder.note(event());
        }
    }

    /// Ends the record, and leaves its files.
    pub fn finish_record(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.finish();
        }
    }
}
