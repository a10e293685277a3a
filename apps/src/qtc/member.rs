//! One member's way through a run, as requests to the group and answers from it, so that it can be driven by
//! a group of PEs, or in one thread with many others in step. Invariant: the requests of all members are the
//! same but for the values that they bring, as they follow from answers that are the same.
//!
//! A round: who is not needed leaves; everybody proposes; a barrier; the largest size; the lowest seed of
//! that size; everybody takes that cluster out. Source: SHOC's QTC, `QTC.cu` and `comm.cpp`: it also
//! leaves PEs out when few points are free, 512 to each.

use super::clustering::{Clustering, NO_SEED, Proposal};

/// Points that are worth a PE.
pub(super) const POINTS_OF_PE: u32 = 512;

/// What a member asks of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// To go on with so many members. The answer is not used; who has a higher rank is asked no more.
    Shrink(usize),
    /// To wait for all; the answer is not used.
    Barrier,
    /// The largest of the values.
    Max(u64),
    /// The smallest of the values.
    Min(u64),
    /// Nothing more: the run is over.
    Done,
}

/// Where a member stands: what it has asked for last.
enum Stage {
    Shrink,
    Barrier(Proposal),
    Size(Proposal),
    Seed,
}

/// Which group was left behind for a smaller one, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct Shrink {
    /// Before this round, counted from 1.
    pub(super) iteration: usize,
    /// Points that were free then.
    pub(super) points: u32,
    /// Members from then on.
    pub(super) pes: usize,
}

/// A member of the group.
pub(super) struct Member<'a> {
    pub(super) clustering: &'a mut Clustering,
    rank: usize,
    size: usize,
    stage: Stage,
    /// How the group has shrunk so far.
    pub(super) shrinks: Vec<Shrink>,
}

impl<'a> Member<'a> {
    /// Rank `rank` of `size`, before the first request.
    pub(super) fn new(clustering: &'a mut Clustering, rank: usize, size: usize) -> Self {
        Member { clustering, rank, size, stage: Stage::Seed, shrinks: Vec::new() }
    }

    /// The first request.
    pub(super) fn first(&mut self) -> Request {
        self.begin_round()
    }

    /// The request that follows on the answer to the one before.
    pub(super) fn next(&mut self, answer: u64) -> Request {
        match self.stage {
            Stage::Shrink => self.propose(),
            Stage::Barrier(proposal) => {
                self.stage = Stage::Size(proposal);
                Request::Max(u64::from(proposal.size))
            }
            Stage::Size(Proposal { size, seed }) => {
                self.stage = Stage::Seed;
                Request::Min(u64::from(if u64::from(size) == answer { seed } else { NO_SEED }))
            }
            Stage::Seed => {
                self.clustering.settle(answer as u32);
                if self.clustering.is_done() { Request::Done } else { self.begin_round() }
            }
        }
    }

    fn begin_round(&mut self) -> Request {
        let points = self.clustering.free_count();
        let pes = pes_needed(points, self.size);
        if pes == self.size {
            return self.propose();
        }
        self.shrinks.push(Shrink { iteration: self.clustering.clusters.len() + 1, points, pes });
        self.size = pes;
        self.stage = Stage::Shrink;
        Request::Shrink(pes)
    }

    fn propose(&mut self) -> Request {
        self.stage = Stage::Barrier(self.clustering.propose(self.rank, self.size));
        Request::Barrier
    }
}

/// How many of `size` PEs have work when so many points are free: all, as long as the last one has any.
pub(super) fn pes_needed(points: u32, size: usize) -> usize {
    size.min(points.div_ceil(POINTS_OF_PE) as usize)
}
