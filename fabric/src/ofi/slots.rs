//! The operations of an endpoint that are under way. Each has a slot, whose address libfabric returns when
//! the operation is complete.
//!
//! Invariant: a slot belongs to libfabric from the call that accepted its operation until its completion was
//! read. It does not move. There are never more slots than entries of a completion queue.

use super::domain::Domain;
use super::library::OfiError;
use super::region::{Arena, Region, TRANSFERS};
use crate::types::{Pe, Token};
use libc::c_void;
use std::cell::UnsafeCell;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// Bytes of the buffer of a slot: for messages, and for puts whose source must be free at return.
pub(super) const BUFFER_BYTES: usize = 8192;
/// Operations that may be under way.
pub(super) const SLOTS_MAX: usize = 1024;
/// The number of those that may have buffers.
const BUFFERS_MAX: usize = 256;

/// The kind of a slot's operation.
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

/// An operation under way. It begins with the room that libfabric may require in a context.
#[repr(C)]
pub(super) struct Slot {
    room: [usize; 8],
    index: u32,
    pub(super) kind: Kind,
    pub(super) pe: Pe,
    pub(super) token: Option<Token>,
    /// Whether the token must still get the event that the source is free.
    pub(super) owes_sent: bool,
    /// An atomic whose old value the caller does not need, but that libfabric counts as a fetching one.
    pub(super) fetches_in_vain: bool,
    /// Operands of an atomic, and a place for an old value that is not needed.
    operands: [u64; 2],
    spare: u64,
    /// A buffer of `BUFFER_BYTES` bytes, if the operation has one.
    buffer: Option<NonNull<u8>>,
    /// The bytes of the slot that are copied to the target when the operation is complete.
    landing: Option<Landing>,
    /// The registered memory that the operation uses.
    pub(super) lent: Option<Arc<Region>>,
}

/// Bytes for a target that the provider cannot write itself.
#[derive(Clone, Copy)]
struct Landing {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
}

impl Slot {
    pub(super) fn new(index: u32, kind: Kind, pe: Pe, token: Option<Token>) -> Slot {
        let (room, operands) = ([0; 8], [0; 2]);
        Slot {
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
            landing: None,
            lent: None,
        }
    }

    /// Keeps the operands of an atomic. Returns their places, and a place for an old value that is not
    /// needed.
    pub(super) fn keep_operands(&mut self, operands: [u64; 2]) -> [*mut u64; 3] {
        self.operands = operands;
        let [operand, compare] = &mut self.operands;
        [operand, compare, &mut self.spare]
    }

    /// The buffer that was taken with it.
    pub(super) fn room(&self) -> NonNull<u8> {
        self.buffer.expect("it was taken with a buffer")
    }
}

/// All slots of an endpoint.
pub(super) struct Slots {
    /// The registration of the slots, if the provider requires it. It is closed before they are freed.
    slots_region: Option<Region>,
    /// It has capacity for all slots from the start, so the slots never move.
    slots: Vec<UnsafeCell<Slot>>,
    free: Vec<u32>,
    /// The free buffers.
    buffers: Vec<NonNull<u8>>,
    buffers_arena: Arena,
    /// Operations whose data have still to be copied to their targets.
    landings: usize,
}

impl Slots {
    /// The slots of an endpoint of a domain.
    ///
    /// # Errors
    /// If the provider refuses to register them.
    pub(super) fn open(domain: &Arc<Domain>) -> Result<Slots, OfiError> {
        let mut slots = Slots::with(Arena::open(domain, BUFFERS_MAX * BUFFER_BYTES)?);
        if domain.offer.wants_descriptors() {
            let (start, bytes) = (slots.slots.as_ptr() as usize, SLOTS_MAX * size_of::<Slot>());
            slots.slots_region = Some(Region::own(domain, start, bytes, TRANSFERS)?);
        }
        Ok(slots)
    }

    fn with(buffers_arena: Arena) -> Slots {
        Slots {
            slots: Vec::with_capacity(SLOTS_MAX),
            slots_region: None,
            free: Vec::new(),
            buffers: buffers_arena.pieces(BUFFER_BYTES).collect(),
            buffers_arena,
            landings: 0,
        }
    }

    /// The descriptor for transfers from or to a slot; null if none is needed.
    pub(super) fn descriptor(&self) -> *mut c_void {
        self.slots_region.as_ref().map_or(null_mut(), Region::descriptor)
    }

    /// The same for a slot's buffer.
    pub(super) fn buffer_descriptor(&self) -> *mut c_void {
        self.buffers_arena.descriptor()
    }

    /// Slots that are not free.
    pub(super) fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Operations that the counters may include, but whose data have still to be copied to their targets.
    pub(super) fn landings(&self) -> usize {
        self.landings
    }

    /// Copies `bytes` bytes from `from`, in the slot's memory, to `to` when the operation is complete.
    ///
    /// # Safety
    /// The slot is one of these, and its operation is not started yet; `to` is valid for writes until it is
    /// complete.
    pub(super) unsafe fn land(
        &mut self,
        mut slot: NonNull<Slot>,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
    ) {
        // SAFETY: the caller guarantees the slot.
        unsafe { slot.as_mut().landing = Some(Landing { from, to, bytes }) };
        self.landings += 1;
    }

    /// A slot for an operation; `None` if too many are under way.
    pub(super) fn take(&mut self, kind: Kind, pe: Pe, token: Option<Token>) -> Option<NonNull<Slot>> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() == SLOTS_MAX => return None,
            None => {
                let index = self.slots.len() as u32;
                self.slots.push(UnsafeCell::new(Slot::new(index, kind, pe, token)));
                index
            }
        };
        let mut slot = NonNull::new(self.slots[index as usize].get()).expect("a slot is somewhere");
        // SAFETY: no other operation has a free slot; the slots do not move.
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
        let buffer = self.buffers.pop()?;
        match self.take(kind, pe, token) {
            Some(mut slot) => {
                // SAFETY: the slot was just taken, and no other code uses it.
                unsafe { slot.as_mut().buffer = Some(buffer) };
                Some(slot)
            }
            None => {
                self.buffers.push(buffer);
                None
            }
        }
    }

    /// Frees a slot whose operation is complete, and copies its data to their target.
    ///
    /// # Safety
    /// It is one of these slots, and libfabric has released it. The caller that has started the operation
    /// guarantees the place of its data.
    pub(super) unsafe fn complete(&mut self, mut slot: NonNull<Slot>) {
        // SAFETY: the caller guarantees the slot, whose memory is its own, and the target, which lies
        // elsewhere.
        unsafe {
            if let Some(Landing { from, to, bytes }) = slot.as_mut().landing {
                to.copy_from_nonoverlapping(from, bytes);
            }
            self.free(slot);
        }
    }

    /// Frees a slot.
    ///
    /// # Safety
    /// It is one of these slots, and libfabric has released it.
    pub(super) unsafe fn free(&mut self, mut slot: NonNull<Slot>) {
        // SAFETY: the caller guarantees the slot.
        let slot = unsafe { slot.as_mut() };
        self.landings -= usize::from(slot.landing.take().is_some());
        slot.lent = None;
        self.buffers.extend(slot.buffer.take());
        self.free.push(slot.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_buffers_are_bounded_and_come_back() {
        let mut slots = Slots::with(Arena::unregistered(BUFFERS_MAX * BUFFER_BYTES));
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
