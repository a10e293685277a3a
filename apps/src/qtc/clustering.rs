//! The state of a run on one PE: the points, the points that are still free, the clusters so far. Every PE
//! has the whole state, and grows clusters from its share of the seeds. Invariant: the larger of two clusters
//! wins, and of equal ones the one with the lowest seed; a seed is skipped only if its cluster could not win
//! even with all its neighbours. So the result is the same for any number of PEs, unlike in the benchmark,
//! where ties and pruning depend on the division.

use super::fnv::Fnv;
use super::growth::Growth;
use super::neighbours::Neighbours;
use super::points::Points;

/// A cluster, in the order in which its members joined; the first is its seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cluster(pub(super) Vec<u32>);

impl Cluster {
    pub(super) fn seed(&self) -> u32 {
        self.0[0]
    }

    /// Number of members.
    pub(super) fn size(&self) -> u32 {
        self.0.len() as u32
    }
}

/// The best cluster that a PE has found: its size, and its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) size: u32,
    pub(super) seed: u32,
}

/// No seed: the proposal of a PE whose share is empty.
pub(super) const NO_SEED: u32 = u32::MAX;

/// Statistics of the work of one PE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effort {
    /// Clusters grown.
    pub(super) grows: u64,
    /// Members that joined them, without the seeds.
    pub(super) joins: u64,
    /// Seeds skipped.
    pub(super) pruned: u64,
}

/// The state of a run on one PE.
pub(super) struct Clustering {
    pub(super) points: Points,
    pub(super) neighbours: Neighbours,
    /// The squared threshold.
    limit: f32,
    /// The points in no cluster, ascending.
    free: Vec<u32>,
    is_free: Vec<bool>,
    growth: Growth,
    pub(super) clusters: Vec<Cluster>,
    pub(super) effort: Effort,
}

impl Clustering {
    /// All points are free.
    pub(super) fn new(points: Points, threshold: f32) -> Self {
        let count = points.len();
        Clustering {
            neighbours: Neighbours::new(&points, threshold),
            points,
            limit: threshold * threshold,
            free: (0..count).collect(),
            is_free: vec![true; count as usize],
            growth: Growth::default(),
            clusters: Vec::new(),
            effort: Effort::default(),
        }
    }

    /// The number of points in no cluster.
    pub(super) fn free_count(&self) -> u32 {
        self.free.len() as u32
    }

    /// Whether the run is over: the last cluster has one point, or none is free.
    pub(super) fn is_done(&self) -> bool {
        self.free.is_empty() || self.clusters.last().is_some_and(|cluster| cluster.size() == 1)
    }

    /// Grows clusters from the share of rank `rank` of `size`: every `size`-th free point from the `rank`-th
    /// on.
    pub(super) fn propose(&mut self, rank: usize, size: usize) -> Proposal {
        let Clustering { points, neighbours, limit, free, growth, effort, .. } = self;
        let mut best = Proposal { size: 0, seed: NO_SEED };
        for &seed in free.iter().skip(rank).step_by(size) {
            // Seeds ascend, so an equal size does not win either.
            if neighbours.degree(seed) < best.size {
                effort.pruned += 1;
                continue;
            }
            let cluster = growth.grow(points, seed, neighbours.of(seed), *limit);
            effort.grows += 1;
            effort.joins += cluster.len() as u64 - 1;
            if cluster.len() as u32 > best.size {
                best = Proposal { size: cluster.len() as u32, seed };
            }
        }
        best
    }

    /// Grows the cluster of a seed and removes its members from the free points.
    pub(super) fn settle(&mut self, seed: u32) {
        let cluster = self.growth.grow(&self.points, seed, self.neighbours.of(seed), self.limit);
        let cluster = Cluster(cluster.to_vec());
        cluster.0.iter().for_each(|&member| self.is_free[member as usize] = false);
        self.free.retain(|&point| self.is_free[point as usize]);
        self.neighbours.remove(&cluster.0, &self.is_free);
        self.clusters.push(cluster);
    }
}

/// The hash of clusters: size and seed of each, as 32-bit words, little end first.
pub(super) fn hash(clusters: &[Cluster]) -> u64 {
    let mut hash = Fnv::new();
    for cluster in clusters {
        hash.add(&cluster.size().to_le_bytes());
        hash.add(&cluster.seed().to_le_bytes());
    }
    hash.value()
}

/// The sum of the squares of the clusters' sizes.
pub(super) fn squares(clusters: &[Cluster]) -> u64 {
    clusters.iter().map(|cluster| u64::from(cluster.size()).pow(2)).sum()
}
