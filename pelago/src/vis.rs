//! Strided transfers: blocks of elements at regular distances, such as the columns of a matrix or the faces
//! of a grid. The name is GASNet's, for vector, indexed and strided; source: OpenSHMEM 1.6, iput, iget, ibput
//! and ibget.
//!
//! Invariant: blocks never overlap, on neither side, and what lies between them is not touched. All of it is
//! checked before the first block moves.

use crate::Pe;
use crate::element::Element;
use crate::error::{ErrorKind, Result};
use crate::tracker::Tracker;
use crate::view::View;

/// Which elements a strided put or get moves: `count` blocks of `block` elements each. Strides count from the
/// start of one block to that of the next, in elements. The first block begins at the start of the slice, and
/// in the array at the index that the call names.
///
/// ```
/// use pelago::Strided;
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// let matrix = world.alloc_zeroed::<f64>(3 * 4)?; // 3 rows of 4
/// let column = Strided { array_stride: 4, ..Strided::elements(3) };
/// if world.my_pe() == 0 {
///     matrix.put_strided(1, 2, &[1.0, 2.0, 3.0], &column)?; // its column 2
/// }
/// world.barrier();
/// let mut back = [0.0; 3];
/// matrix.get_strided(1, 2, &mut back, &column)?;
/// assert_eq!(back, [1.0, 2.0, 3.0]);
/// # world.barrier();
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Number of blocks.
    pub count: usize,
    /// Elements of a block; at least 1.
    pub block: usize,
    /// Elements from block to block in the symmetric array; at least `block`.
    pub array_stride: usize,
    /// Elements from block to block in the slice; at least `block`.
    pub slice_stride: usize,
}

impl Strided {
    /// `count` single elements, one next to the other on both sides: to be changed where that is not so.
    pub const fn elements(count: usize) -> Strided {
        Strided::blocks(count, 1)
    }

    /// `count` blocks of `block` elements, one next to the other on both sides: to be changed where that is
    /// not so.
    pub const fn blocks(count: usize, block: usize) -> Strided {
        Strided { count, block, array_stride: block, slice_stride: block }
    }

    /// Elements from the start of the first block to the end of the last; `None` if no slice is so long.
    fn span(&self, stride: usize) -> Option<usize> {
        match self.count.checked_sub(1) {
            Some(last) => last.checked_mul(stride)?.checked_add(self.block),
            None => Some(0),
        }
    }

    /// Elements that move; for a pattern whose span was found to fit, as blocks do not overlap.
    fn moved(&self) -> usize {
        self.count * self.block
    }

    /// Whether the blocks lie one next to the other on both sides.
    fn is_contiguous(&self) -> bool {
        let is_dense = self.array_stride == self.block && self.slice_stride == self.block;
        is_dense || self.count <= 1
    }
}

