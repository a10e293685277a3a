//! The actions of ranks, and the workloads that consist of them.
//!
//! Invariant: the program of a rank is a pure function of the rank; nothing in it depends on time.

use crate::time::Time;
use pelago_schedule::nodes::Nodes;
use pelago_schedule::schedule::{ANNOUNCEMENT_BYTES, MAILBOX_BYTES, Rank, Step};
use pelago_schedule::shape::{Operation, Shape};
use pelago_schedule::table::Algorithm;
use std::sync::Arc;

/// One action of a rank. Ranks are those of the whole job.
#[derive(Clone, Debug)]
pub enum Action {
    /// The processor computes for this time.
    Compute(Time),
    /// Starts a one-sided transfer; with a slot, the target is signalled when the data have arrived.
    Put {
        /// The target rank.
        to: u32,
        /// The number of bytes.
        bytes: u64,
        /// The slot of the target that is signalled. Without a slot, `Complete` waits for the arrival.
        signal: Option<u32>,
    },
    /// Starts to read from another rank; the data are there after `Complete`.
    Get {
        /// The rank that is read.
        of: u32,
        /// The number of bytes.
        bytes: u64,
    },
    /// Waits for one signal in a slot.
    Wait {
        /// The slot of this rank.
        slot: u32,
    },
    /// Waits until all puts without a slot and all gets have ended, and all sources are free.
    Complete,
    /// Copies data in the rank's own memory.
    Copy {
        /// The number of bytes.
        bytes: u64,
    },
    /// Combines data in the rank's own memory.
    Reduce {
        /// The number of bytes of the result.
        bytes: u64,
    },
    /// Starts to send a two-sided message.
    Send {
        /// The receiver.
        to: u32,
        /// The number of bytes.
        bytes: u64,
        /// The tag.
        tag: u32,
    },
    /// Posts a receive: of the first message of `of` with this tag that no earlier receive has taken.
    Receive {
        /// The sender.
        of: u32,
        /// The tag.
        tag: u32,
    },
    /// Waits until all sends have left and all posted receives have been fulfilled.
    Finish,
    /// A collective operation, which all members of its team start in the same order.
    Collective(Arc<Collective>),
}

impl Action {
    /// A signal without data.
    pub fn signal(to: u32, slot: u32) -> Action {
        Action::Put { to, bytes: 0, signal: Some(slot) }
    }

    /// The action for a step of a schedule, whose ranks are numbers in the team.
    pub(crate) fn of_step(step: &Step, members: &Members) -> Action {
        let world = |rank: Rank| members.world(rank) as u32;
        match *step {
            Step::Put { to, bytes, signal, .. } => {
                Action::Put { to: world(to), bytes: bytes as u64, signal: signal.map(|slot| slot as u32) }
            }
            Step::Get { of, bytes, .. } => Action::Get { of: world(of), bytes: bytes as u64 },
            Step::Signal { to, slot, announces: None } => Action::signal(world(to), slot as u32),
            // The place and its size are data.
            Step::Signal { to, slot, announces: Some(_) } => {
                let bytes = ANNOUNCEMENT_BYTES as u64;
                Action::Put { to: world(to), bytes, signal: Some(slot as u32) }
            }
            Step::Wait { slot, .. } => Action::Wait { slot: slot as u32 },
            Step::Complete => Action::Complete,
            Step::Copy { bytes, .. } => Action::Copy { bytes: bytes as u64 },
            Step::CopyStrided { block, count, .. } => Action::Copy { bytes: (block * count) as u64 },
            Step::Reduce { bytes, .. } => Action::Reduce { bytes: bytes as u64 },
        }
    }
}

/// The ranks of a team: `count` ranks from `first` on, at the distance `stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members {
    /// The rank of the job that is number 0 of the team.
    pub first: usize,
    /// The distance between two of them; at least 1.
    pub stride: usize,
    /// The number of ranks.
    pub count: usize,
}

impl Members {
    /// All ranks of a job of `n`.
    pub const fn all(n: usize) -> Members {
        Members { first: 0, stride: 1, count: n }
    }

    /// The rank of the job that has this number in the team.
    #[inline]
    pub fn world(&self, number: usize) -> usize {
        self.first + number * self.stride
    }

    /// The number in the team of a rank of the job.
    #[inline]
    pub fn number(&self, rank: usize) -> Option<usize> {
        let distance = rank.checked_sub(self.first)?;
        let number = distance / self.stride;
        (distance.is_multiple_of(self.stride) && number < self.count).then_some(number)
    }
}

