//! The pool: memory in which a PE allocates for itself, for its teams and spaces.
//!
//! Invariant: a free block is all zero.

use crate::base::locked::locked;
use crate::coll::block::ALIGN_BYTES;
use crate::coll::symmetric_region::SPACE_ALIGN_BYTES;
use crate::coll::teams::Teams;
use crate::memory::heap::Heap;
use std::sync::MutexGuard;

/// From this length on, blocks come from the upper end: small ones, which may be kept for long, then do not
/// lie between them.
const LARGE_BYTES: usize = 1 << 20;

impl Teams {
    /// Bytes of this PE's pool, the memory of teams and spaces, that are in use.
    pub fn pool_used_bytes(&self) -> usize {
        let pool = self.pool();
        pool.total_bytes() - pool.free_bytes()
    }

    /// Takes a block of this PE's pool, all zero; `None` if there is no room.
    pub fn pool_alloc(&self, bytes: usize) -> Option<usize> {
        if bytes < LARGE_BYTES {
            return self.pool().alloc(bytes, SPACE_ALIGN_BYTES);
        }
        let mut pool = self.pool();
        let place = pool.highest_fit(bytes, SPACE_ALIGN_BYTES, usize::MAX)?;
        pool.alloc_at(place, bytes).then_some(place)
    }

    /// Gives a block of this PE's pool back, zeroed for its next user.
    pub fn pool_free(&self, offset_bytes: usize, bytes: usize) {
        // A network that has pinned the pages would go on to access those, and not the ones that follow them.
        let keeps_pages = self.net.as_ref().is_some_and(|net| net.pins());
        // SAFETY: the block is this PE's, and the caller that gives it back knows that it is no longer used.
        unsafe { self.memory.clear(self.my_pe(), (offset_bytes, bytes), keeps_pages) };
        self.pairs().forget((offset_bytes / ALIGN_BYTES) as u64);
        self.pool().free(offset_bytes);
    }

    fn pool(&self) -> MutexGuard<'_, Heap> {
        locked(&self.pool)
    }
}
