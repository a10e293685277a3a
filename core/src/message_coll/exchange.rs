//! An operation whose messages have sizes of their own: all receives start, then all sends. A blocking one
//! with small messages sends first, and receives one message after the other.
//!
//! Invariant: the k-th message to a peer in a slot is the k-th that the peer receives from this rank in it.

use super::group::MessageGroup;
use super::operation::{Outcome, SizeMismatch};
use super::transfers::{Transfers, tag_of};
use crate::Pe;
use crate::coll::schedule::Rank;
use crate::memory::members::Members;
use crate::msg::TwoSided;
use crate::msg::envelope::Envelope;
use crate::msg::operation::{Address, Mode};
use pelago_fabric::copy;
use smallvec::SmallVec;

/// The messages of one rank.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    pub receives: Few<Receive>,
    pub sends: Few<Send>,
    /// Source, target and length in bytes; they are the same or do not overlap.
    pub copies: Few<(*const u8, *mut u8, usize)>,
}

/// A list that has few entries in small groups.
type Few<T> = SmallVec<[T; 3]>;

/// A blocking exchange posts its receives before it sends if one has more bytes.
const SOON_BYTES: usize = 4 << 10;

/// A message that this rank receives.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    pub from: Rank,
    /// A number below 2^20 that tells messages of a peer apart.
    pub slot: u32,
    pub into: *mut u8,
    pub bytes: usize,
}

/// A message that this rank sends.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    pub to: Rank,
    /// As in [`Receive`].
    pub slot: u32,
    pub from: *const u8,
    pub bytes: usize,
}

// SAFETY: the caller that starts an exchange keeps the memory valid and leaves it alone until the end; the
// thread that has the operation accesses it.
unsafe impl std::marker::Send for Exchange {}
// SAFETY: what holds for `Send` above holds for `Sync` as well.
unsafe impl Sync for Exchange {}

impl Exchange {
    /// Starts all messages, and copies.
    pub(super) fn begin(&self, world: &TwoSided, members: &Members, transfers: &mut Transfers) {
        for (number, receive) in self.receives.iter().enumerate() {
            let from = (members.pe(receive.from), receive.slot);
            // SAFETY: the caller that started the exchange keeps the memory valid until it is over.
            unsafe { transfers.post(world, number, from, (receive.into, receive.bytes)) };
        }
        for send in &self.sends {
            let to = (members.pe(send.to), send.slot);
            // SAFETY: the caller promises what this function requires, as above.
            unsafe { transfers.send(world, to, (send.from, send.bytes)) };
        }
        // SAFETY: the caller promises what this function requires, as above.
        unsafe { self.copy() };
    }

    /// # Safety
    /// As [`run`](Exchange::run).
    unsafe fn copy(&self) {
        for &(from, into, bytes) in &self.copies {
            if bytes > 0 && from != into.cast_const() {
                // SAFETY: the caller guarantees both, and they do not overlap.
                unsafe { copy::copy(into, from, bytes) };
            }
        }
    }

    /// Whether the messages that this rank receives are so small that it need not start all receives first.
    pub(super) fn is_soon_over(&self) -> bool {
        self.receives.iter().all(|receive| receive.bytes <= SOON_BYTES)
    }

    /// Sends, copies and receives as operation `number` of the group.
    ///
    /// # Safety
    /// The memory is valid and left alone until the end.
    #[track_caller]
    pub(super) unsafe fn run(&self, world: &TwoSided, group: &MessageGroup, number: u32) -> Outcome {
        let mut sends = Few::new();
        for send in &self.sends {
            let tag = tag_of(number, send.slot);
            let to = Address { context: group.context, pe: group.members.pe(send.to), tag };
            // SAFETY: the caller guarantees the data.
            let started = unsafe { world.start_send(to, (send.from, send.bytes), Mode::Standard) };
            sends.extend(started.expect("a tag of an operation is not the wildcard"));
        }
        // SAFETY: the caller promises what this function requires.
        unsafe { self.copy() };
        let mut outcome = Ok(());
        for receive in &self.receives {
            let (pe, tag, expected) =
                (group.members.pe(receive.from), tag_of(number, receive.slot), receive.bytes);
            let envelope = Envelope { context: group.context, source: pe as u32, tag };
            // SAFETY: the caller guarantees the room.
            let found = unsafe { world.receive_message(envelope, (receive.into, expected)) }.bytes;
            if found != expected {
                outcome = outcome.and(Err(SizeMismatch { pe, expected, found }));
            }
        }
        for id in sends {
            world.wait_for_message(id);
        }
        outcome
    }

    /// The source and the length of a receive.
    pub(super) fn receive(&self, members: &Members, number: usize) -> Option<(Pe, usize)> {
        let receive = self.receives.get(number)?;
        Some((members.pe(receive.from), receive.bytes))
    }
}