/// A collective operation of a team.
#[derive(Clone, Debug)]
pub struct Collective {
    /// The number of the team: below 2^15, the same for all operations of one team and of no other.
    pub team: u16,
    /// Its members.
    pub members: Members,
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// The shape of every rank, in which `rank` is replaced by that of each.
    pub shape: Shape,
    /// The bytes that a mailbox holds.
    pub mailbox_bytes: usize,
}

/// The ranks whose messages are counted, of each kind.
const SAMPLES: usize = 32;
/// The golden ratio of 2^64: its multiples are spread evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Collective {
    /// An operation of all ranks of a job of `n` on `pes_per_node` ranks a node, with blocks of `bytes`
    /// bytes, in elements of 8 bytes if that is possible.
    pub fn world(algorithm: &'static Algorithm, n: usize, bytes: usize, pes_per_node: usize) -> Collective {
        let element_bytes = if bytes.is_multiple_of(8) { 8 } else { 1 };
        let mut shape = Shape::new(algorithm.operation, 0, n, bytes / element_bytes, element_bytes);
        if n > pes_per_node {
            shape.nodes = Nodes::from_iter((0..n).map(|rank| (rank / pes_per_node.max(1)) as u32));
        }
        let members = Members::all(n);
        Collective { team: 0, members, algorithm, shape, mailbox_bytes: MAILBOX_BYTES }
    }

    /// About the messages of the operation: those of rank 0, and means of some other first ranks of nodes and
    /// of some of all others. These are scattered: multiples of a power of two would be those that send most
    /// in a tree.
    pub fn messages(&self) -> f64 {
        let n = self.shape.n;
        let count = |rank| {
            let shape = Shape { rank, ..self.shape.clone() };
            self.algorithm.schedule(&shape, self.mailbox_bytes).counts().messages as f64
        };
        let of = |ranks: &[usize]| {
            let scattered = |i: u64| ranks[i.wrapping_mul(GOLDEN) as usize % ranks.len()];
            let samples: Vec<usize> = match ranks.len() {
                ..=SAMPLES => ranks.to_vec(),
                _ => (1..=SAMPLES as u64).map(scattered).collect(),
            };
            let sum: f64 = samples.iter().map(|rank| count(*rank)).sum();
            sum / samples.len().max(1) as f64 * ranks.len() as f64
        };
        let groups = self.shape.nodes.groups(n);
        let is_leader = |rank: &usize| groups.leader(groups.group(*rank)) == *rank;
        let (leaders, others): (Vec<_>, Vec<_>) = (1..n).partition(is_leader);
        count(0) + of(&leaders) + of(&others)
    }

    /// The operation.
    pub fn operation(&self) -> Operation {
        self.algorithm.operation
    }
}

/// The actions of one rank, made while they are taken.
pub type Program<'a> = Box<dyn Iterator<Item = Action> + 'a>;

/// A workload: a program for each rank. A collective operation alone, or the skeleton of an application.
pub trait Workload {
    /// The number of ranks.
    fn ranks(&self) -> usize;

    /// The program of a rank.
    fn program(&self, rank: usize) -> Program<'_>;
}

/// A workload from a function that returns the program of each rank.
#[derive(Clone, Debug)]
pub struct Skeleton<F> {
    ranks: usize,
    program: F,
}

impl<F, I> Skeleton<F>
where
    F: Fn(usize) -> I,
    I: IntoIterator<Item = Action>,
    I::IntoIter: 'static,
{
    /// A workload of `ranks` ranks.
    pub fn new(ranks: usize, program: F) -> Skeleton<F> {
        Skeleton { ranks, program }
    }
}

impl<F, I> Workload for Skeleton<F>
where
    F: Fn(usize) -> I,
    I: IntoIterator<Item = Action>,
    I::IntoIter: 'static,
{
    fn ranks(&self) -> usize {
        self.ranks
    }

    fn program(&self, rank: usize) -> Program<'_> {
        Box::new((self.program)(rank).into_iter())
    }
}

impl Workload for Arc<Collective> {
    fn ranks(&self) -> usize {
        self.members.count
    }

    fn program(&self, _: usize) -> Program<'_> {
        Box::new(std::iter::once(Action::Collective(self.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranks_are_inverse() {
        let members = Members { first: 3, stride: 4, count: 5 };
        let ranks: Vec<_> = (0..5).map(|number| members.world(number)).collect();
        assert_eq!(ranks, [3, 7, 11, 15, 19]);
        for rank in 0..40 {
            assert_eq!(members.number(rank), ranks.iter().position(|other| *other == rank));
        }
    }
}
