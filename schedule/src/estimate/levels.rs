//! The steps of an operation in two levels, as far as its time depends on them: the members of a node bring
//! their data to their leader, the leaders exchange them by a schedule, and bring the result to the members.
//!
//! Invariant: these steps are for estimates alone; nobody executes them.

use crate::candidates::Candidate;
use crate::nodes::Groups;
use crate::schedule::{MAILBOX_BYTES, Place, Rank, Remote, Slot, Step};
use crate::shape::Shape;
use std::sync::Arc;

/// An operation in two levels.
#[derive(Clone, Debug)]
pub struct Levels {
    /// The ranks of each node.
    pub groups: Arc<Groups>,
    /// The algorithm between the leaders of the nodes, and its shape, whose ranks are the nodes.
    pub between: (Candidate, Shape),
    /// The members of each node that lead, each for a part of the data.
    pub leaders: usize,
    /// The bytes that each member brings to its leaders; `None` if the operation does not begin so.
    pub to_leaders: Option<usize>,
    /// The bytes that the leaders bring to each member; `None` if the operation does not end so.
    pub to_members: Option<usize>,
}

/// The slots of the messages in a node, to which the rank of the sender is added. No schedule has so large
/// ones.
pub const TO_LEADERS: Slot = 1 << 24;
const TO_MEMBERS: Slot = 2 << 24;

impl Levels {
    /// The steps of a rank.
    pub fn steps(&self, rank: Rank) -> Vec<Step> {
        let groups = &self.groups;
        let (own, place) = (groups.group(rank), groups.place(rank));
        let ranks = groups.ranks(own);
        let is_leader = place < self.leaders;
        let (candidate, shape) = &self.between;
        let mut steps = Vec::new();
        let leaders: Vec<_> = ranks.iter().take(self.leaders).filter(|leader| *leader != rank).collect();
        let mates: Vec<_> = ranks.iter().filter(|mate| is_leader && *mate != rank).collect();
        if let Some(bytes) = self.to_leaders {
            let part = bytes / self.leaders;
            steps.extend(leaders.iter().map(|to| put(*to, part, TO_LEADERS + rank)));
            for &of in &mates {
                steps.push(Step::Wait { of, slot: TO_LEADERS + of });
                if shape.operation.combines() {
                    let (own, other) = (Place::target(0), Place::source(0));
                    steps.push(Step::Reduce { left: own, right: other, into: own, bytes: part });
                }
            }
        }
        if is_leader {
            let led = |group| {
                let ranks = groups.ranks(group);
                ranks.at(place.min(ranks.len() - 1))
            };
            let others: Vec<_> = (0..groups.len()).map(led).collect();
            let schedule = candidate.schedule(&Shape { rank: own, ..shape.clone() }, MAILBOX_BYTES);
            steps.extend(schedule.among(&others).steps);
        }
        if let Some(bytes) = self.to_members {
            let part = bytes / self.leaders;
            steps.extend(mates.iter().map(|to| put(*to, part, TO_MEMBERS + rank)));
            steps.extend(leaders.iter().map(|of| Step::Wait { of: *of, slot: TO_MEMBERS + of }));
        }
        steps
    }
}

/// A message to another rank of the node.
fn put(to: Rank, bytes: usize, slot: Slot) -> Step {
    Step::Put { to, from: Place::source(0), into: Remote::Target(0), bytes, signal: Some(slot) }
}
