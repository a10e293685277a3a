//! What is left to a PE that computes while the others wait: pairs for gates. Invariant: jobs of all PEs and
//! of one PE take turns, and both do the same work, so that what else the machine does slows both.

use crate::measure::{Computation, Pair};
use anyhow::Context;

use super::job;

/// So many pairs of: the time in which a PE that computes has a core for a millisecond, while the others of
/// `pes` wait, and in a job of one PE.
///
/// # Errors
/// If a job fails.
pub fn shares(pes: usize, pairs: usize) -> anyhow::Result<Vec<Pair>> {
    compare(pes, pairs, |done| 1e6 * done.wall_ns / done.cpu_ns)
}

/// So many pairs of: the time of a piece of work, in the same two jobs.
///
/// # Errors
/// If a job fails.
pub fn speeds(pes: usize, pairs: usize) -> anyhow::Result<Vec<Pair>> {
    compare(pes, pairs, |done| done.wall_ns / done.pieces as f64)
}

fn compare(pes: usize, pairs: usize, ns: fn(Computation) -> f64) -> anyhow::Result<Vec<Pair>> {
    let pair = |_| anyhow::Ok(Pair { ours_ns: ns(compute(pes)?), yardstick_ns: ns(compute(1)?) });
    (0..pairs).map(pair).collect()
}

fn compute(pes: usize) -> anyhow::Result<Computation> {
    // Not bound: who computes may have to go where nobody wakes.
    let lines = job::perf(pes, false, &["compute"])?;
    job::parse(&lines)?.pop().context("PE 0 did not say what it has computed")
}
