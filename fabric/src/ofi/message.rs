//! Messages: their format within a message of libfabric, and the buffers in which they arrive.
//!
//! ```text
//! | proof of membership (8 bytes) | sender (4) | kind (4) | header (8) | payload |
//! ```
//! The provider accepts messages from any sender. Only members of the job know the proof. A message without
//! it comes from a stranger and is dropped.
//!
//! Invariant: a posted buffer belongs to libfabric until the queue reports that libfabric has released it.
//! Then it is posted again. The numbers are little-endian.

use super::endpoint::{Endpoint, RECEIVES};
use super::region::Arena;
use super::slots::{BUFFER_BYTES, Kind, Slot, Slots};
use crate::types::{FabricResult, Pe};
use std::cell::RefCell;
use std::ptr::NonNull;

/// Bytes before the payload.
pub(super) const PREFIX_BYTES: usize = 24;
/// The longest payload.
pub(super) const PAYLOAD_BYTES: usize = BUFFER_BYTES - PREFIX_BYTES;
/// Bytes of a buffer in which messages arrive, one behind the other.
const RECEIVE_BYTES: usize = 256 << 10;

/// The kind of a message, as its number.
pub(super) type MessageKind = u32;
/// A message of the caller, who has chosen header and payload.
pub(super) const CALLERS: MessageKind = 0;
/// A put that the receiver executes (`deliveries.rs`).
pub(super) const PUT: MessageKind = 1;
/// The number of such puts that the sender has executed.
pub(super) const ACKNOWLEDGEMENT: MessageKind = 2;

/// Writes the prefix of a message.
pub(super) fn write_prefix(into: &mut [u8], (proof, from): (u64, Pe), kind: MessageKind, header: u64) {
    into[..8].copy_from_slice(&proof.to_le_bytes());
    into[8..16].copy_from_slice(&(u64::from(from as u32) | u64::from(kind) << 32).to_le_bytes());
    into[16..PREFIX_BYTES].copy_from_slice(&header.to_le_bytes());
}

/// Writes a message of the caller. Returns its length.
pub(super) fn pack(into: &mut [u8], member: (u64, Pe), header: u64, payload: &[u8]) -> usize {
    write_prefix(into, member, CALLERS, header);
    into[PREFIX_BYTES..PREFIX_BYTES + payload.len()].copy_from_slice(payload);
    PREFIX_BYTES + payload.len()
}

/// Reads a message: its sender, kind, header and payload. `None` if it does not come from a member of the
/// job.
pub(super) fn unpack(message: &[u8], proof: u64) -> Option<(Pe, MessageKind, u64, &[u8])> {
    let (prefix, payload) = message.split_first_chunk::<PREFIX_BYTES>()?;
    let word = |i: usize| u64::from_le_bytes(prefix.as_chunks().0[i]);
    (word(0) == proof).then(|| (word(1) as u32 as Pe, (word(1) >> 32) as MessageKind, word(2), payload))
}

/// The buffers of an endpoint in which messages arrive.
pub(super) struct Inbox {
    arena: Arena,
    /// Pieces of it, each with the slot by which the queue names it.
    buffers: Vec<(NonNull<Slot>, NonNull<u8>)>,
    /// The slots of buffers of which it is not known whether libfabric owns them, because they were
    /// cancelled, and of those that it had no room for. Buffers that it owns come back before the queue is
    /// empty again.
    in_doubt: RefCell<Vec<NonNull<Slot>>>,
}

// SAFETY: buffers and slots are memory with no tie to a thread; libfabric writes them until the endpoint is
// closed.
unsafe impl Send for Inbox {}

impl Inbox {
    /// Posts all buffers.
    ///
    /// # Errors
    /// If the provider refuses.
    pub(super) fn open(endpoint: &Endpoint, slots: &mut Slots) -> FabricResult<Inbox> {
        endpoint.set_least_room(BUFFER_BYTES)?;
        let (domain, bytes) = (&endpoint.domain, RECEIVES * RECEIVE_BYTES);
        let arena = Arena::open(domain, bytes).map_err(|error| error.at(domain.me))?;
        let buffers = arena.pieces(RECEIVE_BYTES).map(|buffer| {
            let slot = slots.take(Kind::Receive, domain.me, None).expect("nothing is under way yet");
            (slot, buffer)
        });
        let buffers: Vec<_> = buffers.collect();
        let inbox = Inbox { arena, buffers, in_doubt: RefCell::default() };
        inbox.buffers.iter().try_for_each(|(slot, _)| inbox.post(endpoint, *slot))?;
        Ok(inbox)
    }

    /// Posts a buffer again that libfabric has released.
    ///
    /// # Errors
    /// If the provider refuses.
    pub(super) fn post(&self, endpoint: &Endpoint, slot: NonNull<Slot>) -> FabricResult<()> {
        let found = self.buffers.iter().find(|(own, _)| *own == slot);
        let (_, buffer) = found.expect("only the slots of buffers are posted");
        // SAFETY: the buffer lives as long as the inbox, which is dropped after the endpoint; libfabric has
        // released it, or never had it.
        if !unsafe { endpoint.post((buffer.as_ptr(), RECEIVE_BYTES), self.arena.descriptor(), slot)? } {
            // It is posted again when the queue is empty the next time.
            self.in_doubt.borrow_mut().push(slot);
        }
        Ok(())
    }

    /// Finds out whether libfabric owns a buffer, by cancelling it.
    pub(super) fn doubt(&self, endpoint: &Endpoint, slot: NonNull<Slot>) {
        self.in_doubt.borrow_mut().push(slot);
        endpoint.cancel(slot);
    }

    /// Notes that the queue has given a buffer back, and posts it again.
    ///
    /// # Errors
    /// If the provider refuses to take it again.
    pub(super) fn came_back(&self, endpoint: &Endpoint, slot: NonNull<Slot>) -> FabricResult<()> {
        self.in_doubt.borrow_mut().retain(|other| *other != slot);
        self.post(endpoint, slot)
    }

    /// Posts the buffers again that are in doubt. The queue is empty, so libfabric does not own them.
    ///
    /// # Errors
    /// If the provider refuses to take one again.
    pub(super) fn settle(&self, endpoint: &Endpoint) -> FabricResult<()> {
        let settled = self.in_doubt.take();
        settled.into_iter().try_for_each(|slot| self.post(endpoint, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let mut room = [0xEE; BUFFER_BYTES];
        for payload in [&[][..], &[7], &[1; PAYLOAD_BYTES]] {
            let bytes = pack(&mut room, (99, 70_000), u64::MAX - 1, payload);
            assert_eq!(unpack(&room[..bytes], 99), Some((70_000, CALLERS, u64::MAX - 1, payload)));
            assert_eq!(unpack(&room[..bytes], 98), None, "somebody else's");
        }
        assert_eq!(unpack(&room[..PREFIX_BYTES - 1], 99), None, "too short");
    }
}