impl<T: Element> View<'_, T> {
    /// Puts blocks of elements: block `i` of the source, which begins at `i * slice_stride`, to the elements
    /// from `index + i * array_stride` on, on `pe`. The source may be reused at return; the put is complete
    /// at the target after [`quiet`](crate::World::quiet) or a barrier. It counts as one put.
    ///
    /// # Errors
    /// If there is no such PE, blocks have no elements or overlap, or they exceed the array or the source;
    /// nothing is written then.
    pub fn put_strided(&self, pe: Pe, index: usize, source: &[T], strided: &Strided) -> Result<()> {
        // SAFETY: without a tracker the source is free when the call returns.
        unsafe { self.put_strided_tracked("put_strided", (pe, index), source, strided, None) }
    }

    /// Gets blocks of elements: those from `index + i * array_stride` on, on `pe`, into block `i` of the
    /// target, which begins at `i * slice_stride`. The data are there at return; what lies between the blocks
    /// of the target stays as it is. It counts as one get.
    ///
    /// # Errors
    /// If there is no such PE, blocks have no elements or overlap, or they exceed the array or the target;
    /// nothing is read then.
    pub fn get_strided(&self, pe: Pe, index: usize, target: &mut [T], strided: &Strided) -> Result<()> {
        // SAFETY: without a tracker the data are there when the call returns.
        unsafe { self.get_strided_tracked("get_strided", (pe, index), target, strided, None) }
    }

    /// A strided put, with all checks.
    ///
    /// # Safety
    /// The source stays as it is until the tracker has counted it as sent, or until the call returns if there
    /// is none.
    pub(crate) unsafe fn put_strided_tracked(
        &self,
        operation: &'static str,
        (pe, index): (Pe, usize),
        source: &[T],
        strided: &Strided,
        tracker: Option<&Tracker>,
    ) -> Result<()> {
        self.check_strided(operation, (pe, index), source.len(), strided)?;
        if self.world().tally.is_on() {
            self.count_put(strided.moved());
        }
        // SAFETY: PE and both ranges were checked; the caller vouches for the source.
        unsafe {
            if strided.is_contiguous() {
                self.start_put(operation, pe, index, &source[..strided.moved()], tracker);
            } else if self.net_target(operation, pe, index).is_none() {
                self.write_blocks(pe, index, source, strided);
            } else {
                self.group(operation, pe, tracker, Tracker::is_sent, |tracker| {
                    for (i, block) in source.chunks(strided.slice_stride).take(strided.count).enumerate() {
                        let index = index + i * strided.array_stride;
                        self.start_put(operation, pe, index, &block[..strided.block], Some(tracker));
                    }
                });
            }
        }
        Ok(())
    }

    /// A strided get, with all checks.
    ///
    /// # Safety
    /// Nobody touches the target until the tracker has counted it as done, or until the call returns if there
    /// is none.
    pub(crate) unsafe fn get_strided_tracked(
        &self,
        operation: &'static str,
        (pe, index): (Pe, usize),
        target: &mut [T],
        strided: &Strided,
        tracker: Option<&Tracker>,
    ) -> Result<()> {
        self.check_strided(operation, (pe, index), target.len(), strided)?;
        if self.world().tally.is_on() {
            self.count_get(strided.moved());
        }
        // SAFETY: PE and both ranges were checked; the caller vouches for the target.
        unsafe {
            if strided.is_contiguous() {
                self.start_get(operation, pe, index, &mut target[..strided.moved()], tracker);
            } else if self.net_target(operation, pe, index).is_none() {
                self.read_blocks(pe, index, target, strided);
            } else {
                self.group(operation, pe, tracker, Tracker::is_done, |tracker| {
                    for (i, block) in target.chunks_mut(strided.slice_stride).take(strided.count).enumerate()
                    {
                        let index = index + i * strided.array_stride;
                        self.start_get(operation, pe, index, &mut block[..strided.block], Some(tracker));
                    }
                });
            }
        }
        Ok(())
    }

    /// Starts operations with the caller's tracker, or with one of their own, which is then waited for.
    fn group(
        &self,
        operation: &'static str,
        pe: Pe,
        tracker: Option<&Tracker>,
        is_enough: fn(&Tracker) -> bool,
        start: impl FnOnce(&Tracker),
    ) {
        match tracker {
            Some(tracker) => start(tracker),
            None => self.world().track((operation, pe), is_enough, start),
        }
    }

    /// Writes the blocks to mapped memory.
    ///
    /// # Safety
    /// The pattern was checked, and the PE is mapped.
    unsafe fn write_blocks(&self, pe: Pe, index: usize, source: &[T], strided: &Strided) {
        let &Strided { count, block, array_stride, slice_stride } = strided;
        // SAFETY: the caller has checked PE and pattern: every block lies in the array and in the slice.
        unsafe {
            let part = self.place.part(pe);
            if block == 1 {
                for i in 0..count {
                    part.store(index + i * array_stride, *source.get_unchecked(i * slice_stride));
                }
            } else {
                for i in 0..count {
                    let from = i * slice_stride;
                    part.write(index + i * array_stride, source.get_unchecked(from..from + block));
                }
            }
        }
    }

    /// Reads the blocks from mapped memory.
    ///
    /// # Safety
    /// The pattern was checked, and the PE is mapped.
    unsafe fn read_blocks(&self, pe: Pe, index: usize, target: &mut [T], strided: &Strided) {
        let &Strided { count, block, array_stride, slice_stride } = strided;
        // SAFETY: the caller has checked PE and pattern: every block lies in the array and in the slice.
        unsafe {
            let part = self.place.part(pe);
            if block == 1 {
                for i in 0..count {
                    *target.get_unchecked_mut(i * slice_stride) = part.load(index + i * array_stride);
                }
            } else {
                for i in 0..count {
                    let to = i * slice_stride;
                    part.read(index + i * array_stride, target.get_unchecked_mut(to..to + block));
                }
            }
        }
    }

    /// Whether the pattern fits array and slice, and all that else keeps the operation from happening.
    fn check_strided(
        &self,
        operation: &'static str,
        (pe, index): (Pe, usize),
        slice_len: usize,
        strided: &Strided,
    ) -> Result<()> {
        let &Strided { block, array_stride, slice_stride, .. } = strided;
        let fits = |stride, room| strided.span(stride).is_some_and(|span| span <= room);
        let in_slice = fits(slice_stride, slice_len);
        let in_array = self.len().checked_sub(index).is_some_and(|room| fits(array_stride, room));
        let is_sound = block >= 1 && array_stride >= block && slice_stride >= block;
        match pe < self.place.gate && is_sound && in_slice && in_array {
            true => Ok(()),
            false => self.check_strided_cold(operation, (pe, index), slice_len, strided, in_array),
        }
    }

    #[cold]
    #[inline(never)]
    fn check_strided_cold(
        &self,
        operation: &'static str,
        (pe, index): (Pe, usize),
        slice_len: usize,
        strided: &Strided,
        in_array: bool,
    ) -> Result<()> {
        self.check_pe(operation, pe)?;
        let (me, len) = (self.world().my_pe(), self.len());
        let &Strided { count, block, array_stride, slice_stride } = strided;
        if block == 0 || array_stride < block || slice_stride < block {
            return Err(ErrorKind::BadStride { me, operation, block, array_stride, slice_stride }.into());
        }
        if strided.span(slice_stride).is_none_or(|span| span > slice_len) {
            let (stride, len) = (slice_stride, slice_len);
            return Err(ErrorKind::SliceTooShort { me, operation, count, block, stride, len }.into());
        }
        if !in_array {
            let stride = array_stride;
            let kind = ErrorKind::StridedOutOfRange { me, operation, pe, index, count, block, stride, len };
            return Err(kind.into());
        }
        // The rest, which does not depend on the pattern.
        self.check(operation, pe, index, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_reach_from_the_first_element_to_the_last() {
        let five = Strided { array_stride: 7, slice_stride: 3, ..Strided::blocks(5, 3) };
        assert_eq!((five.span(7), five.span(3), five.moved()), (Some(31), Some(15), 15));
        assert_eq!(Strided::elements(0).span(usize::MAX), Some(0));
        assert_eq!(Strided::elements(1).span(usize::MAX), Some(1));
        assert_eq!(Strided::elements(3).span(usize::MAX), None);
        assert_eq!(Strided::blocks(2, 2).span(usize::MAX - 1), None);
        assert_eq!(Strided::blocks(2, 1).span(usize::MAX - 1), Some(usize::MAX));
    }

    #[test]
    fn what_is_contiguous_is_one_transfer() {
        let dense = Strided::blocks(5, 3);
        assert!(dense.is_contiguous());
        assert!(!Strided { array_stride: 4, ..dense }.is_contiguous());
        assert!(!Strided { slice_stride: 4, ..dense }.is_contiguous());
        assert!(Strided { count: 1, slice_stride: 4, array_stride: 9, ..dense }.is_contiguous());
    }
}
