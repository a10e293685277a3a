//! Private working memory for fields and matrices: aligned to cache lines, large ones on huge pages where the
//! system gives them. Invariant: all elements are zero at first; if the system refuses huge pages, only the
//! page size differs.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use rustix::mm::{Advice, madvise};

const CACHE_LINE_BYTES: usize = 64;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A slice of elements, zero at first: of the default of their type.
#[derive(Default)]
pub(crate) struct Buffer<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy + Default> Buffer<T> {
    /// A buffer for `len` elements, whose size is a power of two.
    pub(crate) fn new(len: usize) -> Self {
        let is_large = len * size_of::<T>() >= HUGE_PAGE_BYTES;
        let align_bytes = if is_large { HUGE_PAGE_BYTES } else { CACHE_LINE_BYTES };
        let padding = align_bytes / size_of::<T>();
        let mut memory: Vec<T> = Vec::with_capacity(len + padding);
        let start = memory.as_ptr().align_offset(align_bytes).min(padding);
        if is_large {
            ask_for_huge_pages(&mut memory.spare_capacity_mut()[start..]);
        }
        memory.resize(len + padding, T::default());
        Buffer { memory, start, len }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.memory[self.start..][..self.len]
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..][..self.len]
    }
}

/// Advises the system, before `memory` is touched, to use huge pages for it. A system without such pages
/// refuses the advice, and ordinary pages are used.
fn ask_for_huge_pages<T>(memory: &mut [MaybeUninit<T>]) {
    let bytes = size_of_val(memory) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    // SAFETY: the range lies within the allocation that the caller has borrowed for us alone, and this advice
    // changes neither the contents of pages nor whether they may be accessed, as madvise(2) promises.
    let _ = unsafe { madvise(memory.as_mut_ptr().cast(), bytes, Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use num_complex::Complex64;

    use super::*;

    #[test]
    fn buffers_are_zero_aligned_and_as_long_as_asked() {
        for len in [0, 1, 100, HUGE_PAGE_BYTES / 16, HUGE_PAGE_BYTES / 16 + 77] {
            let mut buffer = Buffer::<Complex64>::new(len);
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|element| *element == Complex64::ZERO));
            let align_bytes = if len * 16 < HUGE_PAGE_BYTES { CACHE_LINE_BYTES } else { HUGE_PAGE_BYTES };
            assert_eq!(buffer.as_ptr().align_offset(align_bytes), 0, "{len} elements");
            buffer.fill(Complex64::ONE);
        }
    }
}
