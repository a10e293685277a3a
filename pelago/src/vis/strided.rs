//! Strided transfers: elements at regular distances, such as the columns of a matrix (one loop, [`Strided`])
//! or the faces of a grid (any number of dimensions, [`Dimension`]). Source: OpenSHMEM 1.6, iput, iget, ibput
//! and ibget, for the loop; GASNet-EX, strided puts and gets, for the dimensions.
//!
//! Invariant: elements between the blocks are not accessed, on either side; blocks of a [`Strided`] never
//! overlap. The whole pattern is checked before the first block moves.

use super::Run;
use super::Runs;
use super::grid::{Dimension, Grid, GridAt};
use crate::Pe;
use crate::array::nb::Transfer;
use crate::array::signal::Signal;
use crate::array::view::View;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::signal_op::SignalOp;
use pelago_core::endpoint::completion_counter::CompletionCounter;
use pelago_core::memory::segment::Part;
use std::slice;

/// The elements that a strided put or get moves: `count` blocks of `block` elements each. Strides count from
/// the start of one block to that of the next, in elements. The first block begins at the start of the slice,
/// and in the array at the index given to the call.
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
    /// `count` single elements, contiguous on both sides. Set the strides of the result if they are not.
    pub const fn elements(count: usize) -> Strided {
        Strided::blocks(count, 1)
    }

    /// `count` blocks of `block` elements, contiguous on both sides. Set the strides of the result if they
    /// are not.
    pub const fn blocks(count: usize, block: usize) -> Strided {
        Strided { count, block, array_stride: block, slice_stride: block }
    }

    /// Elements from the start of the first block to the end of the last; `None` if it exceeds the address
    /// space.
    fn span(&self, stride: usize) -> Option<usize> {
        match self.count.checked_sub(1) {
            Some(last) => last.checked_mul(stride)?.checked_add(self.block),
            None => Some(0),
        }
    }

    /// The number of elements that move. It does not overflow for a pattern whose span fits, because blocks
    /// do not overlap.
    fn moved(&self) -> usize {
        self.count * self.block
    }

    /// Whether the blocks are contiguous on both sides.
    fn is_contiguous(&self) -> bool {
        let is_dense = self.array_stride == self.block && self.slice_stride == self.block;
        is_dense || self.count <= 1
    }

    /// Calls `visit` for each block, starting at `index` in the array and at `start` on this side.
    pub(super) fn each_block<T>(&self, index: usize, start: *mut T, visit: &mut impl FnMut(Run<T>)) {
        (0..self.count).for_each(|i| {
            let start = start.wrapping_add(i * self.slice_stride);
            visit(Run { index: index + i * self.array_stride, start, count: self.block, slice: 0 });
        });
    }
}

/// The pattern of a strided put or get: a [`Strided`], which is one loop over blocks, or a slice or an array
/// of [`Dimension`]s.
///
/// Both are checked in the same way: a pattern that exceeds the array or the slice is an error. Elements that
/// overlap on the side that is written are always an error for a `Strided`. For dimensions they are an error
/// if the overlap is obvious (a stride of 0, or more elements than the span has); otherwise it is unspecified
/// whose elements remain.
pub trait Shape: sealed::Sealed {}

pub(crate) mod sealed {
    use super::{Dimension, Strided};

    /// The two kinds of shapes.
    #[derive(Debug)]
    pub enum Form<'a> {
        Loop(&'a Strided),
        Dimensions(&'a [Dimension]),
    }

    pub trait Sealed {
        fn form(&self) -> Form<'_>;
    }
}

use sealed::Form;

impl Shape for Strided {}
impl sealed::Sealed for Strided {
    #[inline(always)]
    fn form(&self) -> Form<'_> {
        Form::Loop(self)
    }
}

impl Shape for [Dimension] {}
impl sealed::Sealed for [Dimension] {
    fn form(&self) -> Form<'_> {
        Form::Dimensions(self)
    }
}

