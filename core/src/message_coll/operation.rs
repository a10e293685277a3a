//! An operation under way.
//!
//! Invariant: work begins in its order; what cannot go on stays where it is and is tried again.

use super::group::MessageGroup;
use super::plan::{Plan, Receive, Work};
use crate::Pe;
use crate::coll::reduction::Combiner;
use crate::coll::schedule::{Buffer, Place, Step};
use crate::job::callback::{self, Callback};
use crate::msg::TwoSided;
use crate::msg::envelope::{Context, Envelope, Tag};
use crate::msg::operation::{Address, Mode, Started};
use crate::msg::request::{RequestId, Status};
use pelago_fabric::copy;
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

/// Bits of a tag that have the slot; the others have the number of the operation.
const SLOT_BITS: u32 = 20;
const ALIGN_BYTES: usize = 64;

/// The memory that an operation works on. Source and target are those of the call; they are the same if the
/// call is in place.
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

/// The outcome of an operation.
pub type Outcome = Result<(), SizeMismatch>;

/// Memory of an operation that is aligned for every type of elements.
struct Block(NonNull<u8>, usize);

impl Block {
    fn new(bytes: usize) -> Block {
        if bytes == 0 {
            return Block(NonNull::dangling(), 0);
        }
        let layout = Layout::from_size_align(bytes, ALIGN_BYTES).expect("an amount of memory that can exist");
        // SAFETY: the layout has a size.
        let start = NonNull::new(unsafe { alloc(layout) });
        Block(start.unwrap_or_else(|| std::alloc::handle_alloc_error(layout)), bytes)
    }

    fn at(&self, offset: usize) -> *mut u8 {
        self.0.as_ptr().wrapping_add(offset)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.1 > 0 {
            // SAFETY: it was allocated with this layout.
            unsafe { dealloc(self.0.as_ptr(), Layout::from_size_align_unchecked(self.1, ALIGN_BYTES)) };
        }
    }
}

// SAFETY: it owns its memory.
unsafe impl Send for Block {}

/// The state of a receive.
#[derive(Clone, Copy)]
enum Arrival {
    Open,
    Pending(RequestId),
    Done(usize),
}

/// An operation under way.
pub(super) struct Operation {
    name: &'static str,
    context: Context,
    plan: Arc<Plan>,
    memory: Memory,
    scratch: Block,
    mailboxes: Block,
    /// The tag of its slot 0.
    tag: Tag,
    /// The next work.
    at: usize,
    arrivals: Vec<Arrival>,
    sends: Vec<RequestId>,
    outcome: Outcome,
}

impl Operation {
    pub(super) fn new(
        name: &'static str,
        group: &MessageGroup,
        plan: Arc<Plan>,
        memory: Memory,
    ) -> Operation {
        let number = group.next_number();
        Operation {
            name,
            context: group.context,
            scratch: Block::new(plan.scratch_bytes),
            mailboxes: Block::new(plan.mailbox_bytes),
            memory,
            tag: number << SLOT_BITS,
            at: 0,
            arrivals: vec![Arrival::Open; plan.receives.len()],
            sends: Vec::new(),
            outcome: Ok(()),
            plan,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The PE that the next step needs, if it is one.
    pub(super) fn awaits(&self) -> Option<Pe> {
        match self.plan.work.get(self.at)? {
            Work::Await(number) => Some(self.plan.receives[*number].from),
            _ => None,
        }
    }

    /// Goes on as far as is possible now: the outcome, if the operation is over.
    #[track_caller]
    pub(super) fn advance(&mut self, world: &TwoSided) -> Option<Outcome> {
        let plan = Arc::clone(&self.plan);
        while let Some(work) = plan.work.get(self.at) {
            let is_done = match work {
                Work::Post(number) => self.post(world, *number, &plan.receives[*number]),
                Work::Await(number) => self.has_arrived(world, *number, &plan.receives[*number]),
                Work::Send { to, slot, from, bytes } => self.send(world, (*to, *slot), (*from, *bytes)),
                Work::Complete => self.have_left(world),
                Work::Local(step) => self.work(world, step),
            };
            if !is_done {
                return None;
            }
            self.at += 1;
        }
        self.have_left(world).then_some(self.outcome)
    }

    fn post(&mut self, world: &TwoSided, number: usize, receive: &Receive) -> bool {
        let tag = self.tag | receive.slot;
        let pattern = Envelope { context: self.context, source: receive.from as u32, tag };
        let into = (self.place(receive.into), receive.bytes);
        // SAFETY: by the plan the place has this many bytes, which the caller and this operation keep valid.
        self.arrivals[number] = match unsafe { world.start_receive(pattern, into) } {
            Started::Pending(id) => Arrival::Pending(id),
            Started::Done(status) => Arrival::Done(status.bytes),
        };
        true
    }

    fn has_arrived(&mut self, world: &TwoSided, number: usize, receive: &Receive) -> bool {
        if let Arrival::Pending(id) = self.arrivals[number] {
            match world.look(id) {
                Some(Status { bytes, .. }) => self.arrivals[number] = Arrival::Done(bytes),
                None => return false,
            }
        }
        if let Arrival::Done(found) = self.arrivals[number]
            && found != receive.bytes
            && self.outcome.is_ok()
        {
            self.outcome = Err(SizeMismatch { pe: receive.from, expected: receive.bytes, found });
        }
        true
    }

    fn send(&mut self, world: &TwoSided, (pe, slot): (Pe, u32), (from, bytes): (Place, usize)) -> bool {
        let to = Address { context: self.context, pe, tag: self.tag | slot };
        let data = (self.place(from).cast_const(), bytes);
        // SAFETY: by the plan the place has this many bytes, which the caller and this operation keep valid.
        let started = unsafe { world.start_send(to, data, Mode::Standard) };
        self.sends.extend(started.expect("a tag of an operation is not the wildcard"));
        true
    }

    fn have_left(&mut self, world: &TwoSided) -> bool {
        self.sends.retain(|&id| world.look(id).is_none());
        self.sends.is_empty()
    }

    fn place(&self, place: Place) -> *mut u8 {
        let start = match place.buffer {
            Buffer::Source => self.memory.source.cast_mut(),
            Buffer::Target => self.memory.target,
            Buffer::Scratch => self.scratch.at(0),
            Buffer::Mailbox(slot) => self.mailboxes.at(self.plan.mailboxes.get(&slot).copied().unwrap_or(0)),
        };
        start.wrapping_add(place.offset)
    }

    /// Copies or combines. Data of a wrong length were reported; what they leave is combined as it is.
    fn work(&self, world: &TwoSided, step: &Step) -> bool {
        match *step {
            Step::Copy { from, into, bytes } => {
                // SAFETY: by the plan both places have this many bytes, and do not overlap.
                unsafe { copy::copy(self.place(into), self.place(from), bytes) };
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
                    true => callback::run(world, Callback::Function(self.name), combine),
                    false => combine(),
                }
            }
            _ => unreachable!("a plan has local steps only here"),
        }
        true
    }
}
