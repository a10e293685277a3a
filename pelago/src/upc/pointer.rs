//! Pointers to shared elements: thread, phase and address, and their arithmetic.
//!
//! Invariant: a pointer is a number of three parts and grants no access: the array that it is used with looks
//! up and checks the element. Source: UPC Language Specifications 1.3, sections 6.4.2 and 6.4.3 (pointer
//! arithmetic, casts), 7.2.3 (`upc_threadof`, `upc_phaseof`, `upc_addrfield`, `upc_resetphase`).

use super::layout::Layout;
use crate::Pe;
use pelago_core::base::element::Element;
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A pointer to an element of a [`SharedArray`](super::SharedArray), as in UPC.
///
/// `pointer + i` points `i` elements further in a layout of the pointer's own block size, which may differ
/// from the array's. So a cast to another block size traverses an array in another order. Pointers of one
/// block size are compared and subtracted in that order. Two pointers to the same address are equal, even if
/// their phases differ.
///
/// ```
/// use pelago::upc::BlockSize;
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// let array = world.shared_array::<u32>(12, BlockSize::Of(3))?;
/// let pointer = array.pointer(4)?;
/// assert_eq!((pointer.threadof(), pointer.phaseof(), pointer.addrfield()), (1, 1, 4));
/// let next = pointer + 2; // over the end of the block: the first element of PE 0's second block
/// assert_eq!((next.threadof(), next.phaseof(), next.addrfield()), (0, 0, 12));
/// assert_eq!(next - pointer, 2);
/// assert_eq!(array.index_of(next)?, 6);
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
pub struct SharedPointer<T> {
    thread: Pe,
    phase: usize,
    /// Offset from the start of the PE's part, in bytes. Elements without bytes count as one each, so that
    /// their addresses differ.
    address: usize,
    /// Elements of a block; 0 if there are no blocks.
    block: usize,
    n_pes: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for SharedPointer<T> {
    fn clone(&self) -> SharedPointer<T> {
        *self
    }
}
impl<T> Copy for SharedPointer<T> {}

impl<T: Element> SharedPointer<T> {
    /// The distance of the addresses of two elements.
    const STEP: usize = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };

    /// The pointer to an element of a layout.
    pub(super) fn new(layout: &Layout, index: usize) -> SharedPointer<T> {
        let (thread, local) = layout.locate(index);
        SharedPointer {
            thread,
            phase: layout.phase(index),
            address: local * Self::STEP,
            block: if layout.is_indefinite() { 0 } else { layout.block() },
            n_pes: layout.n_pes(),
            element: PhantomData,
        }
    }

    /// The PE that it points to (UPC's `upc_threadof`).
    pub fn threadof(&self) -> Pe {
        self.thread
    }

    /// The position in the block (UPC's `upc_phaseof`).
    pub fn phaseof(&self) -> usize {
        self.phase
    }

    /// The offset in the PE's part, in bytes (UPC's `upc_addrfield`); the position there if the elements have
    /// no bytes.
    pub fn addrfield(&self) -> usize {
        self.address
    }

    /// Elements of a block; 0 if there are no blocks (UPC's `[]`).
    pub fn block(&self) -> usize {
        self.block
    }

    /// The pointer to the same address with phase 0 (UPC's `upc_resetphase`).
    pub fn resetphase(self) -> SharedPointer<T> {
        SharedPointer { phase: 0, ..self }
    }

    /// The pointer to the same address as elements of another type in blocks of `block` elements; 0 for no
    /// blocks. The phase is reset, unless type and block size stay the same.
    pub fn cast<U: Element>(self, block: usize) -> SharedPointer<U> {
        let is_same = block == self.block && std::any::TypeId::of::<T>() == std::any::TypeId::of::<U>();
        let SharedPointer { thread, address, n_pes, .. } = self;
        let phase = if is_same { self.phase } else { 0 };
        SharedPointer { thread, phase, address, block, n_pes, element: PhantomData }
    }

    /// The element of the PE's part that it points to; `None` if it points between two.
    pub(super) fn local(&self) -> Option<usize> {
        self.address.is_multiple_of(Self::STEP).then_some(self.address / Self::STEP)
    }

