//! The run of one member, as requests to the group and replies from it, so that it can be driven by a group
//! of PEs, or in one thread together with many other members. Invariant: the requests of all members are the
//! same except for their values, as they follow from the same replies.
//!
//! A round: members that are not needed leave; every member proposes a cluster; a barrier; the largest size;
//! the lowest seed of that size; every member removes that cluster. Source: SHOC's QTC, `QTC.cu` and
//! `comm.cpp`: it also excludes PEs when few points are free, with 512 points for each PE.

use super::clustering::{Clustering, NO_SEED, Proposal};

/// The number of points for which one PE is used.
pub(super) const POINTS_OF_PE: u32 = 512;

/// A request of a member to its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Continue with this number of members. The reply is not used; members with a higher rank make no
    /// further requests.
    Shrink(usize),
    /// Wait for all members; the reply is not used.
    Barrier,
    /// The largest of the values.
    Max(u64),
    /// The smallest of the values.
    Min(u64),
    /// The run is over.
    Done,
}

/// The stage of a member: its last request.
enum Stage {
    Shrink,
    Barrier(Proposal),
    Size(Proposal),
    Seed,
}

/// A change to a smaller group.
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

    /// The request that follows the reply to the previous one.
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

/// The number of PEs, of `size`, that have work when `points` points are free: all, as long as the last one
/// has any.
pub(super) fn pes_needed(points: u32, size: usize) -> usize {
    size.min(points.div_ceil(POINTS_OF_PE) as usize)
}
