//! One PE computes while the others wait for it: its share of a core, and its speed; for gates, compared with
//! a PE that is alone in its job. Invariants: the work is in pieces of one size, and the PE that computes
//! does not communicate meanwhile; jobs of all PEs and of one PE alternate and do the same work, so that
//! other load on the machine slows both.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use pelago::prelude::*;
use rustix::time::ClockId;

use crate::base::crowd::time_of;
use crate::base::gate::{Bound::RateAtLeast, Gate, Source::Measured};
use crate::base::job;
use crate::base::record::{Computation, Pair};

#[rustfmt::skip]
pub static GATES: &[Gate] = &[
    Gate { name: "compute-share", what: "computing while 15 PEs wait to alone in a job, share of a core",
           bound: RateAtLeast(0.90),
           source: Measured(|pairs| compare(pairs, |done| 1e6 * done.wall_ns / done.cpu_ns)) },
    Gate { name: "compute-speed", what: "computing while 15 PEs wait to alone in a job, rate",
           bound: RateAtLeast(0.90),
           source: Measured(|pairs| compare(pairs, |done| done.wall_ns / done.pieces as f64)) },
];

/// The number of PEs of the jobs in which all but one wait.
const PES: usize = 16;

/// Measures `pairs` pairs: the time of a PE that computes while the others wait, and of a PE that is alone.
/// The time is that of a piece of work, or the wall time for a millisecond on a core.
fn compare(pairs: usize, ns: fn(Computation) -> f64) -> Result<Vec<Pair>> {
    let compute = |pes| -> Result<f64> {
        // PEs are not bound: the PE that computes may have to move to a core without waiting PEs.
        let lines = job::perf(pes, false, &[], &["compute"])?;
        Ok(ns(job::parse(&lines)?.pop().context("PE 0 did not say what it has computed")?))
    };
    (0..pairs).map(|_| Ok(Pair { ours_ns: compute(PES)?, yardstick_ns: compute(1)? })).collect()
}

/// The number of values that a piece of work processes: they fill a part of a core's private cache, so that
/// other use of the cache is noticed.
const NUMBERS: usize = 16 << 10;

/// Collective: PE 0 computes for about this time, while each of the others waits for a word. Returns the work
/// of PE 0; `None` elsewhere.
///
/// # Errors
/// If the symmetric heap has no room for a word.
pub fn compute(world: &World, time: Duration) -> Result<Option<Computation>> {
    let word = world.alloc_zeroed::<u64>(1)?;
    world.barrier();
    if world.my_pe() != 0 {
        word.local().wait_until(0, |value| value == 1);
        return Ok(None);
    }
    let mut numbers = vec![1.0; NUMBERS];
    let (start, start_cpu) = (Instant::now(), time_of(ClockId::ThreadCPUTime));
    let mut pieces = 0;
    // At least one piece, even if the time is over when this PE first gets a core.
    loop {
        piece(&mut numbers);
        pieces += 1;
        if start.elapsed() >= time {
            break;
        }
    }
    let (wall, cpu) = (start.elapsed(), time_of(ClockId::ThreadCPUTime) - start_cpu);
    black_box(&numbers);
    (1..world.n_pes()).try_for_each(|pe| word.p(pe, 0, 1))?;
    world.quiet();
    let [wall_ns, cpu_ns] = [wall, cpu].map(|time| time.as_secs_f64() * 1e9);
    Ok(Some(Computation { pieces, wall_ns, cpu_ns }))
}

/// A piece of work.
fn piece(numbers: &mut [f64]) {
    let numbers = black_box(numbers);
    for number in numbers {
        *number = number.mul_add(0.999, 0.001);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pe_0_computes_while_the_others_wait() {
        for pes in [1, 4] {
            let time = Duration::from_millis(5);
            let done = spmd(pes, |world| compute(world, time).unwrap()).unwrap();
            let Some(Computation { pieces, wall_ns, cpu_ns }) = done[0] else { panic!("PE 0 says nothing") };
            assert!(pieces > 0 && wall_ns > 0.0 && cpu_ns > 0.0, "{done:?}");
            assert!(done[1..].iter().all(Option::is_none));
        }
    }
}
