//! The plan of an operation: the schedule of this rank as sends, receives and local work.
//!
//! The sender of a put knows where it goes; the receiver of a message must know it itself. Schedules are pure
//! functions of the shape, so that this rank writes those of the ranks that it hears from as well, and finds
//! the places there.
//!
//! Invariant: each slot that this rank waits for is one receive, started before the wait for it. A receive
//! into the target is started at the beginning, unless the target is the source as well: then the rank may
//! still need what is there, up to the wait.

use super::group::MessageGroup;
use crate::Pe;
use crate::coll::reduction::Combiner;
use crate::coll::schedule::{Buffer, Place, Rank, Remote, Schedule, Slot, Step};
use crate::coll::select::{Laws, Preferences};
use crate::coll::shape::{Operation, Shape};
use pelago_schedule::table::algorithms;
use std::collections::HashMap;

/// The mailboxes of schedules for messages have no limit: a schedule announces nothing, and gets nothing.
/// Small enough for sums of a few sizes not to overflow.
const UNLIMITED_BYTES: usize = usize::MAX >> 8;

/// How mailboxes are aligned, for every type of elements.
const ALIGN_BYTES: usize = 64;

/// A collective operation of a group whose blocks have one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageCall {
    pub operation: Operation,
    pub root: Rank,
    /// Elements of a block.
    pub count: usize,
    pub element_bytes: usize,
    /// Whether the source is the target.
    pub in_place: bool,
}

/// All that a plan follows from, apart from the group and the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(MessageCall, Option<Laws>);

impl Key {
    pub(super) fn of(call: &MessageCall, combiner: Option<&Combiner>) -> Key {
        Key(*call, combiner.map(Combiner::laws))
    }
}

/// A receive of a plan.
#[derive(Clone, Debug)]
pub(super) struct Receive {
    pub(super) from: Pe,
    pub(super) slot: u32,
    pub(super) into: Place,
    pub(super) bytes: usize,
}

/// A step of a plan.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Starts the receive of this number.
    Post(usize),
    /// Waits for the receive of this number.
    Await(usize),
    /// Starts a send.
    Send { to: Pe, slot: u32, from: Place, bytes: usize },
    /// Waits for all sends so far.
    Complete,
    /// Copies or combines, within the memory of this rank.
    Local(Step),
}

/// The plan of one rank.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) work: Vec<Work>,
    pub(super) receives: Vec<Receive>,
    pub(super) scratch_bytes: usize,
    /// Where the mailbox of each slot lies in the memory of all mailboxes.
    pub(super) mailboxes: HashMap<Slot, usize>,
    pub(super) mailbox_bytes: usize,
}

/// The messages of one rank in an operation whose blocks differ: all receives start, then all sends.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Source, offset in the target and length in bytes.
    pub receives: Vec<(Rank, usize, usize)>,
    /// Destination, offset in the source and length in bytes.
    pub sends: Vec<(Rank, usize, usize)>,
    /// Offsets in source and target and length of a copy, in bytes.
    pub copies: Vec<(usize, usize, usize)>,
}

impl Plan {
    /// The plan of a call. `None` if no algorithm can do it.
    pub(super) fn of_call(
        group: &MessageGroup,
        preferences: &Preferences,
        call: &MessageCall,
        laws: Option<Laws>,
    ) -> Option<Plan> {
        let shape = |rank| Shape {
            root: call.root,
            in_place: call.in_place,
            nodes: group.nodes.clone(),
            ..Shape::new(call.operation, rank, group.len(), call.count, call.element_bytes)
        };
        let mine = shape(group.me);
        let choice = preferences.choose(&mine, laws)?;
        let write = |rank| choice.schedule(&shape(rank), UNLIMITED_BYTES);
        if let Some(plan) = Plan::of_schedule(group, &write, call.in_place) {
            return Some(plan);
        }
        // The algorithm gets, which messages cannot do.
        let others = algorithms()
            .filter(|other| other.operation == call.operation && (other.restriction)(&mine).is_none());
        others.into_iter().find_map(|other| {
            let write = |rank| other.schedule(&shape(rank), UNLIMITED_BYTES);
            Plan::of_schedule(group, &write, call.in_place)
        })
    }

