//! The state of a collection of the records of all PEs.

use super::judge::Look;
use crate::Pe;
use crate::endpoint::completion_counter::CompletionCounter;
use std::collections::BTreeMap;
use std::time::Instant;

/// A collection of the records of all PEs, and the results of earlier ones.
pub(in crate::wait) struct Looker {
    pub(in crate::wait) next_at: Instant,
    /// The records that were read so far.
    pub(in crate::wait) seen: Look,
    pub(in crate::wait) question: Option<Question>,
    pub(in crate::wait) previous: Option<Look>,
    pub(in crate::wait) unclear: u32,
    /// Lower PEs that have collected the records for this one, and their rounds at that time.
    pub(in crate::wait) lower: BTreeMap<Pe, u64>,
    /// PEs that were reported as stopped.
    pub(in crate::wait) stopped: Vec<Pe>,
}

pub(in crate::wait) struct Question {
    pub(in crate::wait) pe: Pe,
    pub(in crate::wait) counter: CompletionCounter,
    pub(in crate::wait) since: Instant,
}

impl Looker {
    pub(in crate::wait) fn new() -> Looker {
        Looker {
            next_at: Instant::now(),
            seen: Look::new(),
            question: None,
            previous: None,
            unclear: 0,
            lower: BTreeMap::new(),
            stopped: Vec::new(),
        }
    }

    pub(in crate::wait) fn rest(&mut self, until: Instant) {
        self.seen.clear();
        self.next_at = until;
    }
}