impl<const N: usize> Shape for [Dimension; N] {}
impl<const N: usize> sealed::Sealed for [Dimension; N] {
    fn form(&self) -> Form<'_> {
        Form::Dimensions(self)
    }
}

/// A loop that was checked, with its start in the array and in the slice.
struct StridedAt<'s, T> {
    strided: &'s Strided,
    index: usize,
    start: *mut T,
}

impl<T> Runs<T> for StridedAt<'_, T> {
    fn each(&self, mut visit: impl FnMut(Run<T>)) {
        self.strided.each_block(self.index, self.start, &mut visit);
    }

    fn elements(&self) -> usize {
        self.strided.moved()
    }
}

impl<T: Element> View<'_, T> {
    /// Puts elements at regular distances: with a [`Strided`], block `i` of the source, which begins at `i *
    /// slice_stride`, to the elements from `index + i * array_stride` on, on `pe`; with [`Dimension`]s, the
    /// multidimensional block that begins at the start of the source to the block that begins at `index`. The
    /// source may be reused at return; the put is complete at the target after [`quiet`](crate::World::quiet)
    /// or a barrier. It counts as one put.
    ///
    /// # Errors
    /// If there is no such PE, blocks have no elements or overlap, or they exceed the array or the source;
    /// nothing is written then.
    pub fn put_strided(
        &self,
        pe: Pe,
        index: usize,
        source: &[T],
        shape: &(impl Shape + ?Sized),
    ) -> Result<()> {
        // SAFETY: without a counter the source is free when the call returns.
        unsafe { self.put_shape(("put_strided", pe), (index, source), shape, None, None) }
    }

    /// Gets elements at regular distances: reads the elements that [`put_strided`](View::put_strided) would
    /// write, into the elements that it would read. The get is complete at return; other elements of the
    /// target are unchanged. It counts as one get.
    ///
    /// # Errors
    /// If there is no such PE, blocks have no elements or overlap, or they exceed the array or the target;
    /// nothing is read then.
    pub fn get_strided(
        &self,
        pe: Pe,
        index: usize,
        target: &mut [T],
        shape: &(impl Shape + ?Sized),
    ) -> Result<()> {
        // SAFETY: without a counter the get is complete when the call returns.
        unsafe { self.get_shape(("get_strided", pe), (index, target), shape, None) }
    }

    /// Puts as [`put_strided`](View::put_strided) and then signals, as [`put_signal`](View::put_signal): a PE
    /// that sees the signal sees all of the data.
    ///
    /// # Errors
    /// As [`put_strided`](View::put_strided), and if the signal's element does not exist or its array belongs
    /// to another world.
    #[expect(clippy::too_many_arguments, reason = "those of put_signal, and the shape")]
    pub fn put_strided_signal(
        &self,
        pe: Pe,
        index: usize,
        source: &[T],
        shape: &(impl Shape + ?Sized),
        signals: &View<'_, u64>,
        signal_index: usize,
        op: SignalOp,
    ) -> Result<()> {
        let signal = Some(Signal { words: signals, index: signal_index, op });
        // SAFETY: without a counter the source is free when the call returns.
        unsafe { self.put_shape(("put_strided_signal", pe), (index, source), shape, signal, None) }
    }

    /// Starts a strided put that owns its source, as [`put_nb`](View::put_nb).
    ///
    /// # Errors
    /// As [`put_strided`](View::put_strided).
    pub fn put_strided_nb(
        &self,
        pe: Pe,
        index: usize,
        source: Vec<T>,
        shape: &(impl Shape + ?Sized),
    ) -> Result<Transfer<'_, T>> {
        Transfer::of_put(self.world(), source, |source, counter| {
            // SAFETY: the transfer owns the source and frees it only after it is sent.
            unsafe { self.put_shape(("put_strided_nb", pe), (index, source), shape, None, counter) }
        })
    }

    /// Starts a strided get that owns its target, as [`get_nb`](View::get_nb).
    ///
    /// # Errors
    /// As [`get_strided`](View::get_strided).
    pub fn get_strided_nb(
        &self,
        pe: Pe,
        index: usize,
        target: Vec<T>,
        shape: &(impl Shape + ?Sized),
    ) -> Result<Transfer<'_, T>> {
        Transfer::of_get(self.world(), target, |target, counter| {
            // SAFETY: the transfer owns the target and gives it out only after the get is complete.
            unsafe { self.get_shape(("get_strided_nb", pe), (index, target), shape, counter) }
        })
    }

    /// Starts a strided put, with all checks.
    ///
    /// # Safety
    /// The source stays unchanged until the counter has counted the put as sent, or until the call returns if
    /// there is no counter.
    pub(crate) unsafe fn put_shape(
        &self,
        (operation, pe): (&'static str, Pe),
        (index, source): (usize, &[T]),
        shape: &(impl Shape + ?Sized),
        signal: Option<Signal<'_>>,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        let start = source.as_ptr().cast_mut();
        match shape.form() {
            Form::Loop(strided) => {
                self.check_strided(operation, (pe, index), source.len(), strided)?;
                if let Some(part) = self.near(pe, signal) {
                    // SAFETY: the checks above have found that the pattern lies in array and slice.
                    unsafe { write_blocks(part, index, start, strided) };
                    return Ok(());
                }
                self.check_rest(operation, (pe, index), signal)?;
                // SAFETY: the whole pattern was checked; the caller guarantees that the source stays
                // unchanged.
                unsafe {
                    self.put_runs((operation, pe), &StridedAt { strided, index, start }, signal, counter)
                };
            }
            Form::Dimensions(dimensions) => {
                self.check_rest(operation, (pe, index), signal)?;
                let grid = self.grid((operation, true), (pe, index), source.len(), dimensions)?;
                if let Some(part) = self.near(pe, signal) {
                    // SAFETY: the checks above have found that the pattern lies in array and slice.
                    grid.each_inner(|at, position| unsafe {
                        let start = start.add(position);
                        write_blocks(part, index + at, start, grid.inner());
                    });
                    return Ok(());
                }
                let runs = GridAt { grid: &grid, index, start };
                // SAFETY: the whole pattern was checked; the caller guarantees that the source stays
                // unchanged.
                unsafe { self.put_runs((operation, pe), &runs, signal, counter) };
            }
        }
        Ok(())
    }

    /// Starts a strided get, with all checks.
    ///
    /// # Safety
    /// No other code accesses the target until the counter has counted the get as done, or until the call
    /// returns if there is no counter.
    pub(crate) unsafe fn get_shape(
        &self,
        (operation, pe): (&'static str, Pe),
        (index, target): (usize, &mut [T]),
        shape: &(impl Shape + ?Sized),
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        let start = target.as_mut_ptr();
        match shape.form() {
            Form::Loop(strided) => {
                self.check_strided(operation, (pe, index), target.len(), strided)?;
                if let Some(part) = self.near(pe, None) {
                    // SAFETY: the checks above have found that the pattern lies in array and slice.
                    unsafe { read_blocks(part, index, start, strided) };
                    return Ok(());
                }
                // SAFETY: the whole pattern was checked; the caller guarantees that no other code accesses
                // the target.
                unsafe { self.get_runs((operation, pe), &StridedAt { strided, index, start }, counter) };
            }
            Form::Dimensions(dimensions) => {
                self.check_rest(operation, (pe, index), None)?;
                let grid = self.grid((operation, false), (pe, index), target.len(), dimensions)?;
                if let Some(part) = self.near(pe, None) {
                    // SAFETY: the checks above have found that the pattern lies in array and slice.
                    grid.each_inner(|at, position| unsafe {
                        let start = start.add(position);
                        read_blocks(part, index + at, start, grid.inner());
                    });
                    return Ok(());
                }
                let runs = GridAt { grid: &grid, index, start };
                // SAFETY: the whole pattern was checked; the caller guarantees that no other code accesses
                // the target.
                unsafe { self.get_runs((operation, pe), &runs, counter) };
            }
        }
        Ok(())
    }

    /// The dimensions in the form in which they are iterated over, if they fit array and slice, and do not
    /// certainly overlap on the side that is written.
    fn grid<'d>(
        &self,
        (operation, is_put): (&'static str, bool),
        (pe, index): (Pe, usize),
        slice_len: usize,
        dimensions: &'d [Dimension],
    ) -> Result<Grid<'d>> {
        let Some(grid) = Grid::new(dimensions) else {
            let reason = format!("its {} dimensions have more elements than memory", dimensions.len());
            return self.refuse(operation, reason);
        };
        let room = self.len() - index;
        let (in_array, in_slice) = (grid.span(|d| d.array_stride), grid.span(|d| d.slice_stride));
        if in_array.is_none_or(|span| span > room) {
            let (elements, len) = (grid.elements(), self.len());
            let what = format!("a block of {} dimensions and {elements} elements", dimensions.len());
            let from = format!("from index {index} on, on PE {},", self.region().pe(pe));
            let reason = format!("{what} {from} reaches outside the array, which has {len} elements a PE");
            return self.refuse(operation, reason);
        }
        if in_slice.is_none_or(|span| span > slice_len) {
            let what = format!("a block of {} dimensions", dimensions.len());
            return self.refuse(
                operation,
                format!("{what} reaches outside the slice, which has only {slice_len} elements"),
            );
        }
        let overlaps = match is_put {
            true => grid.overlaps(in_array, |d| d.array_stride),
            false => grid.overlaps(in_slice, |d| d.slice_stride),
        };
        match overlaps {
            true => self.refuse(
                operation,
                "elements overlap where they are written. Give strides that keep them apart".to_string(),
            ),
            false => Ok(grid),
        }
    }

    /// Checks that the pattern fits array and slice, and all other conditions of the operation.
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
        match self.place.fast(pe).is_some() && is_sound && in_slice && in_array {
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
            let (pe, stride) = (self.region().pe(pe), array_stride);
            let kind = ErrorKind::StridedOutOfRange { me, operation, pe, index, count, block, stride, len };
            return Err(kind.into());
        }
        // The remaining checks, which do not depend on the pattern.
        self.check(operation, pe, index, 0)
    }
}

