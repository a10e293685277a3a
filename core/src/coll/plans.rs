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
pub const PLANS: usize = 16;

/// The ranks that a schedule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
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
pub struct Key {
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
    pub fn of(among: Among, shape: &Shape, combiner: Option<&Combiner>) -> Key {
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
    pub fn plans(&self) -> MutexGuard<'_, Plans> {
        locked(&self.plans)
    }
}

/// The plans of a team.
#[derive(Default)]
pub struct Plans {
    pub plans: Vec<(Key, Arc<Plan>)>,
    /// Where the oldest one is, once there are [`PLANS`].
    oldest: usize,
}

impl Plans {
    pub fn get(&self, key: &Key) -> Option<Arc<Plan>> {
        self.plans.iter().find(|(other, _)| other == key).map(|(_, plan)| Arc::clone(plan))
    }

    pub fn keep(&mut self, key: Key, plan: &Arc<Plan>) {
        let entry = (key, Arc::clone(plan));
        if self.plans.len() < PLANS {
            return self.plans.push(entry);
        }
        self.plans[self.oldest] = entry;
        self.oldest = (self.oldest + 1) % PLANS;
    }
}
