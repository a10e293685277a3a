//! How far apart two processors are: the time in which a change that one of them makes reaches the other.
//!
//! A hypervisor moves the virtual processors of a machine: for some seconds they share a core, then a cache,
//! then neither. Times of communication change by a factor of four with it, and a comparison whose sides ran
//! in different states compares these. So the sides of a round are to run at the same distance.
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
            bind(second);
            for n in 1..=BLOCKS * ROUND_TRIPS {
                wait_for(&ball, n);
                back.0.store(n, Ordering::Release);
            }
        });
        let hit = scope.spawn(|| {
            bind(first);
            let block = |block: u32| {
                let start = Instant::now();
                for n in 1..=ROUND_TRIPS {
                    let n = block * ROUND_TRIPS + n;
                    ball.0.store(n, Ordering::Release);
                    wait_for(&back, n);
                }
                start.elapsed()
            };
            (0..BLOCKS).map(block).min().unwrap_or(Duration::MAX)
        });
        let least = hit.join().ok()?;
        Some(least.as_secs_f64() * 1e9 / f64::from(2 * ROUND_TRIPS))
    })
}

fn bind(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // Without it the figure has another meaning, but both threads still come to an end.
    let _ = sched_setaffinity(None, &set);
}

fn wait_for(word: &Word, n: u32) {
    let mut looks = 0_u32;
    while word.0.load(Ordering::Acquire) != n {
        looks += 1;
        // The other thread may not have this processor to itself.
        if looks.is_multiple_of(1 << 16) { thread::yield_now() } else { std::hint::spin_loop() }
    }
}

fn are_alike(first: f64, second: f64) -> bool {
    first.max(second) < ALIKE * first.min(second)
}

/// Runs the sides of rounds, each at the distance of the first one of its round.
#[derive(Default)]
pub struct Distances {
    /// That of this round.
    wanted_ns: Option<f64>,
    seen_ns: Vec<f64>,
    /// Runs, and those whose last try was at another distance.
    runs: usize,
    others: usize,
}

impl Distances {
    /// A round begins.
    pub fn start_round(&mut self) {
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
            self.seen_ns.push(after);
            let is_steady = are_alike(before, after);
            if is_steady && are_alike(after, *self.wanted_ns.get_or_insert(after)) {
                return Ok(result);
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
                "The processors of this machine were moved: they were {least:.0} to {most:.0} ns apart. \
                 {} of {} runs, with up to {TRIES} tries, were at another distance than the first of their \
                 round.",
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
    fn the_sides_of_a_round_run_at_the_distance_of_the_first() {
        let mut distances = Distances::default();
        distances.start_round();
        assert_eq!(run(&mut distances, &[100.0, 120.0]), 1);
        assert_eq!(run(&mut distances, &[300.0, 290.0, 300.0, 110.0, 110.0, 90.0]), 3);
        assert_eq!(run(&mut distances, &[300.0; 8]), TRIES);
        assert_eq!((distances.runs, distances.others), (3, 1));
        distances.start_round();
        assert_eq!(run(&mut distances, &[300.0; 2]), 1, "the next round may have another one");
        let said = distances.summary().unwrap();
        assert!(said.contains("90 to 300 ns apart. 1 of 4 runs"), "{said}");
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