    /// The pointer `count` elements further; `None` if it would be before the start of a PE's part, or beyond
    /// the address space.
    pub fn checked_add(self, count: isize) -> Option<SharedPointer<T>> {
        let (count, bytes) = (count as i128, Self::STEP as i128);
        let forward = |elements: i128| usize::try_from(self.address as i128 + elements * bytes).ok();
        if self.block == 0 {
            return Some(SharedPointer { address: forward(count)?, ..self });
        }
        let (block, n_pes, phase) = (self.block as i128, self.n_pes as i128, self.phase as i128);
        let (blocks, new_phase) = ((phase + count).div_euclid(block), (phase + count).rem_euclid(block));
        let threads = self.thread as i128 + blocks;
        let (rows, thread) = (threads.div_euclid(n_pes), threads.rem_euclid(n_pes) as Pe);
        let address = forward(rows * block + new_phase - phase)?;
        Some(SharedPointer { thread, phase: new_phase as usize, address, ..self })
    }

    /// The number of elements from `other` to this pointer. `None` if there is none: if the block sizes
    /// differ, if there are no blocks and the PEs differ, or if the blocks of the two pointers are not
    /// aligned to each other.
    pub fn checked_sub(self, other: SharedPointer<T>) -> Option<isize> {
        if (self.block, self.n_pes) != (other.block, other.n_pes) {
            return None;
        }
        let bytes = Self::STEP as i128;
        let of_both = |of: fn(&SharedPointer<T>) -> i128| of(&self) - of(&other);
        let addresses = of_both(|p| p.address as i128);
        if addresses % bytes != 0 {
            return None;
        }
        if self.block == 0 {
            let is_one_thread = self.thread == other.thread;
            return is_one_thread.then(|| isize::try_from(addresses / bytes).ok()).flatten();
        }
        let phases = of_both(|p| p.phase as i128);
        let starts = addresses / bytes - phases;
        let block = self.block as i128;
        if starts % block != 0 {
            return None;
        }
        let blocks = starts / block * self.n_pes as i128 + of_both(|p| p.thread as i128);
        isize::try_from(blocks * block + phases).ok()
    }
}

impl<T: Element> Add<isize> for SharedPointer<T> {
    type Output = SharedPointer<T>;

    /// # Panics
    /// If the result does not exist; see [`checked_add`](SharedPointer::checked_add).
    #[track_caller]
    fn add(self, count: isize) -> SharedPointer<T> {
        self.checked_add(count).unwrap_or_else(|| {
            panic!("{self:?} + {count}: there is nothing before the start of a part, nor beyond all memory")
        })
    }
}

impl<T: Element> Sub<isize> for SharedPointer<T> {
    type Output = SharedPointer<T>;

    /// # Panics
    /// As `+`.
    #[track_caller]
    fn sub(self, count: isize) -> SharedPointer<T> {
        let back = count.checked_neg().and_then(|count| self.checked_add(count));
        back.unwrap_or_else(|| {
            panic!("{self:?} - {count}: there is nothing before the start of a part, nor beyond all memory")
        })
    }
}

impl<T: Element> AddAssign<isize> for SharedPointer<T> {
    fn add_assign(&mut self, count: isize) {
        *self = *self + count;
    }
}

impl<T: Element> SubAssign<isize> for SharedPointer<T> {
    fn sub_assign(&mut self, count: isize) {
        *self = *self - count;
    }
}

impl<T: Element> Sub for SharedPointer<T> {
    type Output = isize;

    /// # Panics
    /// If the distance does not exist; see [`checked_sub`](SharedPointer::checked_sub).
    #[track_caller]
    fn sub(self, other: SharedPointer<T>) -> isize {
        self.checked_sub(other).unwrap_or_else(|| {
            panic!("{self:?} - {other:?}: no number of elements leads from one to the other")
        })
    }
}

impl<T> PartialEq for SharedPointer<T> {
    fn eq(&self, other: &SharedPointer<T>) -> bool {
        (self.thread, self.address) == (other.thread, other.address)
    }
}

impl<T: Element> PartialOrd for SharedPointer<T> {
    fn partial_cmp(&self, other: &SharedPointer<T>) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        self.checked_sub(*other).map(|distance| distance.cmp(&0))
    }
}

