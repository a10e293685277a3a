//! The distance of two processors: the time from a store by one of them until the other one sees it.
//!
//! A hypervisor moves the virtual processors of a machine: for some seconds they share a core, then a cache,
//! then neither. Times of communication change by a factor of four with it, and a comparison whose sides ran
//! in different states compares these. So all sides of a row are to run at the same distance in a round. It
//! is that of the first two processors, where two PEs are bound to cores.
//!
//! Invariant: a distance is measured before and after a run, never while one goes on.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use pelago::sync::{AtomicU32, Ordering};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Blocks of a measurement, and the round trips of each; the shortest block counts.
const BLOCKS: u32 = 40;
const ROUND_TRIPS: u32 = 100;
/// Looks without a change after which a thread lets others run, and those after which it gives up: another
/// process has its processor, or both run on one.
const LOOKS_PER_TURN: u32 = 1 << 10;
const LOOKS_MAX: u32 = 1 << 26;
/// Two distances are alike if the longer one is less than this multiple of the other.
const ALIKE: f64 = 1.5;
/// The most tries of a run.
const TRIES: usize = 4;

/// The word of one of the two threads, in a cache line of its own.
#[repr(align(128))]
struct Word(AtomicU32);

/// The distance of the first two processors that this process may use, as nanoseconds one way; `None` if
/// there is one only.
fn measure() -> Option<f64> {
    let allowed = sched_getaffinity(None).ok()?;
    let [first, second] = {
        let mut all = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        [all.next()?, all.next()?]
    };
    let (ball, back) = (Word(AtomicU32::new(0)), Word(AtomicU32::new(0)));
    thread::scope(|scope| {
        scope.spawn(|| {
            bind(second)?;
            for n in 1..=BLOCKS * ROUND_TRIPS {
                wait_for(&ball, n)?;
                back.0.store(n, Ordering::Release);
            }
            Some(())
        });
        let hit = scope.spawn(|| {
            bind(first)?;
            let block = |block: u32| {
                let start = Instant::now();
                for n in 1..=ROUND_TRIPS {
                    let n = block * ROUND_TRIPS + n;
                    ball.0.store(n, Ordering::Release);
                    wait_for(&back, n)?;
                }
                Some(start.elapsed())
            };
            (0..BLOCKS).map(block).try_fold(Duration::MAX, |least, time| Some(least.min(time?)))
        });
        let least = hit.join().ok()??;
        Some(least.as_secs_f64() * 1e9 / f64::from(2 * ROUND_TRIPS))
    })
}

fn bind(cpu: usize) -> Option<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).ok()
}

/// Waits for the other thread; `None` if it does not come.
fn wait_for(word: &Word, n: u32) -> Option<()> {
    for looks in 1..LOOKS_MAX {
        if word.0.load(Ordering::Acquire) == n {
            return Some(());
        }
        if looks.is_multiple_of(LOOKS_PER_TURN) { thread::yield_now() } else { std::hint::spin_loop() }
    }
    None
}

fn are_alike(first: f64, second: f64) -> bool {
    first.max(second) < ALIKE * first.min(second)
}

/// Runs the sides of each row and round at the distance that the first of them had.
#[derive(Default)]
pub struct Distances {
    /// The distance of this row and round.
    wanted_ns: Option<f64>,
    seen_ns: Vec<f64>,
    /// The number of runs, and of those whose last try was at another distance.
    runs: usize,
    others: usize,
}

impl Distances {
    /// A row begins.
    pub fn start_row(&mut self) {
        self.wanted_ns = None;
    }

    /// Runs a side, again if the processors were moved.
    ///
    /// # Errors
    /// Those of the run.
    pub fn run<T>(&mut self, run: impl FnMut() -> Result<T>) -> Result<T> {
        self.run_by(measure, run)
    }

    fn run_by<T>(
        &mut self,
        mut measure: impl FnMut() -> Option<f64>,
        mut run: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        self.runs += 1;
        for attempt in 1.. {
            let (before, result, after) = (measure(), run()?, measure());
            let Some((before, after)) = before.zip(after) else { return Ok(result) };
            self.seen_ns.extend([before, after]);
            if are_alike(before, after) {
                let wanted = *self.wanted_ns.get_or_insert(after);
                if are_alike(before, wanted) && are_alike(after, wanted) {
                    return Ok(result);
                }
            }
            if attempt == TRIES {
                self.others += 1;
                return Ok(result);
            }
        }
        unreachable!("the loop has no end")
    }

    /// The distances that were seen, if the processors were moved.
    pub fn summary(&self) -> Option<String> {
        let least = self.seen_ns.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.seen_ns.iter().copied().fold(0.0, f64::max);
        (!self.seen_ns.is_empty() && !are_alike(least, most)).then(|| {
            format!(
                "The distance of the first two processors changed: {least:.0} to {most:.0} ns. {} of {} \
                 runs, with up to {TRIES} tries, had another distance than the first of their row and \
                 round, or it changed while they ran.",
                self.others, self.runs
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    /// Makes one run, before and after whose tries the processors are so far apart. Returns the number of
    /// tries.
    fn run(distances: &mut Distances, ns: &[f64]) -> usize {
        let (mut all, mut tries) = (ns.iter().copied(), 0);
        let result = distances.run_by(
            || all.next(),
            || {
                tries += 1;
                Ok(tries)
            },
        );
        assert_eq!((result.unwrap(), all.next()), (tries, None));
        tries
    }

    #[test]
    fn the_sides_of_a_row_run_at_the_distance_of_the_first() {
        let mut distances = Distances::default();
        distances.start_row();
        assert_eq!(run(&mut distances, &[100.0, 120.0]), 1);
        assert_eq!(run(&mut distances, &[300.0, 290.0, 300.0, 110.0, 110.0, 90.0]), 3);
        assert_eq!(run(&mut distances, &[300.0; 8]), TRIES);
        assert_eq!((distances.runs, distances.others), (3, 1));
        distances.start_row();
        assert_eq!(run(&mut distances, &[300.0; 2]), 1, "the next round may have another one");
        let said = distances.summary().unwrap();
        assert!(said.contains("90 to 300 ns. 1 of 4 runs"), "{said}");
    }

    #[test]
    fn one_processor_has_no_distance_and_errors_are_passed_on() {
        let mut distances = Distances::default();
        assert_eq!(distances.run_by(|| None, || Ok(7)).unwrap(), 7);
        assert!(distances.run_by(|| Some(100.0), || -> Result<()> { bail!("no program") }).is_err());
        assert_eq!(distances.summary(), None);
    }

    #[test]
    fn a_distance_is_measured() {
        assert!(measure().is_none_or(|ns| ns > 0.1 && ns < 1e9));
    }
}
