//! The state of a PE that leaves its job, or that waits for a PE that has left.

use crate::Pe;
use pelago_fabric::sync::AtomicBool;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

/// The state of this PE's departure, and of the departures of PEs of other nodes.
#[derive(Default)]
pub struct Departures {
    /// This PE's last error, set when it has left.
    pub last_error: OnceLock<Option<String>>,
    /// A PE of another node that waits for this PE although this PE has left.
    pub missed_by: OnceLock<Pe>,
    /// The last errors of PEs of other nodes, as they have replied.
    pub told: Mutex<Vec<(Pe, Option<String>)>>,
    /// The time at which this PE has first seen that another one failed.
    pub failure_seen: OnceLock<Instant>,
    /// Whether this PE has already given other PEs time to report.
    pub has_given_time: AtomicBool,
}
