//! The cost of a start: a job whose PEs enter one barrier, compared with the same number of plain processes.
//! Invariant: this process starts both, all at once, and all have ended when the clock stops.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::base::gate::{Bound::TimeAtMost, Gate, Source::Measured};
use crate::base::job;
use crate::base::record::Pair;

#[rustfmt::skip]
pub static GATES: &[Gate] = &[
    Gate { name: "start-64", what: "start, meeting and end of 64 PEs to 64 plain processes, time",
           bound: TimeAtMost(3.0), source: Measured(|count| pairs(64, count)) },
];

/// A program that does nothing.
const PLAIN: &str = "/bin/true";

/// Measures `pairs` pairs: a job of `count` PEs, and `count` plain processes. One untimed start of each comes
/// first.
fn pairs(count: usize, pairs: usize) -> anyhow::Result<Vec<Pair>> {
    let measure = || -> anyhow::Result<Pair> {
        let ours_ns = nanoseconds(|| job::run(count, false, &[], "noop", &[]))?;
        Ok(Pair { ours_ns, yardstick_ns: nanoseconds(|| plain_processes(count))? })
    };
    measure()?;
    (0..pairs).map(|_| measure()).collect()
}

fn plain_processes(count: usize) -> anyhow::Result<()> {
    let start = |_| Command::new(PLAIN).stdin(Stdio::null()).spawn();
    let children: Result<Vec<_>, _> = (0..count).map(start).collect();
    for mut child in children.with_context(|| format!("starting {count} times {PLAIN}"))? {
        let status = child.wait().with_context(|| format!("waiting for {PLAIN}"))?;
        ensure!(status.success(), "{PLAIN} ended with {status}");
    }
    Ok(())
}

fn nanoseconds(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64() * 1e9)
}
