//! A second computation of the clusters, by one PE and by another algorithm, for the verification. Invariant:
//! the sequence is that of the definition: always the largest cluster of all, and of equal ones the one with
//! the lowest seed. No seed is skipped. A cluster does not change while its members are free, as removing a
//! point that was never chosen changes no choice; so only clusters that lose members are grown again.

use super::clustering::Cluster;
use super::growth::grow_plainly;
use super::neighbours::Neighbours;
use super::points::Points;

/// The clusters of `points` at `threshold`, in their order. Their sizes mostly fall, but not always: growth
/// takes the nearest point, and if that point was removed, another choice can lead to a larger cluster.
pub(super) fn replay(points: &Points, threshold: f32) -> Vec<Cluster> {
    let mut replay = Replay {
        neighbours: Neighbours::new(points, threshold),
        limit: threshold * threshold,
        is_free: vec![true; points.len() as usize],
        grown: Vec::with_capacity(points.len() as usize),
        points,
    };
    for seed in 0..points.len() {
        let cluster = replay.grow(seed);
        replay.grown.push(cluster);
    }
    let mut clusters: Vec<Cluster> = Vec::new();
    while clusters.last().is_none_or(|last| last.size() > 1) {
        match replay.take_largest() {
            Some(cluster) => clusters.push(cluster),
            None => break,
        }
    }
    clusters
}

struct Replay<'p> {
    points: &'p Points,
    /// Of all points, free or not.
    neighbours: Neighbours,
    limit: f32,
    is_free: Vec<bool>,
    /// The cluster of each seed; empty if the seed is not free.
    grown: Vec<Vec<u32>>,
}

impl Replay<'_> {
    fn grow(&self, seed: u32) -> Vec<u32> {
        let is_free = |&&other: &&u32| self.is_free[other as usize];
        let near: Vec<u32> = self.neighbours.of(seed).iter().filter(is_free).copied().collect();
        grow_plainly(self.points, seed, &near, self.limit)
    }

    fn take_largest(&mut self) -> Option<Cluster> {
        let key = |seed: &usize| (self.grown[*seed].len(), usize::MAX - *seed);
        let seed = (0..self.grown.len()).filter(|&seed| self.is_free[seed]).max_by_key(key)?;
        let taken = std::mem::take(&mut self.grown[seed]);
        for &member in &taken {
            self.is_free[member as usize] = false;
            self.grown[member as usize] = Vec::new();
        }
        let near = taken.iter().flat_map(|&member| self.neighbours.of(member));
        let mut affected: Vec<u32> = near.copied().filter(|&seed| self.is_free[seed as usize]).collect();
        affected.sort_unstable();
        affected.dedup();
        for seed in affected {
            if self.grown[seed as usize].iter().any(|&member| !self.is_free[member as usize]) {
                self.grown[seed as usize] = self.grow(seed);
            }
        }
        Some(Cluster(taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequence by the definition: in every round all free seeds are tried.
    fn replay_plainly(points: &Points, threshold: f32) -> Vec<Cluster> {
        let (lists, limit) = (Neighbours::new(points, threshold), threshold * threshold);
        let mut free: Vec<u32> = (0..points.len()).collect();
        let mut clusters: Vec<Cluster> = Vec::new();
        while !free.is_empty() && clusters.last().is_none_or(|last| last.size() > 1) {
            let near = |seed| -> Vec<u32> {
                lists.of(seed).iter().filter(|id| free.binary_search(id).is_ok()).copied().collect()
            };
            let grown = free.iter().map(|&seed| Cluster(grow_plainly(points, seed, &near(seed), limit)));
            let largest = grown.rev().max_by_key(Cluster::size).unwrap();
            free.retain(|id| !largest.0.contains(id));
            clusters.push(largest);
        }
        clusters
    }

    #[test]
    fn clusters_are_those_of_the_definition() {
        for (count, threshold) in [(60, 0.1), (400, 0.5), (400, 3.0), (200, 30.0)] {
            let points = Points::generate(count);
            let expected = replay_plainly(&points, threshold);
            assert_eq!(replay(&points, threshold), expected, "{count} at {threshold}");
        }
    }

    #[test]
    fn a_later_cluster_can_be_larger() {
        let clusters = replay(&Points::generate(2048), 1.0);
        let sizes: Vec<_> = clusters.iter().map(Cluster::size).collect();
        let rises: Vec<_> = sizes.windows(2).filter(|pair| pair[0] < pair[1]).collect();
        assert_eq!(rises, [[8, 9]]);
    }
}
