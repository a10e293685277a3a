//! The plan of an operation: the schedule of this rank as sends, receives and local work.
//!
//! The sender of a put knows where it goes; the receiver of a message must know it itself. Schedules are pure
//! functions of the shape, so that this rank writes those of the ranks that it hears from as well, and finds
//! the places there.
//!
//! Invariant: each slot that this rank waits for is one receive, started before the wait for it. A receive
//! into the target is started at the beginning, unless the target is the source as well: then the rank may
//! still need what is there, up to the wait. Mailboxes lie in the scratch memory.

use super::block::ALIGN_BYTES;
use super::group::MessageGroup;
use super::operation::Workspace;
use super::overlap::source_must_be_copied;
use super::transfers::SLOT_BITS;
use crate::Pe;
use crate::base::locked::locked;
use crate::base::trace::{Category, Event, Span};
use crate::coll::candidates::Candidate;
use crate::coll::reduction::Combiner;
use crate::coll::schedule::{Buffer, Place, Rank, Remote, Schedule, Slot, Step};
use crate::coll::select::{Laws, Preferences};
use crate::coll::shape::{Blocks, Operation, Shape};
use crate::msg::TwoSided;
use pelago_schedule::table::Algorithm;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// The mailboxes of schedules for messages have no limit: a schedule announces nothing, and gets nothing.
/// Small enough for sums of a few sizes not to overflow.
const UNLIMITED_BYTES: usize = usize::MAX >> 8;

/// A collective operation of a group that an algorithm performs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageCall {
    pub operation: Operation,
    pub root: Rank,
    /// Elements of a block.
    pub count: usize,
    pub element_bytes: usize,
    /// Whether the source is the target.
    pub in_place: bool,
    /// All-gather: the elements that each rank contributes, if their numbers differ. They lie one behind the
    /// other in the targets.
    pub counts: Option<Arc<[usize]>>,
}

impl MessageCall {
    /// An operation on blocks of bytes, whose source and target are apart.
    pub fn of_bytes(operation: Operation, root: Rank, bytes: usize) -> MessageCall {
        MessageCall { operation, root, count: bytes, element_bytes: 1, in_place: false, counts: None }
    }

    /// Records the call, if this PE records its operations; `form` says how it is carried out.
    #[inline]
    pub(super) fn record<'w>(&self, world: &'w TwoSided, form: &'static str) -> Option<Span<'w>> {
        let (bytes, name) = (self.count * self.element_bytes, self.operation.name());
        world.tally.span(|| Event::new(Category::Collective, name).detailed(form).of_bytes(bytes))
    }

    /// The shape of the call for a rank.
    pub(super) fn shape(&self, group: &MessageGroup, rank: Rank) -> Shape {
        let blocks = self.counts.as_ref().map_or(Blocks::Equal, |counts| Blocks::Counts(counts.to_vec()));
        Shape {
            root: self.root,
            in_place: self.in_place,
            nodes: group.nodes.clone(),
            blocks,
            ..Shape::new(self.operation, rank, group.len(), self.count, self.element_bytes)
        }
    }
}

/// All that a plan follows from, apart from the group and the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    call: MessageCall,
    laws: Option<Laws>,
}

impl Key {
    pub(super) fn of(call: &MessageCall, combiner: Option<&Combiner>) -> Key {
        Key { call: call.clone(), laws: combiner.map(Combiner::laws) }
    }

