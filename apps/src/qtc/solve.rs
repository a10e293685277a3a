//! A run over all PEs of the world. Every PE makes the points and their lists for itself, and searches its
//! share of the seeds; the group of PEs that search shrinks. Invariant: PE 0 stays to the end, so it knows
//! the whole result; PEs that leave the group wait for the end of the run.

use std::time::Duration;

use pelago::Result;
use pelago::coll::sync_memory::SyncCounts;
use pelago::prelude::*;

use super::clustering::{self, Cluster, Clustering, Effort};
use super::drive::drive;
use super::group::Alone;
use super::member::Shrink;
use super::points::Points;
use super::problem::Problem;
use crate::collect::collect;

/// The results on PE 0.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) points_hash: u64,
    pub(super) degree_max: u32,
    pub(super) clusters: Vec<Cluster>,
    /// Points in no cluster.
    pub(super) left: u32,
    pub(super) shrinks: Vec<Shrink>,
    /// By PE.
    pub(super) accounts: Vec<Account>,
    /// Time for points and lists, on PE 0.
    pub(super) setup_seconds: f64,
    /// Time from the first round to the last, on PE 0.
    pub(super) seconds: f64,
}

/// The statistics of a PE at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) effort: Effort,
    /// The number of rounds in which it took part.
    pub(super) rounds: u64,
    /// The hash of the clusters that it knows.
    pub(super) hash: u64,
    /// Its use of synchronisation memory.
    pub(super) sync: SyncCounts,
}

impl Account {
    fn of(clustering: &Clustering, sync: SyncCounts) -> Self {
        let Clustering { effort, clusters, .. } = clustering;
        Account { effort: *effort, rounds: clusters.len() as u64, hash: clustering::hash(clusters), sync }
    }

    fn words(&self) -> [u64; 11] {
        let Effort { grows, joins, pruned } = self.effort;
        let SyncCounts { signals, chores, slots, words, bytes, is_of_pairs } = self.sync;
        let is_of_pairs = u64::from(is_of_pairs);
        let sync = [signals, chores, slots, words, bytes, is_of_pairs];
        let own = [grows, joins, pruned, self.rounds, self.hash];
        std::array::from_fn(|i| if i < own.len() { own[i] } else { sync[i - own.len()] })
    }

    fn from_words(words: &[u64]) -> Self {
        let effort = Effort { grows: words[0], joins: words[1], pruned: words[2] };
        let sync = SyncCounts {
            signals: words[5],
            chores: words[6],
            slots: words[7],
            words: words[8],
            bytes: words[9],
            is_of_pairs: words[10] != 0,
        };
        Account { effort, rounds: words[3], hash: words[4], sync }
    }
}

/// Collective: clusters the points of `problem`. `progress` gets the number of free points after every
/// round. The outcome is complete on PE 0; the other PEs have a part of it.
pub(super) fn solve(world: &World, problem: Problem, progress: &mut dyn FnMut(u32)) -> Result<Outcome> {
    let start = world.wtime();
    let mut clustering = Clustering::new(Points::generate(problem.points), problem.threshold);
    let (points_hash, degree_max) = (clustering.points.hash(), clustering.neighbours.degree_max());
    let setup = world.wtime() - start;
    let ((shrinks, sync), time) = run(world, &mut clustering, progress)?;
    let words = collect(world, &Account::of(&clustering, sync).words())?;
    Ok(Outcome {
        points_hash,
        degree_max,
        left: clustering.free_count(),
        clusters: clustering.clusters,
        shrinks,
        accounts: words.iter().map(|words| Account::from_words(words)).collect(),
        setup_seconds: setup.as_secs_f64(),
        seconds: time.as_secs_f64(),
    })
}

/// Collective: the rounds. Returns how the group shrank, this PE's use of synchronisation memory, and the
/// time until this PE had finished its part.
fn run(
    world: &World,
    clustering: &mut Clustering,
    progress: &mut dyn FnMut(u32),
) -> Result<((Vec<Shrink>, SyncCounts), Duration)> {
    world.barrier();
    let begun = world.wtime();
    let ended = match world.n_pes() {
        1 => drive(Alone, clustering, progress)?,
        _ => drive(world.team(), clustering, progress)?,
    };
    Ok((ended, world.wtime() - begun))
}
