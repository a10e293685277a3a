//! An operation under way.
//!
//! Invariant: work begins in its order; what cannot go on stays where it is and is tried again.

use super::block::Block;
use super::exchange::Exchange;
use super::group::{MessageGroup, Turn};
use super::plan::{MessageCall, Plan, Work};
use super::transfers::{Lists, Transfers};
use crate::Pe;
use crate::coll::reduction::Combiner;
use crate::coll::schedule::{Buffer, Place, Step};
use crate::job::callback::{self, Callback};
use crate::memory::members::Members;
use crate::msg::TwoSided;
use pelago_fabric::copy;
use std::sync::Arc;

/// The memory that an operation works on. Source and target are those of the call; they are the same if the
/// call is in place. A source that overlaps the target is copied where the algorithm requires it.
#[derive(Clone)]
pub struct Memory {
    pub source: *const u8,
    pub target: *mut u8,
    pub combiner: Option<Combiner>,
}

// SAFETY: the caller that starts an operation keeps the memory valid and leaves it alone until the end; the
// thread that has the operation accesses it.
unsafe impl Send for Memory {}

/// The members have called the operation with different sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeMismatch {
    /// The member whose message had another length.
    pub pe: Pe,
    /// The length that was expected, and that of the message, in bytes.
    pub expected: usize,
    pub found: usize,
}

/// The most scratch memory that a plan keeps for the next operation.
const KEPT_BYTES: usize = 8 << 20;

/// The outcome of an operation.
pub type Outcome = Result<(), SizeMismatch>;

/// The memory of an operation, which the next one with its plan uses again.
#[derive(Default)]
pub(super) struct Workspace {
    lists: Lists,
    scratch: Block,
}

/// An operation under way.
pub(super) struct Operation {
    name: &'static str,
    turn: Turn,
    transfers: Transfers,
    /// The next work, or the receive of an exchange to wait for.
    at: usize,
    run: Run,
    /// The operation that follows when this one is over.
    next: Option<Box<Operation>>,
}

/// The work of an operation.
enum Run {
    Plan(Planned),
    Exchange { exchange: Arc<Exchange>, members: Members, has_begun: bool },
}

/// The plan of a call, and the memory that it works on.
struct Planned {
    plan: Arc<Plan>,
    memory: Memory,
    scratch: Block,
    /// The copy of a source that overlaps the target.
    _source: Block,
}

impl Operation {
    /// A call by its plan.
    ///
    /// # Safety
    /// The memory has the bytes of the call, until the operation is over.
    pub(super) unsafe fn of_call(
        (group, turn): (&MessageGroup, Turn),
        call: &MessageCall,
        plan: Arc<Plan>,
        mut memory: Memory,
    ) -> Operation {
        let Workspace { lists, mut scratch } = plan.workspace();
        if scratch.bytes() < plan.scratch_bytes {
            scratch = Block::new(plan.scratch_bytes);
        }
        let mut copy = Block::default();
        if !call.in_place && plan.needs_copy(memory.source, memory.target) {
            copy = Block::new(plan.source_bytes);
            // SAFETY: the caller promises the source.
            unsafe { copy::copy(copy.at(0), memory.source, plan.source_bytes) };
            memory.source = copy.at(0);
        }
        Operation {
            name: call.operation.name(),
            transfers: Transfers::new(group.context, turn.number, plan.receives.len(), lists),
            turn,
            at: 0,
            run: Run::Plan(Planned { plan, memory, scratch, _source: copy }),
            next: None,
        }
    }

    /// An exchange.
    pub(super) fn of_exchange(
        name: &'static str,
        (group, turn): (&MessageGroup, Turn),
        exchange: Arc<Exchange>,
    ) -> Operation {
        let receives = exchange.receives.len();
        Operation {
            name,
            transfers: Transfers::new(group.context, turn.number, receives, Lists::default()),
            turn,
            at: 0,
            run: Run::Exchange { exchange, members: group.members.clone(), has_begun: false },
            next: None,
        }
    }

