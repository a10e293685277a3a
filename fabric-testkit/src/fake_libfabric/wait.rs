//! Waits with a time limit.
//!
//! Invariant: a waiting thread sleeps until `CHANGED` is notified, and then checks its condition.

use super::world::{CHANGED, World};
use libc::c_int;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The end of a wait; `None`: no limit.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// After this number of milliseconds; a negative number means no limit.
    pub(crate) fn after(timeout: c_int) -> Deadline {
        let timeout = u64::try_from(timeout).ok();
        Deadline(timeout.map(|timeout| Instant::now() + Duration::from_millis(timeout)))
    }

    /// Sleeps until the state has changed, and returns whether the time has expired meanwhile; `None` if it
    /// had expired before.
    pub(crate) fn sleep(
        self,
        world: MutexGuard<'static, World>,
    ) -> Option<(MutexGuard<'static, World>, bool)> {
        let left = match self.0 {
            None => Duration::from_secs(1),
            Some(end) => end.saturating_duration_since(Instant::now()),
        };
        if left.is_zero() {
            return None;
        }
        let (world, outcome) = CHANGED.wait_timeout(world, left).unwrap_or_else(PoisonError::into_inner);
        Some((world, outcome.timed_out() && self.0.is_some()))
    }
}
