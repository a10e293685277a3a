//! An operation whose messages have sizes of their own: all receives start, then all sends.
//!
//! Invariant: the k-th message to a peer in a slot is the k-th that the peer receives from this rank in it.

use super::transfers::Transfers;
use crate::Pe;
use crate::coll::schedule::Rank;
use crate::memory::members::Members;
use crate::msg::TwoSided;
use pelago_fabric::copy;

/// The messages of one rank.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    pub receives: Vec<Receive>,
    pub sends: Vec<Send>,
    /// Source, target and length in bytes; they are the same or do not overlap.
    pub copies: Vec<(*const u8, *mut u8, usize)>,
}

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
        for &(from, into, bytes) in &self.copies {
            if bytes > 0 && from != into.cast_const() {
                // SAFETY: as above, and they do not overlap.
                unsafe { copy::copy(into, from, bytes) };
            }
        }
    }

    /// The source and the length of a receive.
    pub(super) fn receive(&self, members: &Members, number: usize) -> Option<(Pe, usize)> {
        let receive = self.receives.get(number)?;
        Some((members.pe(receive.from), receive.bytes))
    }
}
