//! The verification of a run's result, by PE 0 alone. Invariant: each check can fail independently, and a
//! result is correct only if all checks hold.

use super::clustering::{self, Cluster};
use super::member::{Shrink, pes_needed};
use super::points::Points;
use super::problem::Problem;
use super::reference;
use super::replay::replay;
use super::solve::{Account, Outcome};

/// A property of a result, and whether it has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct Check {
    pub(super) what: &'static str,
    pub(super) holds: bool,
}

/// Checks the results of PE 0 for `problem`. Compares them with a reference if there is one.
pub(super) fn verify(problem: Problem, outcome: &Outcome) -> Vec<Check> {
    let Outcome { clusters, accounts, .. } = outcome;
    let points = Points::generate(problem.points);
    let mut checks = vec![
        Check { what: "no point is in two clusters", holds: are_disjoint(clusters, problem.points) },
        Check { what: "no two members are too far apart", holds: are_tight(clusters, &points, problem) },
        Check { what: "a serial replay agrees", holds: replay(&points, problem.threshold) == *clusters },
        Check {
            what: "the group shrank when it should",
            holds: outcome.shrinks == shrinks(problem, outcome),
        },
        Check { what: "all PEs found the same", holds: have_agreed(clusters, accounts, &outcome.shrinks) },
    ];
    if let Some(reference) = reference::find(problem.points, problem.threshold) {
        let squares = clustering::squares(clusters);
        let same = [
            reference.points_hash == outcome.points_hash,
            reference.degree_max == outcome.degree_max,
            (reference.clusters, reference.left) == (clusters.len(), outcome.left),
            (reference.squares, reference.hash) == (squares, clustering::hash(clusters)),
        ];
        checks.push(Check { what: "the reference agrees", holds: same == [true; 4] });
    }
    checks
}

fn are_disjoint(clusters: &[Cluster], points: u32) -> bool {
    let mut is_free = vec![true; points as usize];
    let mut members = clusters.iter().flat_map(|cluster| &cluster.0);
    members.all(|&member| is_free.get_mut(member as usize).is_some_and(std::mem::take))
}

fn are_tight(clusters: &[Cluster], points: &Points, problem: Problem) -> bool {
    let is_near =
        |a: u32, b: u32| a.max(b) < points.len() && points.distance_squared(a, b).sqrt() <= problem.threshold;
    clusters.iter().all(|Cluster(members)| {
        let mut pairs = (1..members.len()).flat_map(|to| (0..to).map(move |from| (from, to)));
        pairs.all(|(from, to)| is_near(members[from], members[to]))
    })
}

/// The rounds in which the group should have shrunk, from the clusters that were removed.
fn shrinks(problem: Problem, outcome: &Outcome) -> Vec<Shrink> {
    let (mut points, mut pes) = (problem.points, outcome.accounts.len());
    let mut shrinks = Vec::new();
    for (iteration, cluster) in (1..).zip(&outcome.clusters) {
        let needed = pes_needed(points, pes);
        if needed < pes {
            pes = needed;
            shrinks.push(Shrink { iteration, points, pes });
        }
        points = points.saturating_sub(cluster.size());
    }
    shrinks
}

/// Whether every PE has found the same clusters as PE 0, until it left.
fn have_agreed(clusters: &[Cluster], accounts: &[Account], shrinks: &[Shrink]) -> bool {
    accounts.iter().enumerate().all(|(pe, account)| {
        let leaving = shrinks.iter().find(|shrink| pe >= shrink.pes);
        let rounds = leaving.map_or(clusters.len(), |shrink| shrink.iteration - 1);
        let hash = clusters.get(..rounds).map(clustering::hash);
        account.rounds == rounds as u64 && Some(account.hash) == hash
    })
}

#[cfg(test)]
mod tests {
    use super::super::solve::solve;
    use super::*;

    /// The results of PE 0 of `pes` PEs for `problem`.
    fn outcome(problem: Problem, pes: usize) -> Outcome {
        let outcomes = pelago::spmd(pes, |world| solve(world, problem, &mut |_| {}).unwrap());
        outcomes.unwrap().swap_remove(0)
    }

    fn failed(problem: Problem, outcome: &Outcome) -> Vec<&'static str> {
        let checks = verify(problem, outcome);
        checks.into_iter().filter(|check| !check.holds).map(|check| check.what).collect()
    }

    #[test]
    fn runs_on_any_number_of_pes_are_right() {
        for (points, pes_all) in [(512, &[1, 4][..]), (2048, &[1, 2, 3, 4, 8])] {
            for &pes in pes_all {
                let problem = Problem { points, threshold: 1.0 };
                let outcome = outcome(problem, pes);
                assert_eq!(verify(problem, &outcome).len(), 6, "the reference is compared");
                assert_eq!(failed(problem, &outcome), [""; 0], "{problem} on {pes} PEs");
                assert_eq!(outcome.accounts.len(), pes);
            }
        }
    }

    #[test]
    fn a_run_over_a_network_that_misbehaves_is_right() {
        let problem = Problem { points: 1100, threshold: 0.7 };
        for seed in 0..3 {
            let job = pelago::Spmd::new(3).sim(pelago::sim::SimParams::chaos(seed));
            let outcomes = job.run(|world| solve(world, problem, &mut |_| {}).unwrap()).unwrap();
            assert_eq!(failed(problem, &outcomes[0]), [""; 0], "seed {seed}");
        }
    }

    #[test]
    fn each_check_can_fail() {
        let problem = Problem { points: 1024, threshold: 1.0 };
        let right = outcome(problem, 3);
        assert_eq!(failed(problem, &right), [""; 0]);
        let assert_fails = |what: &str, change: &dyn Fn(&mut Outcome)| {
            let mut wrong = right.clone();
            change(&mut wrong);
            let failed = failed(problem, &wrong);
            assert!(failed.contains(&what), "`{what}` is not in {failed:?}");
        };
        assert_fails("no point is in two clusters", &|o| o.clusters[1].0[1] = o.clusters[0].0[1]);
        assert_fails("no point is in two clusters", &|o| o.clusters[1].0[1] = problem.points);
        assert_fails("no two members are too far apart", &|o| {
            let strange = o.clusters[2].0[0];
            o.clusters[0].0.push(strange);
        });
        assert_fails("a serial replay agrees", &|o| o.clusters.swap(0, 100));
        assert_fails("a serial replay agrees", &|o| o.clusters[0].0.swap(1, 2));
        assert_fails("a serial replay agrees", &|o| _ = o.clusters.pop());
        assert_fails("the group shrank when it should", &|o| o.shrinks[1].iteration += 1);
        assert_fails("the group shrank when it should", &|o| _ = o.shrinks.pop());
        assert_fails("all PEs found the same", &|o| o.accounts[1].hash ^= 1);
        assert_fails("all PEs found the same", &|o| o.accounts[2].rounds += 1);
        assert_fails("the reference agrees", &|o| o.points_hash ^= 1);
        assert_fails("the reference agrees", &|o| o.left += 1);
    }
}