/// Writes blocks to mapped memory.
///
/// # Safety
/// Every block lies in the array, from `index` on, and is valid for reads from `start` on.
unsafe fn write_blocks<T: Element>(part: Part<T>, index: usize, start: *const T, strided: &Strided) {
    let &Strided { count, block, array_stride, slice_stride } = strided;
    // SAFETY: the caller guarantees that all blocks are valid on both sides.
    unsafe {
        if strided.is_contiguous() {
            part.write(index, slice::from_raw_parts(start, strided.moved()));
        } else if block == 1 {
            for i in 0..count {
                part.store(index + i * array_stride, *start.add(i * slice_stride));
            }
        } else {
            for i in 0..count {
                let from = slice::from_raw_parts(start.add(i * slice_stride), block);
                part.write(index + i * array_stride, from);
            }
        }
    }
}

/// Reads blocks from mapped memory.
///
/// # Safety
/// Every block lies in the array, from `index` on, and is valid for writes from `start` on.
unsafe fn read_blocks<T: Element>(part: Part<T>, index: usize, start: *mut T, strided: &Strided) {
    let &Strided { count, block, array_stride, slice_stride } = strided;
    // SAFETY: the caller guarantees that all blocks are valid on both sides.
    unsafe {
        if strided.is_contiguous() {
            part.read(index, slice::from_raw_parts_mut(start, strided.moved()));
        } else if block == 1 {
            for i in 0..count {
                *start.add(i * slice_stride) = part.load(index + i * array_stride);
            }
        } else {
            for i in 0..count {
                let into = slice::from_raw_parts_mut(start.add(i * slice_stride), block);
                part.read(index + i * array_stride, into);
            }
        }
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
