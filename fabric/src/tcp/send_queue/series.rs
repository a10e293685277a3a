//! Whether the puts of a series, with large data, wait for each other so that one call of the system sends
//! several.
//!
//! A program gains by this if it starts a series and then waits for it. If it computes after the series, the
//! last puts leave late: with the next progress. So the next puts do not wait if one has waited long. After a
//! number of them, which doubles each time, this is tried again.

use std::time::{Duration, Instant};

/// A put has waited long after ten times the time of a call of the system for 64 KiB.
const LONG: Duration = Duration::from_micros(150);
/// Puts that do not wait after one has waited long: at first, and at most.
const PAUSE: [u32; 2] = [64, 4096];

/// The puts of one connection.
pub(super) struct Series {
    /// Since when the oldest put waits, if there is one.
    since: Option<Instant>,
    /// Puts that will not wait.
    alone: u32,
    /// Their number, when a put waits long the next time.
    pause: u32,
}

impl Default for Series {
    fn default() -> Series {
        Series { since: None, alone: 0, pause: PAUSE[0] }
    }
}

impl Series {
    /// Whether the next put waits, from now on.
    pub(super) fn waits(&mut self, now: Instant) -> bool {
        if self.alone > 0 {
            self.alone -= 1;
            return false;
        }
        self.since.get_or_insert(now);
        true
    }

    /// The puts that wait are sent.
    pub(super) fn end(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        if now.duration_since(since) <= LONG {
            self.pause = PAUSE[0];
            return;
        }
        self.alone = self.pause;
        self.pause = (2 * self.pause).min(PAUSE[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_wait_again_after_a_pause_that_grows() {
        let (mut series, start) = (Series::default(), Instant::now());
        let mut round = |waiting: Duration| {
            let alone = (0..).find(|_| series.waits(start)).unwrap();
            assert!(series.waits(start + LONG));
            series.end(start + waiting);
            alone
        };
        assert_eq!((round(LONG), round(2 * LONG)), (0, 0));
        let pauses = [round(2 * LONG), round(2 * LONG), round(2 * LONG)];
        assert_eq!(pauses, [PAUSE[0], 2 * PAUSE[0], 4 * PAUSE[0]]);
        let last = (0..9).map(|_| round(2 * LONG)).max();
        assert_eq!(last, Some(PAUSE[1]));
        assert_eq!((round(LONG), round(LONG), round(2 * LONG), round(LONG)), (PAUSE[1], 0, 0, PAUSE[0]));
        series.end(start + 9 * LONG);
        assert!(series.waits(start), "nothing has waited");
    }
}
