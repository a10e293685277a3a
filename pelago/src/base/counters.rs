//! Counts of what a PE has done, for tests, reports and tuning. They are kept only when counting is on
//! (`PELAGO_COUNTERS=1`, [`Spmd::counters`](crate::Spmd::counters)), off the fast path.

use crate::base::locked::locked;
use std::sync::Mutex;

/// What a PE has done since it joined the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Puts issued, to this PE itself as well.
    pub puts: u64,
    /// Bytes of those puts.
    pub put_bytes: u64,
    /// Gets issued, from this PE itself as well.
    pub gets: u64,
    /// Bytes of those gets.
    pub get_bytes: u64,
    /// Atomic operations and signals issued, to this PE itself as well.
    pub atomics: u64,
    /// Collective operations on teams that were called and waited for; barriers are counted apart.
    pub collectives: u64,
    /// Barriers passed, those inside other collective calls as well.
    pub barriers: u64,
    /// Puts given to the fabric: those over the net, the pieces of long ones each, and the runtime's own.
    pub net_puts: u64,
    /// Gets given to the fabric, in the same way.
    pub net_gets: u64,
    /// Messages over the net in which scattered data were packed, or asked for.
    pub parcels: u64,
    /// Active messages sent over the network, requests and answers; those between PEs that map each other go
    /// through shared memory.
    pub net_messages: u64,
}

/// The counters of a running world; nothing is counted unless they are on.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: Mutex<Counters>,
    is_on: bool,
}

impl Tally {
    pub(crate) fn new(is_on: bool) -> Tally {
        Tally { counts: Mutex::default(), is_on }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(crate) fn read(&self) -> Counters {
        *locked(&self.counts)
    }

    pub(crate) fn add(&self, change: impl FnOnce(&mut Counters)) {
        if self.is_on {
            self.count(change);
        }
    }

    #[cold]
    fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut locked(&self.counts));
    }
}
