//! Private working memory for fields: aligned to cache lines, large ones on huge pages where the system gives
//! them. Invariant: all elements are zero at first; if the system refuses huge pages, only the page size
//! differs.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use num_complex::Complex64;
use rustix::mm::{Advice, madvise};

const CACHE_LINE_BYTES: usize = 64;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A slice of elements, zero at first.
pub(super) struct Buffer {
    memory: Vec<Complex64>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// A buffer for `len` elements.
    pub(super) fn new(len: usize) -> Self {
        let is_large = len * size_of::<Complex64>() >= HUGE_PAGE_BYTES;
        let align_bytes = if is_large { HUGE_PAGE_BYTES } else { CACHE_LINE_BYTES };
        let padding = align_bytes / size_of::<Complex64>();
        let mut memory: Vec<Complex64> = Vec::with_capacity(len + padding);
        let start = memory.as_ptr().align_offset(align_bytes).min(padding);
        if is_large {
            ask_for_huge_pages(&mut memory.spare_capacity_mut()[start..]);
        }
        memory.resize(len + padding, Complex64::ZERO);
        Buffer { memory, start, len }
    }
}

impl Deref for Buffer {
    type Target = [Complex64];

    fn deref(&self) -> &[Complex64] {
        &self.memory[self.start..][..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [Complex64] {
        &mut self.memory[self.start..][..self.len]
    }
}

/// Advises the system, before `memory` is touched, to use huge pages for it. A system without such pages
/// refuses the advice, and ordinary pages are used.
fn ask_for_huge_pages(memory: &mut [MaybeUninit<Complex64>]) {
    let bytes = size_of_val(memory) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    // SAFETY: the range lies within the allocation that the caller has borrowed for us alone, and this advice
    // changes neither the contents of pages nor whether they may be accessed, as madvise(2) promises.
    let _ = unsafe { madvise(memory.as_mut_ptr().cast(), bytes, Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_zero_aligned_and_as_long_as_asked() {
        for len in [0, 1, 100, HUGE_PAGE_BYTES / 16, HUGE_PAGE_BYTES / 16 + 77] {
            let mut buffer = Buffer::new(len);
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|element| *element == Complex64::ZERO));
            let align_bytes = if len * 16 < HUGE_PAGE_BYTES { CACHE_LINE_BYTES } else { HUGE_PAGE_BYTES };
            assert_eq!(buffer.as_ptr().align_offset(align_bytes), 0, "{len} elements");
            buffer.fill(Complex64::ONE);
        }
    }
}
