//! A series of puts with large data. The puts wait for each other, and one call of the system sends several.
//!
//! A program that starts a series and then waits for it gains by this. A program that computes after the
//! series loses: the service thread sends the last puts, and they leave late. If a put has waited long, the
//! next puts do not wait. Their number doubles each time. After them, puts wait again.

use std::time::{Duration, Instant};

/// A longer wait is long: ten times a call of the system for 64 KiB.
const LONG: Duration = Duration::from_micros(150);
/// Puts that do not wait after a long wait: at least, and at most.
const PAUSE: [u32; 2] = [64, 4096];

/// The puts of one connection.
pub(super) struct Series {
    /// Since when the oldest put waits, if there is one.
    since: Option<Instant>,
    /// Puts that will not wait.
    alone: u32,
    /// How many will not wait after the next long wait.
    pause: u32,
    /// When large data were sent last.
    last_sent: Option<Instant>,
}

impl Default for Series {
    fn default() -> Series {
        Series { since: None, alone: 0, pause: PAUSE[0], last_sent: None }
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

    /// The waiting puts are about to be sent: because the group is full, or because somebody makes progress.
    /// How long a full group has waited says nothing about the program.
    pub(super) fn end(&mut self, now: Instant, is_full: bool) {
        let Some(since) = self.since.take().filter(|_| !is_full) else { return };
        if now.duration_since(since) <= LONG {
            self.pause = (self.pause / 2).max(PAUSE[0]);
            return;
        }
        self.alone = self.pause;
        self.pause = (2 * self.pause).min(PAUSE[1]);
    }

    /// Large data were sent.
    pub(super) fn has_sent(&mut self, now: Instant) {
        self.last_sent = Some(now);
    }

    pub(super) fn last_sent(&self) -> Option<Instant> {
        self.last_sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_wait_again_after_a_pause_that_grows_and_shrinks() {
        let (mut series, start) = (Series::default(), Instant::now());
        let mut round = |waiting: Duration| {
            let alone = (0..).find(|_| series.waits(start)).unwrap();
            assert!(series.waits(start + LONG));
            series.end(start + waiting, false);
            alone
        };
        assert_eq!((round(LONG), round(2 * LONG)), (0, 0));
        let pauses = [round(2 * LONG), round(2 * LONG), round(2 * LONG)];
        assert_eq!(pauses, [PAUSE[0], 2 * PAUSE[0], 4 * PAUSE[0]]);
        let last = (0..9).map(|_| round(2 * LONG)).max();
        assert_eq!(last, Some(PAUSE[1]));
        assert_eq!((round(LONG), round(LONG), round(2 * LONG)), (PAUSE[1], 0, 0));
        assert_eq!(round(LONG), PAUSE[1] / 4);
        series.end(start + 9 * LONG, false);
        assert!(series.waits(start), "nothing has waited");
    }

    /// Programs that compute after each series, whatever its length.
    #[test]
    fn few_series_end_late() {
        for puts in [5, 7, 10, 34, 66, 70, 101, 130, 202, 500] {
            let (mut series, start, mut late, at_once, together) =
                (Series::default(), Instant::now(), 0, 4, 4);
            const ALL: usize = 4000;
            for _ in 0..ALL {
                let mut waiting = 0;
                for _ in at_once..puts {
                    waiting += usize::from(series.waits(start));
                    if waiting == together {
                        series.end(start, true);
                        waiting = 0;
                    }
                }
                late += usize::from(waiting > 0);
                series.end(start + 2 * LONG, false);
            }
            assert!(late <= ALL / 8, "{late} of {ALL} series of {puts} puts end late");
        }
    }
}
