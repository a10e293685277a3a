//! Symmetric memory as this PE maps it. This is the only file that makes pointers into it.
//!
//! Invariant: `bases[pe]` is the start of PE `pe`'s heap for every `pe < n_pes`, written before the world is
//! published and never changed. The *gate* is how many PEs the fast path may reach: all of them, or 0 when
//! operations are counted, so that each then takes the one cold function.

use crate::Pe;
use crate::element::Element;
use pelago_fabric::copy;
use pelago_fabric::shm::Segment;
use pelago_fabric::shm::segment::{Block, Header};
use pelago_fabric::sync::AtomicU64;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

/// Bytes at the start of every heap that belong to the runtime: flags that peers set by puts.
pub(crate) const RESERVED_BYTES: usize = FLAGS * 8;
/// Number of those flags.
pub(crate) const FLAGS: usize = 64;

/// The memory of all PEs of the node.
pub(crate) struct Memory {
    segment: Arc<Segment>,
    bases: Box<[*mut u8]>,
    gate: usize,
}

impl Memory {
    pub(crate) fn new(segment: Arc<Segment>, is_gate_open: bool) -> Memory {
        let n_pes = segment.layout().n_pes;
        let bases = (0..n_pes).map(|pe| segment.heap(pe).as_ptr()).collect();
        Memory { segment, bases, gate: if is_gate_open { n_pes } else { 0 } }
    }

    pub(crate) fn header(&self) -> &Header {
        self.segment.header()
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        self.segment.blocks()
    }

    /// Size of a PE's heap in bytes, the runtime's part included.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.segment.layout().heap_bytes
    }

    /// A flag of the runtime in `pe`'s heap.
    pub(crate) fn flag(&self, pe: Pe, flag: usize) -> &AtomicU64 {
        assert!(flag < FLAGS, "there are {FLAGS} flags");
        // SAFETY: the heap starts page-aligned with `FLAGS` words that only this function hands out.
        unsafe { AtomicU64::from_ptr(self.bases[pe].cast::<u64>().add(flag)) }
    }

    /// The place of `len` elements at `offset_bytes` in every PE's heap.
    ///
    /// # Safety
    /// The range was allocated, suitably aligned for `T`, and this memory outlives the place.
    pub(crate) unsafe fn place<T: Element>(&self, offset_bytes: usize, len: usize) -> Place<T> {
        debug_assert!(
            offset_bytes.is_multiple_of(align_of::<T>())
                && offset_bytes + len * size_of::<T>() <= self.heap_bytes()
        );
        Place { gate: self.gate, bases: self.bases.as_ptr(), offset_bytes, len, element: PhantomData }
    }
}

/// Where a symmetric array lies: the same offset in every PE's heap. Every access goes through one of its
/// methods; the ranges are checked by the caller.
pub(crate) struct Place<T> {
    /// PEs that the fast path may reach.
    pub(crate) gate: usize,
    bases: *const *mut u8,
    offset_bytes: usize,
    /// Elements on each PE.
    pub(crate) len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Place<T> {
    pub(crate) fn offset_bytes(&self) -> usize {
        self.offset_bytes
    }

    /// The start of the array's part on `pe`.
    ///
    /// # Safety
    /// `pe` is a PE of the job.
    #[inline(always)]
    pub(crate) unsafe fn part(&self, pe: Pe) -> Part<T> {
        // SAFETY: `bases` has an entry for each PE of the job, and the array lies inside each heap.
        let start = unsafe { (*self.bases.add(pe)).add(self.offset_bytes).cast() };
        Part { start }
    }
}

/// The part of a symmetric array on one PE.
pub(crate) struct Part<T> {
    start: *mut T,
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Part<T> {
        *self
    }
}
impl<T> Copy for Part<T> {}

impl<T: Element> Part<T> {
    /// Where the part is mapped.
    pub(crate) fn as_ptr(self) -> *mut T {
        self.start
    }

    /// Stores an element.
    ///
    /// # Safety
    /// `index` is less than the array's length.
    #[inline(always)]
    pub(crate) unsafe fn store(self, index: usize, value: T) {
        // SAFETY: the element lies in the array, which is aligned for `T`; elements have no padding.
        unsafe { copy::store(self.start.add(index), value) }
    }

    /// Loads an element.
    ///
    /// # Safety
    /// `index` is less than the array's length.
    #[inline(always)]
    pub(crate) unsafe fn load(self, index: usize) -> T {
        // SAFETY: the element lies in the array, which is aligned for `T`; any bit pattern is an element.
        unsafe { copy::load(self.start.add(index)) }
    }

    /// Copies elements in.
    ///
    /// # Safety
    /// `index + source.len()` is at most the array's length.
    #[inline(always)]
    pub(crate) unsafe fn write(self, index: usize, source: &[T]) {
        // SAFETY: the range lies in the array; a Rust slice does not overlap symmetric memory that others can
        // reach, as only exclusive phases lend such slices and those borrow the array.
        unsafe {
            match source {
                [value] => copy::store(self.start.add(index), *value),
                _ => copy::copy(self.start.add(index).cast(), source.as_ptr().cast(), size_of_val(source)),
            }
        }
    }

    /// Copies elements out.
    ///
    /// # Safety
    /// `index + target.len()` is at most the array's length.
    #[inline(always)]
    pub(crate) unsafe fn read(self, index: usize, target: &mut [T]) {
        // SAFETY: as in `write`; any bit pattern is an element.
        unsafe {
            match target {
                [value] => *value = copy::load(self.start.add(index)),
                _ => {
                    copy::copy(target.as_mut_ptr().cast(), self.start.add(index).cast(), size_of_val(target))
                }
            }
        }
    }

    /// Copies the first elements out.
    ///
    /// # Safety
    /// `target.len()` is at most the array's length.
    pub(crate) unsafe fn read_first(self, target: &mut [MaybeUninit<T>]) {
        // SAFETY: the range lies in the array; `target` is private memory with room for as many elements.
        unsafe { copy::copy(target.as_mut_ptr().cast(), self.start.cast(), size_of_val(target)) }
    }

    /// Moves elements within this part; the ranges may overlap.
    ///
    /// # Safety
    /// Both ranges lie in allocated heap, and nobody else accesses them meanwhile.
    pub(crate) unsafe fn move_to(self, target: Part<T>, count: usize) {
        // SAFETY: the caller vouches for both ranges and for being alone.
        unsafe { std::ptr::copy(self.start, target.start, count) }
    }

    /// Sets elements to all zero bytes.
    ///
    /// # Safety
    /// The range lies in the array, and nobody else accesses it meanwhile.
    pub(crate) unsafe fn zero(self, range: Range<usize>) {
        // SAFETY: the caller vouches for the range and for being alone; zero bytes are an element.
        unsafe { std::ptr::write_bytes(self.start.add(range.start), 0, range.len()) }
    }

    /// The part as a slice.
    ///
    /// # Safety
    /// The part has `len` elements, and for as long as the slice lives nobody else accesses it.
    pub(crate) unsafe fn slice<'a>(self, len: usize) -> &'a mut [T] {
        // SAFETY: the caller vouches for length, lifetime and exclusiveness; alignment and contents are
        // right.
        unsafe { std::slice::from_raw_parts_mut(self.start, len) }
    }
}
