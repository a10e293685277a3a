//! How the members of a team tell each other the words of a trial: a small all-reduce that nobody waits for,
//! as a schedule whose messages fit into mailboxes.
//!
//! Invariant: the schedule has no step that writes or reads memory of another member but its mailboxes, so
//! source and target are scratch memory of this member alone.

use super::trial::{NO_WORDS, Trial, Words};
use super::{Class, Form, Speaker};
use crate::base::error::Result;
use crate::coll::engine::{Operands, Progress};
use crate::coll::reduction::{Combiner, ReduceOp};
use crate::coll::schedule::{Builder, MAILBOX_BYTES, Place, Rank, Schedule};
use crate::coll::symmetric_region::Bases;
use crate::coll::sync_memory::Plan;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use pelago_fabric::copy;
use pelago_schedule::tree::k_nomial;
use std::sync::Arc;

const _: () = assert!(size_of::<Words>() <= MAILBOX_BYTES);

/// The name of the all-reduce in messages.
const NAME: &str = "all_reduce of the online tuner";

/// The members of a team, over the engine of schedules.
pub struct ByEngine<'a> {
    pub world: &'a Teams,
    pub team: &'a Arc<TeamCore>,
}

/// An all-reduce under way, and the scratch memory that it works in.
pub struct Asked {
    progress: Arc<Progress>,
    scratch: (usize, usize),
}

/// The schedule of a rank: up a binomial tree to rank 0, and down again, from mailbox to mailbox. The slot of
/// a message has the number of its sender; that of the parent's is the number of ranks.
fn schedule(rank: Rank, n: usize) -> Schedule {
    let (bytes, own, links) = (size_of::<Words>(), Place::target(0), k_nomial(rank, n, 2));
    let mut builder = Builder::new(MAILBOX_BYTES);
    builder.copy(Place::source(0), own, bytes);
    for &child in links.children.iter().rev() {
        builder.wait(child, child);
        builder.reduce(own, Place::mailbox(child), own, bytes);
    }
    if let Some(parent) = links.parent {
        builder.send(parent, own, bytes, rank);
        builder.wait(parent, n);
        builder.copy(Place::mailbox(n), own, bytes);
    }
    links.children.iter().for_each(|&child| builder.send(child, own, bytes, n));
    builder.finish()
}

impl ByEngine<'_> {
    /// Where the words of this member lie that it gives, and those of all.
    fn places(&self, (offset, _): (usize, usize)) -> (*mut u8, *mut u8) {
        let start = self.world.memory.heap(self.world.my_pe()).wrapping_add(offset);
        (start, start.wrapping_add(size_of::<Words>()))
    }

    fn start(&self, words: &Words) -> Result<Asked> {
        let (world, team) = (self.world, self.team);
        let bytes = size_of::<Words>();
        let scratch = world.take_scratch(team, NAME, 2 * bytes)?.expect("this is more than 0 bytes");
        let (source, target) = self.places(scratch);
        // SAFETY: the scratch memory has room for the words twice, and is this member's until it is given
        // back.
        unsafe { copy::copy(source, words.as_ptr().cast(), bytes) };
        let plan = Arc::new(Plan::new(schedule(team.my_rank(), team.len())).by("a tree of mailboxes"));
        let operands = Operands {
            source,
            source_bytes: bytes,
            target,
            target_bytes: bytes,
            target_bases: Bases::Same(0),
            combiner: Combiner::of::<u64>(ReduceOp::Max),
        };
        // SAFETY: both places have as many bytes as the schedule needs. No other member accesses them.
        let progress = unsafe { world.start_collective(team, NAME, &plan, operands, [None, None])? };
        Ok(Asked { progress, scratch })
    }
}

impl Speaker for ByEngine<'_> {
    type Asked = Asked;

    fn ask(&self, words: &Words) -> Asked {
        self.start(words).unwrap_or_else(|error| self.world.fail(&error.to_string()))
    }

    fn take(&self, asked: Asked) -> Words {
        self.world.await_collective(NAME, &asked.progress);
        let mut most = NO_WORDS;
        // SAFETY: the words lie there since the all-reduce is over.
        unsafe { copy::copy(most.as_mut_ptr().cast(), self.places(asked.scratch).1, size_of::<Words>()) };
        self.world.give_scratch(self.team, Some(asked.scratch));
        most
    }

    fn settle(&self, class: &Class, forms: &[Form], trial: &Trial) {
        let nodes = self.team.nodes.groups(self.team.len());
        self.world.settle_online(("symmetric", self.team.my_rank(), &nodes), class, forms, trial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::check::{CheckOptions, check_schedules};
    use crate::coll::schedule::{Remote, Step};
    use crate::coll::shape::{Operation, Shape};
    use crate::coll::table::Fold;

    fn shape(rank: Rank, n: usize) -> Shape {
        Shape::new(Operation::AllReduce, rank, n, size_of::<Words>() / 8, 8)
    }

    #[test]
    fn the_words_come_to_all_ranks() {
        for n in 1..35 {
            let schedules: Vec<_> = (0..n).map(|rank| schedule(rank, n)).collect();
            let report =
                check_schedules(&schedules, Fold::Any, &|rank| shape(rank, n), &CheckOptions::default());
            let report = report.unwrap_or_else(|defect| panic!("{n} ranks: {defect}"));
            assert_eq!(report.messages, 2 * (n - 1));
        }
    }

    #[test]
    fn nobody_else_touches_source_and_target() {
        for (n, rank) in (1..70).flat_map(|n| (0..n).map(move |rank| (n, rank))) {
            for step in schedule(rank, n).steps {
                let is_private = match step {
                    Step::Put { into, .. } => into == Remote::Mailbox,
                    Step::Signal { announces, .. } => announces.is_none(),
                    Step::Get { .. } => false,
                    _ => true,
                };
                assert!(is_private, "rank {rank} of {n}: {step}");
            }
        }
    }
}
