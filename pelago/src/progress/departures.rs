//! The state of a PE that leaves its job, or waits in vain for one that has left.

use crate::Pe;
use pelago_fabric::sync::AtomicBool;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

/// The state of this PE's departure, and of those of PEs of other nodes.
#[derive(Default)]
pub(crate) struct Departures {
    /// This PE's last error, when it has left.
    pub(crate) last_error: OnceLock<Option<String>>,
    /// A PE of another node waits for this one, which has left, in vain.
    pub(crate) missed_by: OnceLock<Pe>,
    /// Last errors of PEs of other nodes that were asked.
    pub(crate) told: Mutex<Vec<(Pe, Option<String>)>>,
    /// When this PE has first seen that another one failed.
    pub(crate) failure_seen: OnceLock<Instant>,
    /// Whether this PE has given others time already.
    pub(crate) has_given_time: AtomicBool,
}
