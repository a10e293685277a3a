//! Rates of operations in lines of a table, and in JSON. Invariant: a rate counts the operations of all PEs
//! together, against the time until the last PE was done.

use std::fmt;
use std::time::Duration;

use pelago::Result;
use pelago::prelude::*;
use serde::Serialize;

use crate::collect::collect;

/// Collective: the time of `work` on all PEs, the same on all of them; the puts of `work` are complete at the
/// end. It is the longest time that any PE has measured: a PE that the system interrupts between the first
/// barrier and its first reading of the clock measures too little.
pub(crate) fn timed(world: &World, work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    world.barrier();
    let begun = world.wtime();
    work()?;
    world.barrier();
    let own = world.wtime() - begun;
    let all = collect(world, &[own.as_nanos() as u64])?;
    Ok(Duration::from_nanos(all.iter().map(|nanoseconds| nanoseconds[0]).max().unwrap_or(0)))
}

/// The rate of operations of one kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rate {
    name: &'static str,
    /// The number of operations of all PEs.
    operations: u64,
    seconds: f64,
    million_per_second: f64,
}

impl Rate {
    /// The rate of `operations` operations in the time `time`.
    pub(crate) fn new(name: &'static str, operations: u64, time: Duration) -> Self {
        // A clock may be too coarse for a handful of operations.
        let seconds = time.max(Duration::from_nanos(1)).as_secs_f64();
        Rate { name, operations, seconds, million_per_second: operations as f64 / seconds / 1e6 }
    }

    /// The head line of a table.
    pub(crate) fn head(f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        writeln!(f, "{what:<12}  {:>14}  {:>10}  {:>10}", "operations", "seconds", "M/s")
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rate { name, operations, seconds, million_per_second } = self;
        write!(f, "{name:<12}  {operations:>14}  {seconds:>10.6}  {million_per_second:>10.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pes_are_told_the_longest_time() {
        let times = pelago::Spmd::new(3).sim(pelago::sim::SimParams::default()).run(|world| {
            let work = || {
                world.simulate_compute(Duration::from_millis(1 + world.my_pe() as u64));
                Ok(())
            };
            timed(world, work).unwrap()
        });
        let times = times.unwrap();
        assert!(times.iter().all(|time| *time == times[0] && time.as_millis() == 3), "{times:?}");
    }

    #[test]
    fn a_rate_is_operations_by_time() {
        let rate = Rate::new("get", 3_000_000, Duration::from_millis(1500));
        assert_eq!(rate.to_string(), "get                  3000000    1.500000       2.000");
        assert!(Rate::new("get", 1, Duration::ZERO).million_per_second.is_finite());
        let json = serde_json::to_value(&rate).unwrap();
        assert_eq!(json["million_per_second"], 2.0);
    }
}
