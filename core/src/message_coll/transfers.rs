//! The messages of an operation: its sends and receives, and what has come of them.
//!
//! Invariant: a receive is posted once, before the wait for it.

use super::operation::{Outcome, SizeMismatch};
use crate::Pe;
use crate::msg::TwoSided;
use crate::msg::envelope::{Context, Envelope, Tag};
use crate::msg::operation::{Address, Mode, Started};
use crate::msg::request::{RequestId, Status};

/// Bits of a tag that have the slot; the others have the number of the operation.
pub(super) const SLOT_BITS: u32 = 20;

/// The tag of a message of operation `number` in a slot.
pub(super) fn tag_of(number: u32, slot: u32) -> Tag {
    number << SLOT_BITS | slot
}

/// The state of a receive.
#[derive(Clone, Copy)]
enum Arrival {
    Open,
    Pending(RequestId),
    Done(usize),
}

/// The messages of an operation.
pub(super) struct Transfers {
    context: Context,
    /// The tag of slot 0.
    tag: Tag,
    arrivals: Vec<Arrival>,
    sends: Vec<RequestId>,
    pub(super) outcome: Outcome,
}

impl Transfers {
    /// Those of operation `number`, with room for its receives.
    pub(super) fn new(context: Context, number: u32, receives: usize, lists: Lists) -> Transfers {
        let Lists { mut arrivals, mut sends } = lists;
        arrivals.clear();
        arrivals.resize(receives, Arrival::Open);
        sends.clear();
        Transfers { context, tag: tag_of(number, 0), arrivals, sends, outcome: Ok(()) }
    }

    /// The lists, for the next operation.
    pub(super) fn take_lists(&mut self) -> Lists {
        Lists { arrivals: std::mem::take(&mut self.arrivals), sends: std::mem::take(&mut self.sends) }
    }

    /// Starts receive `number`.
    ///
    /// # Safety
    /// The room is valid for writes until the receive is over.
    pub(super) unsafe fn post(
        &mut self,
        world: &TwoSided,
        number: usize,
        (from, slot): (Pe, u32),
        room: (*mut u8, usize),
    ) {
        let tag = self.tag | slot;
        let pattern = Envelope { context: self.context, source: from as u32, tag };
        // SAFETY: the caller promises what this function requires.
        self.arrivals[number] = match unsafe { world.start_receive(pattern, room) } {
            Started::Pending(id) => Arrival::Pending(id),
            Started::Done(status) => Arrival::Done(status.bytes),
        };
    }

    /// The length of the message of receive `number`, if it has come.
    pub(super) fn arrived_bytes(&mut self, world: &TwoSided, number: usize) -> Option<usize> {
        match self.arrivals[number] {
            Arrival::Open => unreachable!("a receive is posted before its wait"),
            Arrival::Done(bytes) => Some(bytes),
            Arrival::Pending(id) => {
                let Status { bytes, .. } = world.look(id)?;
                self.arrivals[number] = Arrival::Done(bytes);
                Some(bytes)
            }
        }
    }

    /// Whether receive `number`, of `bytes` bytes from `from`, is over.
    pub(super) fn has_arrived(
        &mut self,
        world: &TwoSided,
        number: usize,
        (from, bytes): (Pe, usize),
    ) -> bool {
        let Some(found) = self.arrived_bytes(world, number) else { return false };
        if found != bytes {
            self.add(Err(SizeMismatch { pe: from, expected: bytes, found }));
        }
        true
    }

    /// Adds the outcome of a receive. The first error stays.
    pub(super) fn add(&mut self, outcome: Outcome) {
        self.outcome = self.outcome.and(outcome);
    }

    /// Starts a send.
    ///
    /// # Safety
    /// The data are valid for reads until the send is over.
    pub(super) unsafe fn send(&mut self, world: &TwoSided, (to, slot): (Pe, u32), data: (*const u8, usize)) {
        let to = Address { context: self.context, pe: to, tag: self.tag | slot };
        // SAFETY: the caller promises what this function requires.
        let started = unsafe { world.start_send(to, data, Mode::Standard) };
        self.sends.extend(started.expect("a tag of an operation is not the wildcard"));
    }

    /// Whether all sends are over.
    pub(super) fn have_left(&mut self, world: &TwoSided) -> bool {
        self.sends.retain(|&id| world.look(id).is_none());
        self.sends.is_empty()
    }
}

/// The memory of the lists of an operation, which the next one uses again.
#[derive(Default)]
pub(super) struct Lists {
    arrivals: Vec<Arrival>,
    sends: Vec<RequestId>,
}
