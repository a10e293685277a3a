//! The memory that a run needs, compared with the memory that is available. This is checked before the points
//! are made, so that a run with too many points ends with a message and does not exhaust the machine.
//! Invariant: all PEs decide by the same numbers, those of the node that has least for each PE.

use pelago::Result;
use pelago::prelude::*;
use pelago_report::Bytes;
use thiserror::Error;

use super::neighbours;
use super::points::Points;
use super::problem::{POINTS_MIN, Problem};
use crate::room::Supply;

/// The memory of a point besides its list of neighbours: coordinates, its list's place, whether it is free,
/// its place in a cluster, and the vectors' room to grow.
const POINT_BYTES: f64 = 64.0;
const NEIGHBOUR_BYTES: f64 = size_of::<u32>() as f64;
/// The size of the sample of points from which the number of neighbours of a point is estimated.
const SAMPLE_POINTS: u32 = 2048;

/// The memory that a run needs, in bytes.
#[derive(Clone, Copy, Debug)]
struct Need {
    /// On each PE.
    pe_bytes: u64,
    /// On PE 0, for the verification.
    verification_bytes: u64,
}

impl Need {
    /// The need of a run in which each point is near the fraction `near_fraction` of all points.
    fn of(points: u32, near_fraction: f64) -> Self {
        let count = f64::from(points);
        let own_bytes = count * POINT_BYTES;
        let list_bytes = count * count * near_fraction * NEIGHBOUR_BYTES;
        // The verification has lists of its own, and a cluster for each seed, at most as large as a list.
        Need {
            pe_bytes: (own_bytes + list_bytes) as u64,
            verification_bytes: (own_bytes + 2.0 * list_bytes) as u64,
        }
    }

    fn bytes(self, pes: usize) -> u64 {
        self.pe_bytes.saturating_mul(pes as u64).saturating_add(self.verification_bytes)
    }
}

/// The points do not fit.
#[derive(Debug, Error)]
#[error(
    "{problem} need about {per_pe} a PE, times {pes} PEs of a node, and {verification} on PE 0 for the \
     verification, {total} in all; the node has {node} available; {remedy}"
)]
pub(super) struct TooLarge {
    problem: Problem,
    pes: usize,
    per_pe: Bytes,
    verification: Bytes,
    total: Bytes,
    node: Bytes,
    remedy: String,
}

/// Collective: whether the points and their lists fit; all PEs get the same result.
pub(super) fn check(world: &World, problem: Problem) -> Result<std::result::Result<(), TooLarge>> {
    let Supply { node_bytes, node_pes, .. } = Supply::find(world)?;
    Ok(judge(problem, node_pes, near_fraction(problem), node_bytes))
}

fn judge(
    problem: Problem,
    pes: usize,
    near_fraction: f64,
    node_bytes: u64,
) -> std::result::Result<(), TooLarge> {
    let need = Need::of(problem.points, near_fraction);
    if need.bytes(pes) <= node_bytes {
        return Ok(());
    }
    let mut fitting = problem.points;
    while fitting >= POINTS_MIN && Need::of(fitting, near_fraction).bytes(pes) > node_bytes {
        fitting /= 2;
    }
    Err(TooLarge {
        problem,
        pes,
        per_pe: Bytes(need.pe_bytes),
        verification: Bytes(need.verification_bytes),
        total: Bytes(need.bytes(pes)),
        node: Bytes(node_bytes),
        remedy: match fitting {
            ..POINTS_MIN => "take a smaller threshold, or fewer PEs".to_owned(),
            _ => format!("--points {fitting} would fit; so may a smaller threshold, or fewer PEs"),
        },
    })
}

/// The approximate fraction of all points that are near a point, from a sample with the distribution of the
/// points.
fn near_fraction(problem: Problem) -> f64 {
    let sample = Points::generate(problem.points.min(SAMPLE_POINTS));
    let limit = problem.threshold * problem.threshold;
    let degrees = (0..sample.len()).map(|point| u64::from(neighbours::degree(&sample, point, limit)));
    degrees.sum::<u64>() as f64 / f64::from(sample.len()).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn points_that_fit_are_let_through() {
        let problem = Problem { points: 26624, threshold: 1.0 };
        judge(problem, 8, near_fraction(problem), 2 * GIB).unwrap();
    }

    #[test]
    fn too_many_points_are_refused_with_need_supply_and_what_fits() {
        let problem = Problem { points: 4_000_000_000, threshold: 1.0 };
        let message = judge(problem, 2, 0.02, 16 * GIB).unwrap_err().to_string();
        for part in [
            "4000000000 points at threshold 1 need about ",
            " TiB a PE, times 2 PEs of a node",
            "16 GiB available",
        ] {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
        let fitting = message.split("--points ").nth(1).and_then(|rest| rest.split(' ').next());
        let points = fitting.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{message}"));
        judge(Problem { points, ..problem }, 2, 0.02, 16 * GIB).unwrap();
        assert!(judge(Problem { points: 2 * points + 1, ..problem }, 2, 0.02, 16 * GIB).is_err());
        let nothing = judge(problem, 2, 0.02, 0).unwrap_err().to_string();
        assert!(nothing.ends_with("take a smaller threshold, or fewer PEs"), "{nothing}");
    }

    #[test]
    fn a_sample_tells_the_fraction_of_near_points() {
        for threshold in [0.5, 1.0, 4.0] {
            let [few, many] = [SAMPLE_POINTS, 8192].map(|count| {
                let points = Points::generate(count);
                let limit = threshold * threshold;
                let degrees = (0..count).step_by(16).map(|point| neighbours::degree(&points, point, limit));
                f64::from(degrees.sum::<u32>()) / f64::from(count).powi(2)
            });
            assert!((0.5..2.0).contains(&(few / many)), "threshold {threshold}: {few} and {many}");
        }
    }

    #[test]
    fn all_pes_come_to_the_same_answer() {
        let answers = pelago::Spmd::new(2).run(|world| {
            [512, u32::MAX - 1].map(|points| {
                let problem = Problem { points, threshold: 1.0 };
                check(world, problem).unwrap().map_err(|too_large| too_large.to_string())
            })
        });
        let [first, second] = answers.unwrap().try_into().unwrap();
        assert_eq!(first[0], Ok(()));
        assert!(first[1].is_err());
        assert_eq!(first, second);
    }
}