    /// The same, followed by another one.
    pub(super) fn followed_by(self, next: Operation) -> Operation {
        Operation { next: Some(Box::new(next)), ..self }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The PE that the next step needs, if it is one.
    pub(super) fn awaits(&self) -> Option<Pe> {
        if !self.turn.has_come() {
            return None;
        }
        match &self.run {
            Run::Plan(Planned { plan, .. }) => match plan.work.get(self.at)? {
                Work::Await(number) => Some(plan.receives[*number].from),
                _ => None,
            },
            Run::Exchange { exchange, members, .. } => exchange.source(members, self.at),
        }
    }

    /// Goes on as far as is possible now: the outcome, if the operation and those that follow it are over.
    #[track_caller]
    pub(super) fn advance(&mut self, world: &TwoSided) -> Option<Outcome> {
        loop {
            if !self.turn.has_come() {
                return None;
            }
            let is_over = match &mut self.run {
                Run::Plan(planned) => planned.advance(self.name, world, &mut self.transfers, &mut self.at),
                Run::Exchange { exchange, members, has_begun } => {
                    if !std::mem::replace(has_begun, true) {
                        exchange.begin(world, members, &mut self.transfers);
                    }
                    while let Some(receive) = exchange.receives.get(self.at)
                        && let Some(found) = self.transfers.arrived_bytes(world, self.at)
                    {
                        self.transfers.add(exchange.accept(receive, members.pe(receive.from), found));
                        self.at += 1;
                    }
                    self.at == exchange.receives.len()
                }
            };
            if !is_over || !self.transfers.have_left(world) {
                return None;
            }
            let outcome = self.transfers.outcome;
            self.turn.end();
            self.retire();
            let Some(next) = self.next.take() else { return Some(outcome) };
            *self = *next;
            self.transfers.outcome = outcome;
        }
    }

    /// Gives memory back for the next operation with this plan.
    fn retire(&mut self) {
        if let Run::Plan(planned) = &mut self.run {
            let mut scratch = std::mem::take(&mut planned.scratch);
            if scratch.bytes() > KEPT_BYTES {
                scratch = Block::default();
            }
            planned.plan.keep(Workspace { lists: self.transfers.take_lists(), scratch });
        }
    }
}

impl Planned {
    /// Goes on as far as is possible now: whether the last step is done.
    #[track_caller]
    fn advance(
        &self,
        name: &'static str,
        world: &TwoSided,
        transfers: &mut Transfers,
        at: &mut usize,
    ) -> bool {
        while let Some(work) = self.plan.work.get(*at) {
            let is_done = match work {
                Work::Post(number) => {
                    let receive = &self.plan.receives[*number];
                    let room = (self.place(receive.into), receive.bytes);
                    // SAFETY: by the plan the place has this many bytes, which the caller and this operation
                    // keep valid.
                    unsafe { transfers.post(world, *number, (receive.from, receive.slot), room) };
                    true
                }
                Work::Await(number) => {
                    let receive = &self.plan.receives[*number];
                    transfers.has_arrived(world, *number, (receive.from, receive.bytes))
                }
                Work::Send { to, slot, from, bytes } => {
                    let data = (self.place(*from).cast_const(), *bytes);
                    // SAFETY: the caller promises what this function requires, as above.
                    unsafe { transfers.send(world, (*to, *slot), data) };
                    true
                }
                Work::Complete => transfers.have_left(world),
                Work::Local(step) => {
                    self.work(name, world, step);
                    true
                }
            };
            if !is_done {
                return false;
            }
            *at += 1;
        }
        true
    }

    #[inline]
    fn place(&self, place: Place) -> *mut u8 {
        let start = match place.buffer {
            Buffer::Source => self.memory.source.cast_mut(),
            Buffer::Target => self.memory.target,
            Buffer::Scratch => self.scratch.at(0),
            Buffer::Mailbox(_) => unreachable!("a plan has its mailboxes in its scratch memory"),
        };
        start.wrapping_add(place.offset)
    }

    /// Copies or combines. Data of a wrong length were reported; what they leave is combined as it is.
    fn work(&self, name: &'static str, world: &TwoSided, step: &Step) {
        match *step {
            Step::Copy { from, into, bytes } => {
                let (from, into) = (self.place(from), self.place(into));
                if from != into {
                    // SAFETY: by the plan both places have this many bytes, and do not overlap.
                    unsafe { copy::copy(into, from, bytes) };
                }
            }
            Step::CopyStrided { from, from_stride, into, into_stride, block, count } => {
                for i in 0..count {
                    let (from, into) = (from.plus(i * from_stride), into.plus(i * into_stride));
                    // SAFETY: by the plan both places have this many bytes, and do not overlap.
                    unsafe { copy::copy(self.place(into), self.place(from), block) };
                }
            }
            Step::Reduce { left, right, into, bytes } => {
                let [left, right, into] = [left, right, into].map(|place| self.place(place));
                let combiner = self.memory.combiner.as_ref();
                let combiner = combiner.expect("an operation that combines has a combiner");
                // SAFETY: by the plan the places have this many bytes.
                let combine = || unsafe { combiner.combine(left, right, into, bytes) };
                match combiner.is_function() {
                    true => callback::run(world, Callback::Function(name), combine),
                    false => combine(),
                }
            }
            _ => unreachable!("a plan has local steps only here"),
        }
    }
}
