//! Zeroed memory whose pages come when they are first written.

use crate::sync::{AtomicPtr, AtomicU8};
use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Bytes from which on the memory is mapped by itself. Less comes from the allocator.
#[cfg(not(any(loom, miri)))]
const MAPPED_BYTES_MIN: usize = 64 << 10;

/// A type for which all zero bytes are a valid value.
///
/// # Safety
/// They are, and the type needs no drop.
pub unsafe trait Zeroed {
    /// This value.
    fn zeroed() -> Self;
}

// SAFETY: all zero bytes are a null pointer.
unsafe impl<T> Zeroed for AtomicPtr<T> {
    fn zeroed() -> AtomicPtr<T> {
        AtomicPtr::new(std::ptr::null_mut())
    }
}

// SAFETY: all zero bytes are 0.
unsafe impl Zeroed for AtomicU8 {
    fn zeroed() -> AtomicU8 {
        AtomicU8::new(0)
    }
}

// SAFETY: all zero bytes are `false`.
unsafe impl Zeroed for Cell<bool> {
    fn zeroed() -> Cell<bool> {
        Cell::new(false)
    }
}

// SAFETY: all zero bytes are a null pointer.
unsafe impl<T> Zeroed for *mut T {
    fn zeroed() -> *mut T {
        std::ptr::null_mut()
    }
}

// SAFETY: all zero bytes are 0.
unsafe impl Zeroed for u8 {
    fn zeroed() -> u8 {
        0
    }
}

// SAFETY: all zero bytes are 0.
unsafe impl Zeroed for u32 {
    fn zeroed() -> u32 {
        0
    }
}

/// A slice of values that are zero at first. Pages that were never written take no memory.
pub struct Reserved<T> {
    #[cfg(any(loom, miri))]
    values: Box<[T]>,
    #[cfg(not(any(loom, miri)))]
    values: (std::ptr::NonNull<T>, usize),
}

impl<T: Zeroed> Default for Reserved<T> {
    fn default() -> Reserved<T> {
        Reserved::new(0)
    }
}

impl<T> fmt::Debug for Reserved<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} reserved values", self.len())
    }
}

#[cfg(any(loom, miri))]
impl<T: Zeroed> Reserved<T> {
    /// `len` values.
    pub fn new(len: usize) -> Reserved<T> {
        Reserved { values: (0..len).map(|_| T::zeroed()).collect() }
    }
}

#[cfg(any(loom, miri))]
impl<T> Deref for Reserved<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

#[cfg(any(loom, miri))]
impl<T> DerefMut for Reserved<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

#[cfg(not(any(loom, miri)))]
mod mapped {
    use super::{Deref, DerefMut, MAPPED_BYTES_MIN, Reserved, Zeroed};
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
    use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
    use std::ptr::{NonNull, null_mut};

    // SAFETY: it owns its values, as a boxed slice does.
    unsafe impl<T: Send> Send for Reserved<T> {}
    // SAFETY: threads share its values, as those of a boxed slice.
    unsafe impl<T: Sync> Sync for Reserved<T> {}

    fn layout<T>(len: usize) -> Layout {
        Layout::array::<T>(len).expect("a table fits in the address space")
    }

    impl<T: Zeroed> Reserved<T> {
        /// `len` values.
        pub fn new(len: usize) -> Reserved<T> {
            let layout = layout::<T>(len);
            let start = match layout.size() {
                0 => Some(NonNull::dangling()),
                // SAFETY: the match arm guarantees a layout of at least one byte.
                1..MAPPED_BYTES_MIN => NonNull::new(unsafe { alloc_zeroed(layout) }.cast()),
                bytes => map(bytes).map(NonNull::cast),
            };
            Reserved { values: (start.unwrap_or_else(|| handle_alloc_error(layout)), len) }
        }
    }

    /// Maps zero pages, of the smallest size: a huge page would come as a whole with the first write to it.
    fn map(bytes: usize) -> Option<NonNull<u8>> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: the system chooses an unused range.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, access, flags) }.ok()?;
        // SAFETY: the range was just mapped. A system without huge pages refuses, which does no harm.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxNoHugepage) };
        NonNull::new(start.cast())
    }

    impl<T> Deref for Reserved<T> {
        type Target = [T];

        #[inline(always)]
        fn deref(&self) -> &[T] {
            let (start, len) = self.values;
            // SAFETY: there are that many values, which were zero at first, and the type permits that.
            unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
        }
    }

    impl<T> DerefMut for Reserved<T> {
        #[inline(always)]
        fn deref_mut(&mut self) -> &mut [T] {
            let (start, len) = self.values;
            // SAFETY: as for `deref`; the caller has borrowed the values alone.
            unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
        }
    }

    impl<T> Drop for Reserved<T> {
        fn drop(&mut self) {
            let (start, len) = self.values;
            let layout = layout::<T>(len);
            match layout.size() {
                0 => {}
                // SAFETY: it was allocated with this layout, and the values need no drop.
                1..MAPPED_BYTES_MIN => unsafe { dealloc(start.as_ptr().cast(), layout) },
                bytes => {
                    // SAFETY: the range was mapped with this length, and nobody uses it any more.
                    let unmapped = unsafe { munmap(start.as_ptr().cast(), bytes) };
                    debug_assert!(unmapped.is_ok(), "a mapped range can be unmapped");
                }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::Ordering;

    #[test]
    fn values_are_zero_at_first_and_keep_what_is_written() {
        for len in [0, 1, 100, 100_000] {
            let values = Reserved::<AtomicPtr<u8>>::new(len);
            assert_eq!(values.len(), len);
            assert!(values.iter().all(|value| value.load(Ordering::Relaxed).is_null()), "{len}");
            let mut byte = 7;
            if let Some(last) = values.last() {
                last.store(&raw mut byte, Ordering::Relaxed);
                assert_eq!(values[len - 1].load(Ordering::Relaxed), &raw mut byte);
            }
            let mut numbers = Reserved::<u32>::new(len);
            numbers.fill(7);
            assert!(numbers.iter().all(|&number| number == 7), "{len}");
            let flags = Reserved::<Cell<bool>>::new(len);
            assert!(flags.iter().all(|flag| !flag.replace(true)) && flags.iter().all(Cell::get), "{len}");
        }
    }

    /// The resident pages of a table of 8 MB in which a few entries were written.
    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn pages_that_were_never_written_take_no_memory() {
        let values = Reserved::<AtomicPtr<u8>>::new(1 << 20);
        let mut byte = 7;
        for i in 0..20 {
            values[i * 50_000].store(&raw mut byte, Ordering::Relaxed);
        }
        let (start, bytes) = (values.as_ptr(), size_of_val(&values[..]));
        let mut pages = vec![0_u8; bytes / 4096];
        // SAFETY: the range is mapped, and `pages` has a byte for each of its pages.
        let answer = unsafe { libc::mincore(start.cast_mut().cast(), bytes, pages.as_mut_ptr().cast()) };
        assert_eq!(answer, 0);
        assert_eq!(pages.iter().filter(|page| **page & 1 == 1).count(), 20);
    }
}
