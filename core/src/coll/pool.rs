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

/// The part of the pool, and the most bytes, that blocks of programs leave to those of the libraries.
const RESERVE_PART: usize = 16;
const RESERVE_MAX_BYTES: usize = 8 << 20;

/// Takes a block of a pool; `None` if there is no room.
fn take(pool: &mut Heap, bytes: usize) -> Option<usize> {
    if bytes < LARGE_BYTES {
        return pool.alloc(bytes, SPACE_ALIGN_BYTES);
    }
    let place = pool.highest_fit(bytes, SPACE_ALIGN_BYTES, usize::MAX)?;
    pool.alloc_at(place, bytes).then_some(place)
}

/// The same, with a free block left that has the size of the reserve.
fn take_beside_reserve(pool: &mut Heap, bytes: usize) -> Option<usize> {
    let reserve = RESERVE_MAX_BYTES.min(pool.total_bytes() / RESERVE_PART);
    let place = take(pool, bytes)?;
    if pool.largest_free_bytes() >= reserve {
        return Some(place);
    }
    pool.free(place);
    None
}

impl Teams {
    /// Bytes of this PE's pool, the memory of teams and spaces, that are in use.
    pub fn pool_used_bytes(&self) -> usize {
        let pool = self.pool();
        pool.total_bytes() - pool.free_bytes()
    }

    /// Takes a block of this PE's pool, all zero; `None` if there is no room.
    pub fn pool_alloc(&self, bytes: usize) -> Option<usize> {
        take(&mut self.pool(), bytes)
    }

    /// Takes a block for the program. A program that fills the pool leaves some room, so that the libraries
    /// find some for their own blocks.
    pub fn pool_alloc_for_program(&self, bytes: usize) -> Option<usize> {
        take_beside_reserve(&mut self.pool(), bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_leave_room_for_the_libraries() {
        for bytes in [4096, 100_000, 2 << 20] {
            let mut pool = Heap::new(0, 64 << 20);
            let blocks = std::iter::from_fn(|| take_beside_reserve(&mut pool, bytes)).count();
            assert!(blocks * bytes >= 25 << 20, "{blocks} blocks of {bytes} bytes");
            let more = std::iter::from_fn(|| take(&mut pool, 256 << 10)).count();
            assert!(more >= 15, "{more} blocks of the library after those of {bytes} bytes");
        }
        let mut pool = Heap::new(0, 64 << 20);
        assert!(take_beside_reserve(&mut pool, 63 << 20).is_none() && pool.free_bytes() == 64 << 20);
    }
}
