//! The group of PEs of a run, and the operations that the run needs. Invariant: all members make the same
//! calls in the same order.

use pelago::Result;
use pelago::coll::sync_memory::SyncCounts;
use pelago::prelude::*;

/// A group of PEs, as one member sees it.
pub(super) trait Group: Sized {
    /// This member's number, from 0.
    fn rank(&self) -> usize;

    /// Number of members.
    fn size(&self) -> usize;

    /// Runs `body` on all members, with memory of the group for their operations.
    fn meet<T>(&self, body: impl FnOnce(&mut dyn Meeting) -> Result<T>) -> Result<T>;

    /// The use of the group's synchronisation memory by this member, including earlier groups that used the
    /// same memory.
    fn sync_counts(&self) -> SyncCounts;

    /// The group of the first `size` members; `None` for the others.
    fn shrink(self, size: usize) -> Result<Option<Self>>;
}

/// The collective operations of a group.
pub(super) trait Meeting {
    /// Returns after all members have arrived.
    fn barrier(&mut self) -> Result<()>;

    /// The largest of the members' values.
    fn max(&mut self, value: u64) -> Result<u64>;

    /// The smallest of the members' values.
    fn min(&mut self, value: u64) -> Result<u64>;
}

/// The members of a team are a group, and meet in a space of the team.
impl Group for Team<'_> {
    fn rank(&self) -> usize {
        self.my_rank()
    }

    fn size(&self) -> usize {
        self.n_pes()
    }

    fn meet<T>(&self, body: impl FnOnce(&mut dyn Meeting) -> Result<T>) -> Result<T> {
        let space = self.space(WORDS * size_of::<u64>())?;
        let words = space.alloc(WORDS)?;
        body(&mut TeamMeeting { team: self, words: &words })
    }

    fn sync_counts(&self) -> SyncCounts {
        Team::sync_counts(self)
    }

    fn shrink(self, size: usize) -> Result<Option<Self>> {
        Team::shrink(self, size)
    }
}

/// The number of words of each member: its value, and two for results. The results of two consecutive
/// reductions are written to different words, as a member may begin the second reduction before another one
/// has read the result of the first.
const WORDS: usize = 3;
const VALUE: usize = 0;
const LARGEST: usize = 1;
const SMALLEST: usize = 2;

/// The members of a team, with their words.
struct TeamMeeting<'t, 'w> {
    team: &'t Team<'w>,
    words: &'t Symmetric<'t, u64>,
}

impl TeamMeeting<'_, '_> {
    fn reduce(&self, op: ReduceOp, value: u64, result: usize) -> Result<u64> {
        self.words.local().set(VALUE, value);
        let word = |index| self.words.span(index..index + 1);
        self.team.all_reduce(op, word(result), word(VALUE))?;
        Ok(self.words.local().get(result))
    }
}

impl Meeting for TeamMeeting<'_, '_> {
    fn barrier(&mut self) -> Result<()> {
        self.team.barrier();
        Ok(())
    }

    fn max(&mut self, value: u64) -> Result<u64> {
        self.reduce(ReduceOp::Max, value, LARGEST)
    }

    fn min(&mut self, value: u64) -> Result<u64> {
        self.reduce(ReduceOp::Min, value, SMALLEST)
    }
}

/// A group of one PE, which needs no communication.
pub(super) struct Alone;

impl Group for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn meet<T>(&self, body: impl FnOnce(&mut dyn Meeting) -> Result<T>) -> Result<T> {
        body(&mut Alone)
    }

    fn sync_counts(&self) -> SyncCounts {
        SyncCounts::default()
    }

    fn shrink(self, size: usize) -> Result<Option<Self>> {
        assert_eq!(size, 1, "a group that shrinks keeps a member at least");
        Ok(Some(self))
    }
}

impl Meeting for Alone {
    fn barrier(&mut self) -> Result<()> {
        Ok(())
    }