impl<T> fmt::Debug for SharedPointer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (element, SharedPointer { thread, phase, address, block, .. }) =
            (std::any::type_name::<T>(), self);
        write!(f, "SharedPointer<{element}>(thread {thread}, phase {phase} of {block}, byte {address})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upc::BlockSize;
    use proptest::prelude::*;

    fn pointer(layout: &Layout, index: usize) -> SharedPointer<u32> {
        SharedPointer::new(layout, index)
    }

    fn parts(pointer: SharedPointer<u32>) -> (Pe, usize, usize) {
        (pointer.threadof(), pointer.phaseof(), pointer.addrfield())
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_indices(
            block_size in prop_oneof![
                Just(BlockSize::Even), Just(BlockSize::Cyclic), Just(BlockSize::Indefinite),
                (1usize..9).prop_map(BlockSize::Of)
            ],
            n_pes in 1usize..=5, from in 0usize..100, to in 0usize..100,
        ) {
            let layout = Layout::new(100, block_size, n_pes).unwrap();
            let (start, end) = (pointer(&layout, from), pointer(&layout, to));
            let distance = to as isize - from as isize;
            prop_assert_eq!(parts(start + distance), parts(end));
            prop_assert_eq!(parts(end - distance), parts(start));
            prop_assert_eq!(end - start, distance);
            prop_assert_eq!(start.partial_cmp(&end), Some(from.cmp(&to)));
            prop_assert_eq!(start == end, from == to);
            // Elements without bytes.
            let empty = |index| SharedPointer::<[u64; 0]>::new(&layout, index);
            let moved = empty(from) + distance;
            let place = moved.local().and_then(|local| layout.index_of(moved.threadof(), local));
            prop_assert_eq!(place, Some(to));
            prop_assert_eq!(empty(to) - empty(from), distance);
        }
    }

    #[test]
    fn casts_and_resetphase_clear_the_phase() {
        let layout = Layout::new(100, BlockSize::Of(4), 3).unwrap();
        let start = pointer(&layout, 6); // PE 1, phase 2
        assert_eq!(parts(start), (1, 2, 8));
        assert_eq!(parts(start.resetphase()), (1, 0, 8));
        assert_eq!(parts(start.cast::<u32>(4)), (1, 2, 8), "the same type and block size");
        assert_eq!(parts(start.cast::<u32>(5)), (1, 0, 8));
        // In blocks of 5 from here: five elements later it points to PE 2, at the same address.
        assert_eq!(parts(start.cast::<u32>(5) + 5), (2, 0, 8));
        assert_eq!(parts(start.cast::<u32>(0) + 5), (1, 0, 28));
        let bytes = start.cast::<u8>(16) + 15;
        assert_eq!((bytes.threadof(), bytes.phaseof(), bytes.addrfield()), (1, 15, 23));
        assert_eq!(bytes.cast::<u32>(4).local(), None, "between two numbers of 4 bytes");
        assert_eq!(start.resetphase(), start, "one place");
        assert_eq!(start.resetphase().partial_cmp(&start), Some(Ordering::Equal));
        assert_eq!(start.resetphase().checked_sub(start), None, "their blocks begin elsewhere");
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        let layout = |block_size| Layout::new(100, block_size, 3).unwrap();
        let (fours, fives) = (layout(BlockSize::Of(4)), layout(BlockSize::Of(5)));
        assert_eq!(pointer(&fours, 1).checked_sub(pointer(&fives, 1)), None);
        assert_eq!(pointer(&fours, 1).partial_cmp(&pointer(&fives, 2)), None);
        let (here, there) = (pointer(&fours, 0).cast::<u32>(0), pointer(&fours, 4).cast::<u32>(0));
        assert_eq!((here.checked_sub(there), here == there), (None, false));
        assert_eq!(pointer(&fours, 0).checked_add(-1), None);
        assert_eq!(parts(pointer(&fours, 12) - 1), (2, 3, 12));
        assert_eq!(here.checked_add(isize::MAX).and_then(|p| p.checked_add(isize::MAX)), None);
        assert_eq!(pointer(&fours, 7).checked_add(isize::MIN), None);
        assert!(std::panic::catch_unwind(|| here - 1).is_err());
        assert!(std::panic::catch_unwind(|| here - there).is_err());
    }
}
