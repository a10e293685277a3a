//! Counts of a PE's operations, for tests, reports and tuning. They are kept only when counting is on
//! (`PELAGO_COUNTERS=1`, `Spmd::counters`), off the fast path.

use crate::base::locked::locked;
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

/// The counters of a running world; nothing is counted unless they are on.
#[derive(Debug, Default)]
pub struct Tally {
    counts: Mutex<Counters>,
    is_on: bool,
}

impl Tally {
    pub fn new(is_on: bool) -> Tally {
        Tally { counts: Mutex::default(), is_on }
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    pub fn read(&self) -> Counters {
        *locked(&self.counts)
    }

    pub fn add(&self, change: impl FnOnce(&mut Counters)) {
        if self.is_on {
            self.count(change);
        }
    }

    #[cold]
    fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut locked(&self.counts));
    }
}