    fn max(&mut self, value: u64) -> Result<u64> {
        Ok(value)
    }

    fn min(&mut self, value: u64) -> Result<u64> {
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Performs the operations in smaller and smaller groups. Returns the results on this PE, beside the
    /// expected ones.
    fn shrink_to_one<G: Group>(group: G, rounds: u64) -> Result<Vec<[u64; 2]>> {
        let mut told = Vec::new();
        let mut remaining = Some(group);
        while let Some(group) = remaining {
            let rank = group.rank() as u64;
            group.meet(|meeting| {
                for added in (0..rounds).map(|round| 100 * round) {
                    meeting.barrier()?;
                    let pair = [meeting.max(added + rank)?, meeting.min(added + rank)?];
                    told.push(pair.map(|value| value - added));
                }
                Ok(())
            })?;
            let smaller = group.size() - 1;
            remaining = if smaller > 0 { group.shrink(smaller)? } else { None };
        }
        Ok(told)
    }

    #[test]
    fn everybody_is_told_the_largest_and_the_smallest_of_each_group() {
        for pes in [1, 2, 3, 5] {
            let told = spmd(pes, |world| shrink_to_one(world.team(), 20).unwrap()).unwrap();
            for (pe, told) in told.into_iter().enumerate() {
                let last_ranks = (pe as u64..pes as u64).rev();
                let expected: Vec<_> = last_ranks.flat_map(|last| [[last, 0]; 20]).collect();
                assert_eq!(told, expected, "PE {pe} of {pes}");
            }
        }
        assert_eq!(shrink_to_one(Alone, 20).unwrap(), [[0, 0]; 20]);
    }

    /// The counts of all PEs when a group of `pes` has lost one member after the other.
    fn counts(pes: usize, strategy: &str) -> Vec<SyncCounts> {
        let job = pelago::Spmd::new(pes).setting("PELAGO_COLL_FORM", "schedule");
        let counts = job.setting("PELAGO_SYNC_MEMORY", strategy).run(|world| {
            shrink_to_one(world.team(), 4).unwrap();
            world.team().sync_counts()
        });
        counts.unwrap_or_else(|error| panic!("{pes} PEs, {strategy}: {error}"))
    }

    /// By recursive doubling a PE exchanges signals with those whose numbers differ in one bit, in all
    /// groups that it is in. Each has two slots of it at most, and exchanges need no acknowledgements.
    #[test]
    fn pairs_need_log_n_words_of_a_pe_where_traditional_arrays_need_n_log_n() {
        for log in 1..=5_u64 {
            let pes = 1 << log;
            let counts = counts(pes, "pairwise-doubling");
            let most = |of: fn(&SyncCounts) -> u64| counts.iter().map(of).max().unwrap_or(0);
            assert!((log..=2 * log).contains(&most(|counts| counts.slots)), "{pes} PEs: {counts:?}");
            assert_eq!(counts.iter().map(|counts| counts.chores).sum::<u64>(), 0, "{pes} PEs");
            for counts in &counts {
                assert_eq!((counts.words, counts.bytes), (counts.slots, 16 * counts.slots), "{pes} PEs");
            }
            let traditional = pes as u64 * log - pes as u64 + 1;
            if pes >= 8 {
                assert!(most(|counts| counts.words) < traditional, "{pes} PEs: {counts:?}");
                assert!(most(|counts| counts.bytes) < 8 * traditional, "{pes} PEs: {counts:?}");
            }
        }
    }

    /// Trees with fixed edges need three pairs of a PE for each root, and groups of first ranks share them.
    #[test]
    fn trees_with_fixed_edges_need_the_words_of_three_neighbours() {
        for strategy in ["pairwise-edges", "pairwise-structure"] {
            for pes in [2, 8, 16] {
                let counts = counts(pes, strategy);
                assert!(counts.iter().all(|counts| counts.slots <= 6), "{strategy}, {pes}: {counts:?}");
            }
        }
    }
}