    /// The plan for the schedule that `write` writes for each rank. `None` if it is not one of puts with
    /// signals.
    pub(super) fn of_schedule(
        group: &MessageGroup,
        write: &dyn Fn(Rank) -> Schedule,
        in_place: bool,
    ) -> Option<Plan> {
        let schedule = write(group.me);
        let mut plan = Plan { scratch_bytes: schedule.scratch_bytes, ..Plan::default() };
        let mut others = HashMap::new();
        let (mut early, mut steps) = (Vec::new(), Vec::new());
        for step in schedule.steps {
            match step {
                Step::Put {
                    to,
                    from,
                    into: Remote::Target(_) | Remote::Mailbox,
                    bytes,
                    signal: Some(slot),
                } => {
                    steps.push(Work::Send { to: group.members.pe(to), slot: slot as u32, from, bytes });
                }
                Step::Signal { to, slot, announces: None } => {
                    let (to, from) = (group.members.pe(to), Place::source(0));
                    steps.push(Work::Send { to, slot: slot as u32, from, bytes: 0 });
                }
                Step::Wait { of, slot } => {
                    let theirs = others.entry(of).or_insert_with(|| write(of));
                    let (into, bytes) = arrival(theirs, group.me, slot)?;
                    let number = plan.add_receive(group.members.pe(of), slot, into, bytes);
                    let is_early = !in_place || into.buffer != Buffer::Target;
                    if is_early { &mut early } else { &mut steps }.push(Work::Post(number));
                    steps.push(Work::Await(number));
                }
                Step::Complete => steps.push(Work::Complete),
                Step::Copy { .. } | Step::CopyStrided { .. } | Step::Reduce { .. } => {
                    steps.push(Work::Local(step));
                }
                Step::Put { .. } | Step::Get { .. } | Step::Signal { .. } => return None,
            }
        }
        plan.work = early;
        plan.work.append(&mut steps);
        Some(plan)
    }

    fn add_receive(&mut self, from: Pe, slot: Slot, into: Place, bytes: usize) -> usize {
        if into.buffer == Buffer::Mailbox(slot) {
            self.mailboxes.insert(slot, self.mailbox_bytes);
            self.mailbox_bytes += bytes.next_multiple_of(ALIGN_BYTES);
        }
        self.receives.push(Receive { from, slot: slot as u32, into, bytes });
        self.receives.len() - 1
    }

    /// The plan of an exchange. `slot` tells the exchanges of one operation apart.
    pub(super) fn of_exchange(group: &MessageGroup, exchange: &Exchange) -> Plan {
        let mut plan = Plan::default();
        for &(from, offset, bytes) in &exchange.receives {
            let number = plan.add_receive(group.members.pe(from), 0, Place::target(offset), bytes);
            plan.work.push(Work::Post(number));
        }
        for &(to, offset, bytes) in &exchange.sends {
            let (to, from) = (group.members.pe(to), Place::source(offset));
            plan.work.push(Work::Send { to, slot: 0, from, bytes });
        }
        for &(from, into, bytes) in &exchange.copies {
            let (from, into) = (Place::source(from), Place::target(into));
            plan.work.push(Work::Local(Step::Copy { from, into, bytes }));
        }
        plan.work.extend((0..plan.receives.len()).map(Work::Await));
        plan
    }
}

/// Where the data of the signal that arrives in this slot of rank `me` go, by the schedule of its sender, and
/// their length. `None` if there is no such signal.
fn arrival(theirs: &Schedule, me: Rank, slot: Slot) -> Option<(Place, usize)> {
    theirs.steps.iter().find_map(|step| match *step {
        Step::Put { to, into, bytes, signal: Some(signal), .. } if to == me && signal == slot => match into {
            Remote::Target(offset) => Some((Place::target(offset), bytes)),
            Remote::Mailbox => Some((Place::mailbox(slot), bytes)),
            Remote::Announced { .. } => None,
        },
        Step::Signal { to, slot: other, announces: None } if to == me && other == slot => {
            Some((Place::mailbox(slot), 0))
        }
        _ => None,
    })
}