    pub(super) fn is_of(&self, call: &MessageCall, combiner: Option<&Combiner>) -> bool {
        self.call == *call && self.laws == combiner.map(Combiner::laws)
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

/// Whether some rank of an algorithm gets, which messages cannot do. All members must know it of all.
pub(super) fn gets(algorithm: &Algorithm) -> bool {
    algorithm.operation == Operation::AllGather && algorithm.name == "hierarchical"
}

/// The plan of one rank.
#[derive(Default)]
pub(super) struct Plan {
    /// The name of the algorithm.
    pub(super) algorithm: &'static str,
    pub(super) work: Vec<Work>,
    pub(super) receives: Vec<Receive>,
    /// Size of the scratch memory, with the mailboxes.
    pub(super) scratch_bytes: usize,
    pub(super) source_bytes: usize,
    target_bytes: usize,
    /// The distance from target to source of the first call where they overlapped, and whether the source
    /// must be copied then.
    overlap: OnceLock<(isize, bool)>,
    /// Memory of an operation that is over.
    spare: Mutex<Option<Workspace>>,
}

impl Plan {
    /// The plan of a call. `None` if no algorithm can do it.
    pub(super) fn of_call(
        group: &MessageGroup,
        preferences: &Preferences,
        call: &MessageCall,
        laws: Option<Laws>,
    ) -> Option<Plan> {
        let mine = call.shape(group, group.me);
        let mut choice = preferences.choose(&mine, laws)?;
        if gets(choice.algorithm) {
            choice = Preferences::default().choose(&mine, laws)?;
        }
        Plan::by(group, call, choice.into())
    }

    /// The plan of a call by an algorithm. `None` if it cannot do it by messages.
    pub(super) fn by(group: &MessageGroup, call: &MessageCall, by: Candidate) -> Option<Plan> {
        let mine = call.shape(group, group.me);
        let write = |rank| by.schedule(&call.shape(group, rank), UNLIMITED_BYTES);
        let plan = Plan::of_schedule(group, &write, call.in_place)?;
        let (source_bytes, target_bytes) = (mine.source_bytes(), mine.target_bytes());
        Some(Plan { algorithm: by.algorithm.name, source_bytes, target_bytes, ..plan })
    }

    /// The plan for the schedule that `write` writes for each rank. `None` if it is not one of puts with
    /// signals.
    fn of_schedule(group: &MessageGroup, write: &dyn Fn(Rank) -> Schedule, in_place: bool) -> Option<Plan> {
        let schedule = write(group.me);
        let mut writer = Writer {
            plan: Plan { scratch_bytes: schedule.scratch_bytes, ..Plan::default() },
            mailboxes: HashMap::new(),
        };
        // The schedule of another rank, as long as this one waits for more of its messages.
        let (mut others, mut waits) = (HashMap::new(), HashMap::<Rank, usize>::new());
        for step in &schedule.steps {
            if let Step::Wait { of, .. } = step {
                *waits.entry(*of).or_default() += 1;
            }
        }
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
                    let (to, from, slot) = (group.members.pe(to), writer.place(from)?, number_of(slot)?);
                    steps.push(Work::Send { to, slot, from, bytes });
                }
                Step::Signal { to, slot, announces: None } => {
                    let (to, from, slot) = (group.members.pe(to), Place::source(0), number_of(slot)?);
                    steps.push(Work::Send { to, slot, from, bytes: 0 });
                }
                Step::Wait { of, slot } => {
                    let theirs = others.entry(of).or_insert_with(|| write(of));
                    let (into, bytes) = arrival(theirs, group.me, slot)?;
                    let left = waits.entry(of).and_modify(|left| *left -= 1).or_default();
                    if *left == 0 {
                        others.remove(&of);
                    }
                    let number = writer.add_receive(group.members.pe(of), slot, into, bytes)?;
                    let is_early = !in_place || into.buffer != Buffer::Target;
                    if is_early { &mut early } else { &mut steps }.push(Work::Post(number));
                    steps.push(Work::Await(number));
                }
                Step::Complete => steps.push(Work::Complete),
                Step::Copy { .. } | Step::CopyStrided { .. } | Step::Reduce { .. } => {
                    steps.push(Work::Local(writer.local(step)?));
                }
                Step::Put { .. } | Step::Get { .. } | Step::Signal { .. } => return None,
            }
        }
        let mut plan = writer.plan;
        plan.work = early;
        plan.work.append(&mut steps);
        Some(plan)
    }

    /// Whether the source must be copied before the operation, because it overlaps the target and the
    /// algorithm reads it after it has written there.
    #[inline]
    pub(super) fn needs_copy(&self, source: *const u8, target: *mut u8) -> bool {
        let (from, into) = (source.addr(), target.addr());
        let overlaps = from < into + self.target_bytes && into < from + self.source_bytes;
        overlaps && !target.is_null() && self.needs_copy_at((from as isize).wrapping_sub(into as isize))
    }

    #[cold]
    fn needs_copy_at(&self, distance: isize) -> bool {
        let look = || source_must_be_copied(&self.work, &self.receives, distance);
        let &(known, outcome) = self.overlap.get_or_init(|| (distance, look()));
        if known == distance { outcome } else { look() }
    }

    /// Memory for an operation.
    pub(super) fn workspace(&self) -> Workspace {
        locked(&self.spare).take().unwrap_or_default()
    }

    /// Keeps the memory of an operation that is over for the next one.
    pub(super) fn keep(&self, workspace: Workspace) {
        *locked(&self.spare) = Some(workspace);
    }
}

/// A plan that is being written.
struct Writer {
    plan: Plan,
    /// Where the mailbox of each slot lies in the scratch memory.
    mailboxes: HashMap<Slot, usize>,
}

impl Writer {
    /// Adds a receive: its number.
    fn add_receive(&mut self, from: Pe, slot: Slot, into: Place, bytes: usize) -> Option<usize> {
        let (plan, number) = (&mut self.plan, number_of(slot)?);
        let into = match into.buffer {
            Buffer::Mailbox(_) => {
                let offset = plan.scratch_bytes.next_multiple_of(ALIGN_BYTES);
                plan.scratch_bytes = offset + bytes;
                self.mailboxes.insert(slot, offset);
                Place { buffer: Buffer::Scratch, offset }
            }
            _ => into,
        };
        plan.receives.push(Receive { from, slot: number, into, bytes });
        Some(plan.receives.len() - 1)
    }

    /// The place in the memory of the plan. `None` for a mailbox that nothing was waited for in.
    fn place(&self, place: Place) -> Option<Place> {
        match place.buffer {
            Buffer::Mailbox(slot) => {
                let offset = self.mailboxes.get(&slot)? + place.offset;
                Some(Place { buffer: Buffer::Scratch, offset })
            }
            _ => Some(place),
        }
    }

    fn local(&self, step: Step) -> Option<Step> {
        Some(match step {
            Step::Copy { from, into, bytes } => {
                Step::Copy { from: self.place(from)?, into: self.place(into)?, bytes }
            }
            Step::CopyStrided { from, from_stride, into, into_stride, block, count } => {
                let (from, into) = (self.place(from)?, self.place(into)?);
                Step::CopyStrided { from, from_stride, into, into_stride, block, count }
            }
            Step::Reduce { left, right, into, bytes } => {
                let [left, right, into] = [self.place(left)?, self.place(right)?, self.place(into)?];
                Step::Reduce { left, right, into, bytes }
            }
            _ => return None,
        })
    }
}

/// The number of a slot in tags. `None` if it has more bits than they have for it.
fn number_of(slot: Slot) -> Option<u32> {
    u32::try_from(slot).ok().filter(|&slot| slot < 1 << SLOT_BITS)
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

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
