//! Waits with a limit of time.
//!
//! Invariant: who waits sleeps until `CHANGED` is told, and then looks for itself.

use super::world::{CHANGED, World};
use libc::c_int;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// When a wait is over; `None` is never.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// In so many milliseconds; a negative number is for ever.
    pub(crate) fn after(timeout: c_int) -> Deadline {
        let timeout = u64::try_from(timeout).ok();
        Deadline(timeout.map(|timeout| Instant::now() + Duration::from_millis(timeout)))
    }

    /// Sleeps until something has changed, and says whether the time ran out meanwhile; `None` if it had
    /// before.
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
