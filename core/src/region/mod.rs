//! Symmetric memory as bytes: allocation, and the operations on it, for interfaces without element types.

pub mod access;
pub mod private;

use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::call::Call;
use crate::base::error::{ErrorKind, Result};
use crate::base::kind::ObjectKind;
use crate::coll::operand::Operand;
use crate::coll::symmetric_region::SymmetricRegion;
use crate::coll::teams::Teams;
use crate::endpoint::completion_counter::CompletionCounter;
use crate::memory::arrays::ArrayId;
use crate::memory::segment::ArrayLayout;
use crate::memory::usage::Usage;
use access::Access;
use pelago_fabric::Atomic;
use std::ptr::null_mut;
use std::sync::Arc;

/// A block of symmetric memory: the same number of bytes in the memory of every PE of a region. Dropping it
/// is local; its memory is reclaimed when every member has dropped it, in the next collective call on memory.
///
/// PEs are named by their ranks in the region; in the region of all PEs these are their numbers.
pub struct Allocation<'w> {
    world: &'w Teams,
    region: &'w SymmetricRegion,
    id: ArrayId,
    usage: Arc<Usage>,
    layout: ArrayLayout<u8>,
}

impl<'w> Allocation<'w> {
    /// Allocates `bytes` bytes at every member, aligned to `align_bytes`, their contents unspecified.
    /// Collective on the region; no PE accesses another's part before a barrier.
    ///
    /// # Errors
    /// If there is no room, the alignment is no power of two or too large, or the members do not make the
    /// same call; then no PE has allocated.
    #[track_caller]
    pub fn alloc(
        world: &'w Teams,
        region: &'w SymmetricRegion,
        bytes: usize,
        align_bytes: usize,
    ) -> Result<Allocation<'w>> {
        let mut turn = region.turn(world);
        turn.agree(Call::Alloc { kind: ObjectKind::Array, bytes, align_bytes })?;
        let ((id, usage), layout) = region.alloc_agreed::<u8>(world, bytes, align_bytes)?;
        // No thread waits for this PE's part yet.
        layout.own().reset_waiters();
        Ok(Allocation { world, region, id, usage, layout })
    }

    /// Gives the memory back. Collective on the region; waits for the collective operations that use it.
    ///
    /// # Errors
    /// If the members do not make the same call.
    #[track_caller]
    pub fn free(self) -> Result<()> {
        let (world, region, offset_bytes) = (self.world, self.region, self.layout.offset_bytes());
        if !self.usage.is_over() {
            world.wait(Awaited::Collective { operation: "free", pe: None }, || self.usage.is_over());
        }
        drop(self);
        region.agree(world, Call::Free { offset_bytes })
    }

    /// Size of each part in bytes.
    pub fn bytes(&self) -> usize {
        self.layout.len
    }

    /// The start of this PE's part.
    pub fn own(&self) -> *mut u8 {
        self.layout.own().as_ptr()
    }

    /// The address where the part of a PE is mapped here; `None` if there is none.
    pub fn address(&self, rank: usize) -> Option<*mut u8> {
        // SAFETY: the rank is compared with the number of members.
        let part = (rank < self.region.len()).then(|| unsafe { self.layout.mapped(rank) });
        part.flatten().map(|part| part.as_ptr())
    }

    /// Writes `bytes` bytes from `source` to an offset of a PE's part. Without a counter the source is free
    /// at return, and a quiet completes the put; with one, the counter tells when the source is free
    /// ([`is_sent`](CompletionCounter::is_sent)) and when the put is complete
    /// ([`is_done`](CompletionCounter::is_done)).
    ///
    /// # Errors
    /// If there is no such PE or range, or the job has failed; nothing is written then.
    ///
    /// # Safety
    /// The source is valid for reads, and stays unchanged until it is free.
    pub unsafe fn put(
        &self,
        (rank, offset_bytes): (Pe, usize),
        source: *const u8,
        bytes: usize,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        let (access, elements) = (self.access(), (offset_bytes, bytes, 1));
        // SAFETY: the caller guarantees the source.
        unsafe { access.checked_put("put", rank, elements, source, counter) }
    }

    /// Reads `bytes` bytes from an offset of a PE's part to `target`. Without a counter the get is complete
    /// at return.
    ///
    /// # Errors
    /// If there is no such PE or range, or the job has failed; nothing is read then.
    ///
    /// # Safety
    /// The target is valid for writes, and no other code accesses it until the get is complete.
    pub unsafe fn get(
        &self,
        (rank, offset_bytes): (Pe, usize),
        target: *mut u8,
        bytes: usize,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        let (access, elements) = (self.access(), (offset_bytes, bytes, 1));
        // SAFETY: the caller guarantees the target.
        unsafe { access.checked_get("get", rank, elements, target, counter) }
    }

    /// Executes an atomic on the word at an offset of a PE's part, and returns its old value, with zeros in
    /// its high bytes. Complete at return.
    ///
    /// # Errors
    /// If there is no such PE or word, the offset is no multiple of the word's size, or the job has failed;
    /// nothing is changed then.
    #[track_caller]
    pub fn fetch_atomic(&self, (rank, offset_bytes): (Pe, usize), atomic: &Atomic) -> Result<u64> {
        let access = self.access();
        self.check_word("fetch_atomic", (rank, offset_bytes), atomic)?;
        let mut old = [0u64];
        let place = old.as_mut_ptr().cast();
        let at = (rank, offset_bytes);
        // SAFETY: the word was checked; the old value is valid until the atomic is complete, which is when
        // this returns.
        let start = |counter: Option<&CompletionCounter>| unsafe {
            access.atomic("fetch_atomic", at, atomic, place, counter);
        };
        match access.world.net.is_some() {
            false => start(None),
            true => {
                let done = CompletionCounter::is_done;
                let pe = self.region.pe(rank);
                self.world.track(("fetch_atomic", pe), done, |counter| start(Some(counter)));
            }
        }
        Ok(old[0])
    }

    /// Executes an atomic on the word at an offset of a PE's part. Without a counter a quiet completes it.
    ///
    /// # Errors
    /// As [`fetch_atomic`](Allocation::fetch_atomic).
    pub fn atomic(
        &self,
        (rank, offset_bytes): (Pe, usize),
        atomic: &Atomic,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        self.check_word("atomic", (rank, offset_bytes), atomic)?;
        // SAFETY: the word was checked; no old value is written.
        unsafe { self.access().atomic("atomic", (rank, offset_bytes), atomic, null_mut(), counter) };
        Ok(())
    }

    /// Waits until `look`, which reads this PE's part by atomic loads, has found something. It makes progress
    /// meanwhile. A store of another PE counts as found when that PE has made a fence or a quiet, or has
    /// stored it by an atomic.
    ///
    /// # Panics
    /// If every other PE has left the job before.
    #[track_caller]
    pub fn wait_to_find<R>(&self, look: impl FnMut() -> Option<R>) -> R {
        self.access().until(0, look)
    }

    /// `bytes` bytes from an offset on, the same at every member, as the operand of a collective operation.
    ///
    /// # Panics
    /// If the block has no such range.
    pub fn operand(&self, offset_bytes: usize, (count, element_bytes): (usize, usize)) -> Operand<'_> {
        let bytes = count.checked_mul(element_bytes).and_then(|bytes| bytes.checked_add(offset_bytes));
        assert!(bytes.is_some_and(|end| end <= self.bytes()), "an operand exceeds its block");
        Operand {
            world: self.world,
            region: self.region,
            usage: &self.usage,
            offset_bytes: self.layout.offset_bytes() + offset_bytes,
            len: count,
            element_bytes,
            is_closed: false,
            own: self.own().wrapping_add(offset_bytes),
        }
    }

    fn access(&self) -> Access<'_> {
        let (world, region, layout) = (self.world, self.region, self.layout);
        Access { world, region, layout, endpoint: None, is_closed: false }
    }

    fn check_word(&self, operation: &'static str, (rank, at): (Pe, usize), atomic: &Atomic) -> Result<()> {
        let (access, bytes) = (self.access(), atomic.kind.bytes());
        access.check(operation, rank, (at, bytes, 1))?;
        match at.is_multiple_of(bytes) {
            true => Ok(()),
            false => {
                let (me, offset_bytes) = (self.world.my_pe(), at);
                Err(ErrorKind::Misaligned { me, operation, offset_bytes, bytes }.into())
            }
        }
    }
}

impl Drop for Allocation<'_> {
    fn drop(&mut self) {
        self.region.arrays().drop_here(self.id);
    }
}
