//! The slots of pairs in each PE's pool: those in which other PEs signal this one, for all teams. See
//! [`pelago_schedule::sync_memory`].
//!
//! ```text
//! | slots | acknowledgements | mailboxes |
//! ```
//! Slots and mailboxes have the index `peer * PAIR_SLOTS + slot`, acknowledgements that of the peer. The
//! block is the first one in the pool of every PE, so it lies at the same place everywhere. All zero bytes
//! are a valid start; pages come when they are first written, so only the memory of pairs that exist takes
//! room.
//!
//! Invariant: slots and mailboxes of a pair are written by the peer alone, and read by this PE.

use crate::Pe;
use crate::coll::sync_memory::{MailboxBytes, PAIR_SLOT_BYTES, PAIR_SLOTS, PairMemory, ReceivedSlots};
use crate::memory::heap::Heap;
use crate::memory::segment::Memory;
use pelago_fabric::copy;
use pelago_fabric::sync::{AtomicU64, Ordering};

/// How far mailboxes lie apart.
const MAILBOX_STRIDE_BYTES: usize = 256;

const _: () = assert!(size_of::<MailboxBytes>() <= MAILBOX_STRIDE_BYTES);

/// Where the block lies in the region of each PE.
#[derive(Clone, Copy, Debug)]
pub struct PairBlock {
    offset_bytes: usize,
    n_pes: usize,
}

impl PairBlock {
    /// Takes the block from a pool of which nothing was taken yet. `None` if there is no room.
    pub fn take(pool: &mut Heap, n_pes: usize) -> Option<PairBlock> {
        pool.alloc(Self::bytes(n_pes).max(1), super::ALIGN_BYTES)
            .map(|offset_bytes| PairBlock { offset_bytes, n_pes })
    }

    /// Its size.
    pub fn bytes(n_pes: usize) -> usize {
        PairBlock { offset_bytes: 0, n_pes }.mailbox(n_pes * PAIR_SLOTS)
    }

    /// Where the word of a slot lies in the region of its PE.
    #[inline]
    pub fn word(&self, index: usize) -> usize {
        self.offset_bytes + index * PAIR_SLOT_BYTES
    }

    /// Where `bytes` bytes of data lie that come with the signal of a slot: beside its word, or in its
    /// mailbox.
    #[inline]
    pub fn data(&self, index: usize, bytes: usize) -> usize {
        if PairMemory::takes_mailbox(bytes) {
            self.mailbox(index)
        } else {
            self.word(index) + size_of::<u64>()
        }
    }

    #[inline]
    fn mailbox(&self, index: usize) -> usize {
        let start = self.acknowledgement(self.n_pes).next_multiple_of(MAILBOX_STRIDE_BYTES);
        start + index * MAILBOX_STRIDE_BYTES
    }

    /// Where the word lies in which `peer` acknowledges signals.
    #[inline]
    pub fn acknowledgement(&self, peer: Pe) -> usize {
        self.word(self.n_pes * PAIR_SLOTS) + peer * size_of::<u64>()
    }

    /// The own slots of a PE.
    pub fn own<'m>(&self, memory: &'m Memory, me: Pe) -> OwnSlots<'m> {
        OwnSlots { block: *self, memory, me }
    }
}

/// The slots of this PE.
pub struct OwnSlots<'m> {
    block: PairBlock,
    memory: &'m Memory,
    me: Pe,
}

impl OwnSlots<'_> {
    fn at(&self, offset_bytes: usize) -> *mut u8 {
        self.memory.heap(self.me).wrapping_add(offset_bytes)
    }

    /// A word of the block.
    #[inline]
    fn load(&self, offset_bytes: usize) -> u64 {
        // SAFETY: the block has an aligned word there, which is accessed as an atomic only.
        let word = unsafe { &*self.at(offset_bytes).cast::<AtomicU64>() };
        // SYNC POINT mark: acquires the earlier stores and loads of the signalling PE.
        // SYNC POINT acknowledgement: acquires that the receiver is done with the slots.
        word.load(Ordering::Acquire)
    }
}

impl ReceivedSlots for OwnSlots<'_> {
    #[inline]
    fn word(&self, index: usize) -> u64 {
        self.load(self.block.word(index))
    }

    #[inline]
    fn acknowledgement(&self, peer: Pe) -> u64 {
        self.load(self.block.acknowledgement(peer))
    }

    #[inline]
    fn datum(&self, index: usize) -> u64 {
        let mut datum = [0; size_of::<u64>()];
        // SAFETY: the slot has a datum beside its word, which its PE does not write while the word is there.
        unsafe { copy::copy(datum.as_mut_ptr(), self.at(self.block.data(index, datum.len())), datum.len()) };
        u64::from_ne_bytes(datum)
    }

    #[inline]
    fn mailbox(&self, index: usize, into: &mut [u8]) {
        // SAFETY: the mailbox has as many bytes, which its PE does not write while the slot's word is there.
        unsafe { copy::copy(into.as_mut_ptr(), self.at(self.block.mailbox(index)), into.len()) };
    }
}
