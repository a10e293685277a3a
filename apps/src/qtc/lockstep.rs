//! Runs of many members in one thread, one request after the other, for tests of the division and of the
//! shrinking group. Invariant: all members of the group make the same request before any member gets a reply.

use super::clustering::{self, Cluster, Clustering};
use super::member::{Member, Request, Shrink};
use super::points::Points;

/// The results of a run of `pes` members: the clusters of rank 0, and its shrinks.
struct Ended {
    clusters: Vec<Cluster>,
    left: u32,
    shrinks: Vec<Shrink>,
}

fn run(points: u32, threshold: f32, pes: usize) -> Ended {
    let mut states: Vec<_> = (0..pes).map(|_| Clustering::new(Points::generate(points), threshold)).collect();
    let mut members: Vec<_> =
        states.iter_mut().enumerate().map(|(rank, state)| Member::new(state, rank, pes)).collect();
    let mut requests: Vec<_> = members.iter_mut().map(Member::first).collect();
    let mut left_behind = Vec::new();
    while let Some(answer) = answer(&requests) {
        if let Request::Shrink(size) = requests[0] {
            left_behind.extend(members.split_off(size));
        }
        requests = members.iter_mut().map(|member| member.next(answer)).collect();
    }
    let shrinks = members[0].shrinks.clone();
    let all = || members.iter().chain(&left_behind).map(|member| &member.clustering);
    for clustering in all() {
        assert_eq!(clustering.clusters, members[0].clustering.clusters[..clustering.clusters.len()]);
    }
    let first = &members[0].clustering;
    Ended { clusters: first.clusters.clone(), left: first.free_count(), shrinks }
}

/// The reply to requests, which must be of one kind; `None` at the end.
fn answer(requests: &[Request]) -> Option<u64> {
    let values = || {
        requests.iter().map(|request| match request {
            Request::Max(value) | Request::Min(value) => *value,
            other => panic!("{other:?} among {requests:?}"),
        })
    };
    let are_of_a_kind = requests.iter().all(|request| match (request, &requests[0]) {
        (Request::Max(_), Request::Max(_)) | (Request::Min(_), Request::Min(_)) => true,
        (one, first) => one == first,
    });
    assert!(are_of_a_kind, "{requests:?}");
    match requests[0] {
        Request::Done => None,
        Request::Shrink(_) | Request::Barrier => Some(0),
        Request::Max(_) => values().max(),
        Request::Min(_) => values().min(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference::{REFERENCE_THRESHOLD, REFERENCES, Reference};
    use super::super::replay::replay;
    use super::*;

    #[test]
    fn every_division_gives_the_references() {
        for reference in &REFERENCES[..3] {
            for pes in [1, 2, 3, 4, 8] {
                assert_is(&run(reference.points, REFERENCE_THRESHOLD, pes), reference);
            }
        }
    }

    #[test]
    fn eight_of_4096_points_shrink_to_one_step_by_step() {
        let ended = run(4096, REFERENCE_THRESHOLD, 8);
        assert_is(&ended, &REFERENCES[3]);
        let expected = [
            (12, 3582, 7),
            (31, 3052, 6),
            (56, 2548, 5),
            (88, 2044, 4),
            (128, 1526, 3),
            (178, 1016, 2),
            (246, 512, 1),
        ];
        assert_eq!(ended.shrinks, expected.map(shrink));
    }

    #[test]
    fn a_group_that_is_too_large_from_the_start_shrinks_before_the_first_round() {
        let ended = run(1024, REFERENCE_THRESHOLD, 8);
        assert_eq!(ended.shrinks, [(1, 1024, 2), (51, 508, 1)].map(shrink));
    }

    #[test]
    fn other_thresholds_give_the_same_for_every_division() {
        for threshold in [0.01, 0.3, 4.0, 40.0] {
            let alone = run(600, threshold, 1);
            assert_eq!(alone.clusters, replay(&Points::generate(600), threshold), "{threshold}");
            for pes in [2, 5] {
                assert_eq!(run(600, threshold, pes).clusters, alone.clusters, "{threshold} on {pes}");
            }
        }
    }

    fn assert_is(ended: &Ended, reference: &Reference) {
        let found = (ended.clusters.len(), ended.left, clustering::squares(&ended.clusters));
        assert_eq!(found, (reference.clusters, reference.left, reference.squares), "{}", reference.points);
        assert_eq!(clustering::hash(&ended.clusters), reference.hash, "{}", reference.points);
    }

    fn shrink((iteration, points, pes): (usize, u32, usize)) -> Shrink {
        Shrink { iteration, points, pes }
    }
}
