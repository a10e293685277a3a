//! The plans that a team has made for its calls, so that a call that is repeated builds nothing.
//!
//! Invariant: a plan is found for a call only if the algorithm and its schedule follow from the values that
//! are compared. There are at most [`PLANS`], and the oldest one makes room.

use super::reduction::Combiner;
use super::schedule::Rank;
use super::select::Laws;
use super::shape::{Operation, Shape};
use super::sync_memory::Plan;
use crate::base::locked::locked;
use crate::coll::team::TeamCore;
use std::sync::{Arc, MutexGuard};

/// Plans that a team keeps.
const PLANS: usize = 16;

/// The ranks that a schedule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    /// All of the team.
    Team,
    /// The same, by dissemination whatever is chosen otherwise.
    TeamByDissemination,
    /// The leaders of the nodes; on its own node the root takes the leader's place.
    Leaders,
    /// The ranks that have this place in their nodes.
    Places(usize),
}

/// The key of a plan: all that it follows from, apart from the team and the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    among: Among,
    operation: Operation,
    root: Rank,
    count: usize,
    element_bytes: usize,
    in_place: bool,
    /// The laws of the operation that combines elements.
    laws: Option<Laws>,
}

impl Key {
    /// Of an operation of that shape, whose blocks are equal.
    pub(crate) fn of(among: Among, shape: &Shape, combiner: Option<&Combiner>) -> Key {
        Key {
            among,
            operation: shape.operation,
            root: shape.root,
            count: shape.count,
            element_bytes: shape.element_bytes,
            in_place: shape.in_place,
            laws: combiner.map(Combiner::laws),
        }
    }
}

impl TeamCore {
    pub(crate) fn plans(&self) -> MutexGuard<'_, Plans> {
        locked(&self.plans)
    }
}

/// The plans of a team.
#[derive(Default)]
pub(crate) struct Plans {
    plans: Vec<(Key, Arc<Plan>)>,
    /// Where the oldest one is, once there are [`PLANS`].
    oldest: usize,
}

impl Plans {
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Plan>> {
        self.plans.iter().find(|(other, _)| other == key).map(|(_, plan)| Arc::clone(plan))
    }

    pub(crate) fn keep(&mut self, key: Key, plan: &Arc<Plan>) {
        let entry = (key, Arc::clone(plan));
        if self.plans.len() < PLANS {
            return self.plans.push(entry);
        }
        self.plans[self.oldest] = entry;
        self.oldest = (self.oldest + 1) % PLANS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spmd;
    use crate::prelude::*;
    use crate::sim::SimParams;

    #[test]
    fn a_repeated_call_builds_nothing_and_few_plans_are_kept() {
        let params = SimParams { nodes: vec![0, 0, 1, 1], maps_nodes: true, ..SimParams::default() };
        let outcome = Spmd::new(4).sim(params).run(|world| {
            let team = world.team();
            let (a, b) = (world.alloc_zeroed::<u64>(9000).unwrap(), world.alloc_zeroed::<u64>(9000).unwrap());
            let call = |len: usize| {
                let (target, source) = (a.span(0..len), b.span(0..len));
                team.all_reduce(ReduceOp::Sum, target, source).unwrap();
                team.broadcast(0, target, source).unwrap();
                team.nonblocking().all_reduce(ReduceOp::Max, target, source).unwrap().wait();
                team.barrier();
                team.core.plans().plans.len()
            };
            let kept = [1, 500, 9000].map(|len| (call(len), call(len), call(len)));
            (0..40).for_each(|len| assert!(call(1000 + len) <= PLANS));
            kept
        });
        for (pe, kept) in outcome.unwrap().into_iter().enumerate() {
            assert!(
                kept.iter().all(|&(first, second, third)| first == second && second == third),
                "{kept:?}"
            );
            // One for the whole team each; leaders one for the all-reduce and one for the broadcast of more
            // than 1 KiB; from 64 KiB on all lead an all-reduce.
            let after = kept.map(|(kept, ..)| kept);
            assert_eq!(after, if pe % 2 == 0 { [1, 4, 7] } else { [1, 2, 4] }, "PE {pe}");
        }
    }
}
