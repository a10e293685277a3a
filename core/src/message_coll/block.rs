//! Memory of an operation.
//!
//! Invariant: it is aligned for every type of elements.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

/// How memory is aligned, for every type of elements.
pub(super) const ALIGN_BYTES: usize = 64;

/// Memory whose contents are unspecified at first.
pub(super) struct Block {
    start: NonNull<u8>,
    bytes: usize,
}

impl Block {
    pub(super) fn new(bytes: usize) -> Block {
        if bytes == 0 {
            return Block { start: NonNull::dangling(), bytes };
        }
        let layout = Layout::from_size_align(bytes, ALIGN_BYTES).expect("an amount of memory that can exist");
        // SAFETY: the layout has a size.
        let start = NonNull::new(unsafe { alloc(layout) });
        Block { start: start.unwrap_or_else(|| std::alloc::handle_alloc_error(layout)), bytes }
    }

    /// The address at an offset.
    #[inline]
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        self.start.as_ptr().wrapping_add(offset)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Default for Block {
    fn default() -> Block {
        Block::new(0)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: it was allocated with this layout.
            unsafe {
                dealloc(self.start.as_ptr(), Layout::from_size_align_unchecked(self.bytes, ALIGN_BYTES))
            };
        }
    }
}

// SAFETY: it owns its memory, which no thread accesses but the one that has it.
unsafe impl Send for Block {}
