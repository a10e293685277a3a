//! A group of PEs that exchange messages in a context, and the plans of its operations.

use super::direct::KeptTeam;
use super::online::GroupTuner;
use super::plan::{Key, MessageCall, Plan};
use super::transfers::SLOT_BITS;
use crate::Pe;
use crate::base::locked::locked;
use crate::coll::nodes::Nodes;
use crate::coll::reduction::Combiner;
use crate::coll::schedule::Rank;
use crate::memory::members::Members;
use crate::msg::envelope::Context;
use pelago_fabric::sync::{AtomicU16, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The first number that is kept for an operation; the tag of a message has the bits of twice as many.
const KEPT: u32 = 1 << (u32::BITS - SLOT_BITS - 1);

/// The number of an operation that is started again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationNumber(pub(super) u32);

/// The operations with each number: 8 KiB, from the first operation on.
type Turns = [Uses; KEPT as usize];

/// How many operations have had a number, and how many of them are over.
#[derive(Default)]
struct Uses {
    started: AtomicU16,
    over: AtomicU16,
}

/// The turn of an operation among those that have its number, one after the other. It begins when those
/// before it are over here: messages of both would have the same tags.
pub(super) struct Turn {
    turns: Arc<Turns>,
    /// The number in the tags of its messages.
    pub(super) number: u32,
    index: u32,
    before: u16,
}

impl Turn {
    fn new(turns: &OnceLock<Arc<Turns>>, number: u32, index: u32) -> Turn {
        let turns = turns.get_or_init(|| Arc::new(std::array::from_fn(|_| Uses::default())));
        let before = turns[index as usize].started.fetch_add(1, Ordering::Relaxed);
        Turn { turns: Arc::clone(turns), number, index, before }
    }

    /// Whether all operations before it are over.
    #[inline]
    pub(super) fn has_come(&self) -> bool {
        // SYNC POINT turn: acquires that the operation before has received all its messages.
        self.turns[self.index as usize].over.load(Ordering::Acquire) == self.before
    }

    /// Lets the next operation with this number begin.
    #[inline]
    pub(super) fn end(&self) {
        // SYNC POINT turn: releases what this operation has received.
        self.turns[self.index as usize].over.store(self.before.wrapping_add(1), Ordering::Release);
    }
}

/// Plans that a group keeps. One that was used seldom makes room.
const PLANS: usize = 16;

/// A group of PEs and the context of its collective operations.
pub struct MessageGroup {
    pub context: Context,
    pub members: Members,
    pub me: Rank,
    /// The nodes of the ranks; empty if all are on one.
    pub nodes: Nodes,
    /// The number of operations started, those of kept numbers apart.
    started: AtomicU32,
    /// The turns of these operations, and of those with kept numbers.
    turns: OnceLock<Arc<Turns>>,
    kept_turns: OnceLock<Arc<Turns>>,
    /// How many numbers were kept for operations that are started again and again.
    kept: AtomicU32,
    /// The team for direct operations, once one was tried.
    pub(super) team: OnceLock<Option<KeptTeam>>,
    plans: Mutex<Vec<(Key, Arc<Plan>)>>,
    /// The state of the online tuner, made when it is first needed.
    pub(super) online: OnceLock<Box<GroupTuner>>,
}

impl MessageGroup {
    /// The group of these members, of which this PE has rank `me`. `node` returns the node of a PE.
    pub fn new(context: Context, members: Members, me: Rank, node: impl Fn(Pe) -> u32) -> MessageGroup {
        let nodes: Vec<u32> = members.iter().map(node).collect();
        let are_several = nodes.iter().any(|&node| node != nodes[0]);
        let nodes = if are_several { nodes.into() } else { Nodes::default() };
        MessageGroup {
            context,
            members,
            me,
            nodes,
            started: AtomicU32::new(0),
            turns: OnceLock::new(),
            kept_turns: OnceLock::new(),
            kept: AtomicU32::new(0),
            team: OnceLock::new(),
            plans: Mutex::default(),
            online: OnceLock::new(),
        }
    }

    /// The number of members.
    #[inline]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The turn of the next operation, the same at all members: they start their operations in one order.
    pub(super) fn next_turn(&self) -> Turn {
        let number = self.started.fetch_add(1, Ordering::Relaxed) % KEPT;
        Turn::new(&self.turns, number, number)
    }

    /// The turn of an operation with this number, which starts again.
    pub(super) fn turn_of(&self, OperationNumber(number): OperationNumber) -> Turn {
        Turn::new(&self.kept_turns, number, number - KEPT)
    }

    /// A number for an operation that is started again and again, in any order with others of this kind. All
    /// members call this in the same order. Operations that are 2048 calls apart have the same number:
    /// they must be started in one order.
    pub fn keep_number(&self) -> OperationNumber {
        OperationNumber(KEPT + self.kept.fetch_add(1, Ordering::Relaxed) % KEPT)
    }

    /// The plan of a call, made now if it was not kept.
    pub(super) fn plan(
        &self,
        call: &MessageCall,
        combiner: Option<&Combiner>,
        make: impl FnOnce() -> Option<Plan>,
    ) -> Option<Arc<Plan>> {
        let mut plans = locked(&self.plans);
        if let Some(place) = plans.iter().position(|(key, _)| key.is_of(call, combiner)) {
            // A plan that is used often moves to the front.
            let at = place / 2;
            plans.swap(place, at);
            return Some(Arc::clone(&plans[at].1));
        }
        let plan = Arc::new(make()?);
        plans.truncate(PLANS - 1);
        plans.push((Key::of(call, combiner), Arc::clone(&plan)));
        Some(plan)
    }
}
