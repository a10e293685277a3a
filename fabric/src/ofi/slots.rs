//! The operations of an endpoint that are under way, each in a slot whose address libfabric hands back when
//! the operation is complete.
//!
//! Invariant: a slot is libfabric's from the call that accepted its operation until its completion was read;
//! it stays at its address. There are never more slots than a completion queue has room for.

use crate::types::{Pe, Token};
use std::cell::UnsafeCell;
use std::ptr::NonNull;

/// Bytes of a buffer that a slot brings along: for messages, and for puts whose source is to be free at once.
pub(super) const BUFFER_BYTES: usize = 8192;
/// Operations that may be under way.
pub(super) const SLOTS_MAX: usize = 1024;
/// Of those, so many with buffers.
const BUFFERS_MAX: usize = 256;

/// What a slot's operation is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Put,
    Get,
    Atomic,
    Message,
    /// A buffer in which messages arrive.
    Receive,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Put => "a put",
            Kind::Get => "a get",
            Kind::Atomic => "an atomic",
            Kind::Message => "a message",
            Kind::Receive => "waiting for messages",
        }
    }
}

/// An operation under way. It begins with the room that libfabric may ask for in a context.
#[repr(C)]
pub(super) struct Slot {
    room: [usize; 8],
    index: u32,
    pub(super) kind: Kind,
    pub(super) pe: Pe,
    pub(super) token: Option<Token>,
    /// Whether the token is owed the word that the source is free.
    pub(super) owes_sent: bool,
    /// An atomic that the caller wants nothing back from, but libfabric counts among those that fetch.
    pub(super) fetches_in_vain: bool,
    /// Operands of an atomic, and a place for an old value that nobody wants.
    operands: [u64; 2],
    spare: u64,
    pub(super) buffer: Option<Box<[u8]>>,
}

impl Slot {
    /// Keeps the operands of an atomic: where they lie, and a place for an old value that nobody wants.
    pub(super) fn keep_operands(&mut self, operands: [u64; 2]) -> [*mut u64; 3] {
        self.operands = operands;
        let [operand, compare] = &mut self.operands;
        [operand, compare, &mut self.spare]
    }
}

/// All slots of an endpoint.
#[derive(Default)]
pub(super) struct Slots {
    /// Has room for all from the first one on, so that it never moves.
    slots: Vec<UnsafeCell<Slot>>,
    free: Vec<u32>,
    buffers: Vec<Box<[u8]>>,
    buffers_made: usize,
}

impl Slots {
    /// A slot for an operation; `None` if too many are under way.
    pub(super) fn take(&mut self, kind: Kind, pe: Pe, token: Option<Token>) -> Option<NonNull<Slot>> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() == SLOTS_MAX => return None,
            None => {
                let index = self.slots.len() as u32;
                let (room, operands) = ([0; 8], [0; 2]);
                self.slots.reserve_exact(SLOTS_MAX - self.slots.len());
                self.slots.push(UnsafeCell::new(Slot {
                    room,
                    index,
                    kind,
                    pe,
                    token,
                    owes_sent: false,
                    fetches_in_vain: false,
                    operands,
                    spare: 0,
                    buffer: None,
                }));
                index
            }
        };
        let mut slot = NonNull::new(self.slots[index as usize].get()).expect("a slot is somewhere");
        // SAFETY: a free slot is nobody else's; the slots do not move.
        unsafe {
            let slot = slot.as_mut();
            (slot.kind, slot.pe, slot.token) = (kind, pe, token);
            (slot.owes_sent, slot.fetches_in_vain) = (false, false);
        }
        Some(slot)
    }

    /// The same with a buffer.
    pub(super) fn take_with_buffer(
        &mut self,
        kind: Kind,
        pe: Pe,
        token: Option<Token>,
    ) -> Option<NonNull<Slot>> {
        let buffer = match self.buffers.pop() {
            Some(buffer) => buffer,
            None if self.buffers_made == BUFFERS_MAX => return None,
            None => {
                self.buffers_made += 1;
                vec![0; BUFFER_BYTES].into()
            }
        };
        match self.take(kind, pe, token) {
            Some(mut slot) => {
                // SAFETY: the slot was just taken and is this caller's alone.
                unsafe { slot.as_mut().buffer = Some(buffer) };
                Some(slot)
            }
            None => {
                self.buffers.push(buffer);
                None
            }
        }
    }

    /// Gives a slot back.
    ///
    /// # Safety
    /// It is of these slots, and libfabric has done with it.
    pub(super) unsafe fn free(&mut self, mut slot: NonNull<Slot>) {
        // SAFETY: the caller vouches for the slot.
        let slot = unsafe { slot.as_mut() };
        self.buffers.extend(slot.buffer.take());
        self.free.push(slot.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_buffers_are_bounded_and_come_back() {
        let mut slots = Slots::default();
        let with: Vec<_> = std::iter::from_fn(|| slots.take_with_buffer(Kind::Message, 0, None)).collect();
        assert_eq!(with.len(), BUFFERS_MAX);
        let without: Vec<_> = std::iter::from_fn(|| slots.take(Kind::Put, 1, Some(5))).collect();
        assert_eq!(without.len(), SLOTS_MAX - BUFFERS_MAX);
        // SAFETY: no library has these slots.
        unsafe { slots.free(with[3]) };
        assert!(slots.take_with_buffer(Kind::Put, 2, None).is_some(), "the buffer is free again as well");
        assert!(
            slots.take_with_buffer(Kind::Put, 2, None).is_none() && slots.take(Kind::Get, 0, None).is_none()
        );
        // SAFETY: no library has these slots, as above.
        unsafe { slots.free(without[0]) };
        assert!(slots.take_with_buffer(Kind::Put, 2, None).is_none(), "a slot is free, but no buffer");
        assert!(slots.take(Kind::Get, 0, None).is_some() && slots.take(Kind::Get, 0, None).is_none());
    }
}
