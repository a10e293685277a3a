//! An operation whose messages have sizes of their own: all receives start, then all sends. A blocking one
//! with small messages sends first, and receives one message after the other.
//!
//! Invariant: the k-th message to a peer in a slot is the k-th that the peer receives from this rank in it.

use super::group::MessageGroup;
use super::operation::{Outcome, SizeMismatch};
use super::transfers::{Transfers, tag_of};
use crate::Pe;
use crate::base::locked::locked;
use crate::coll::schedule::Rank;
use crate::memory::members::Members;
use crate::msg::TwoSided;
use crate::msg::envelope::Envelope;
use crate::msg::operation::{Address, Mode};
use pelago_fabric::copy;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};

/// The messages of one rank.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    pub receives: Few<Receive>,
    pub sends: Few<Send>,
    /// Source, target and length in bytes; they are the same or do not overlap.
    pub copies: Few<(*const u8, *mut u8, usize)>,
    /// Whether messages may be shorter than their receives, as in point-to-point communication. Otherwise
    /// they must have the same lengths.
    pub may_be_shorter: bool,
    /// Where messages are noted that were shorter, if the caller wants to know them.
    pub shorter: Option<Arc<Shorter>>,
}

/// The messages of an exchange that were shorter than their receives: where each was to go, and its length in
/// bytes.
#[derive(Debug, Default)]
pub struct Shorter(Mutex<Vec<(usize, usize)>>);

impl Shorter {
    /// Forgets all, before the exchange starts again.
    pub fn clear(&self) {
        locked(&self.0).clear();
    }

    /// The length of the message that went there; `bytes`, that of its receive, if it was not shorter.
    pub fn found(&self, into: *const u8, bytes: usize) -> usize {
        let shorter = locked(&self.0);
        shorter.iter().find(|(other, _)| *other == into.addr()).map_or(bytes, |&(_, found)| found)
    }
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
            let (pe, tag) = (group.members.pe(receive.from), tag_of(number, receive.slot));
            let envelope = Envelope { context: group.context, source: pe as u32, tag };
            // SAFETY: the caller guarantees the room.
            let found = unsafe { world.receive_message(envelope, (receive.into, receive.bytes)) }.bytes;
            outcome = outcome.and(self.accept(receive, pe, found));
        }
        for id in sends {
            world.wait_for_message(id);
        }
        outcome
    }

    /// The source of a receive.
    pub(super) fn source(&self, members: &Members, number: usize) -> Option<Pe> {
        Some(members.pe(self.receives.get(number)?.from))
    }

    /// Takes note of the length of a message that has come.
    #[inline]
    pub(super) fn accept(&self, receive: &Receive, pe: Pe, found: usize) -> Outcome {
        let expected = receive.bytes;
        if found == expected {
            return Ok(());
        }
        if found > expected || !self.may_be_shorter {
            return Err(SizeMismatch { pe, expected, found });
        }
        if let Some(Shorter(shorter)) = self.shorter.as_deref() {
            locked(shorter).push((receive.into.addr(), found));
        }
        Ok(())
    }
}
