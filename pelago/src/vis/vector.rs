//! Vector transfers: ranges of the array on one side and slices on the other, divided independently, with the
//! same total length. Source: GASNet-EX, vector puts and gets.
//!
//! Invariant: all ranges are checked before the first element moves.

use super::{Run, Runs};
use crate::Pe;
use crate::array::nb::Transfer;
use crate::array::signal::Signal;
use crate::array::view::View;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::signal_op::SignalOp;
use pelago_core::endpoint::completion_counter::CompletionCounter;
use std::ops::Range;

/// The local side of a vector transfer, as a list of stretches of memory.
pub(crate) trait Stretches<T> {
    fn count(&self) -> usize;

    /// The start of a stretch, and the number of its elements.
    fn stretch(&self, number: usize) -> (*mut T, usize);

    /// The number of the slice that contains a stretch.
    fn slice(&self, number: usize) -> usize;
}

/// Slices.
pub(crate) struct Slices<'a, T>(&'a [*mut [T]]);

impl<'a, T> Slices<'a, T> {
    pub(crate) fn to_read(slices: &'a [&[T]]) -> Slices<'a, T> {
        // SAFETY: references and pointers to slices have the same layout; the slices are only read through
        // these pointers.
        Slices(unsafe { std::slice::from_raw_parts(slices.as_ptr().cast(), slices.len()) })
    }

    pub(crate) fn to_write(slices: &'a mut [&mut [T]]) -> Slices<'a, T> {
        // SAFETY: references and pointers to slices have the same layout; the references are borrowed as long
        // as the pointers are used.
        Slices(unsafe { std::slice::from_raw_parts(slices.as_mut_ptr().cast(), slices.len()) })
    }
}

impl<T> Stretches<T> for Slices<'_, T> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn stretch(&self, number: usize) -> (*mut T, usize) {
        (self.0[number].cast(), self.0[number].len())
    }

    fn slice(&self, number: usize) -> usize {
        number
    }
}

/// Ranges of one buffer, which were checked.
struct Ranges<'a, T> {
    start: *mut T,
    ranges: &'a [Range<usize>],
}

impl<T> Stretches<T> for Ranges<'_, T> {
    fn count(&self) -> usize {
        self.ranges.len()
    }

    fn stretch(&self, number: usize) -> (*mut T, usize) {
        (self.start.wrapping_add(self.ranges[number].start), self.ranges[number].len())
    }

    fn slice(&self, _number: usize) -> usize {
        0
    }
}

/// Both sides, of equal length.
struct Vector<'v, S> {
    ranges: &'v [Range<usize>],
    stretches: &'v S,
}

impl<T, S: Stretches<T>> Runs<T> for Vector<'_, S> {
    fn each(&self, mut visit: impl FnMut(Run<T>)) {
        let mut ranges = self.ranges.iter().map(|range| (range.start, range.len()));
        let (mut index, mut in_array) = (0, 0);
        for number in 0..self.stretches.count() {
            let (mut start, mut left) = self.stretches.stretch(number);
            let slice = self.stretches.slice(number);
            while left > 0 {
                if in_array == 0 {
                    let Some(next) = ranges.next() else { return };
                    (index, in_array) = next;
                    continue;
                }
                let count = left.min(in_array);
                visit(Run { index, start, count, slice });
                (index, in_array) = (index + count, in_array - count);
                (start, left) = (start.wrapping_add(count), left - count);
            }
        }
    }

    fn elements(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }
}

impl<T: Element> View<'_, T> {
    /// Puts slices to ranges of the array on `pe`: the elements of all slices, in order, to the elements of
    /// all ranges, in order. The two sides may be divided differently. The sources may be reused at return;
    /// the put is complete at the target after [`quiet`](crate::World::quiet) or a barrier. It counts as one
    /// put. Where ranges overlap, it is unspecified which element remains.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let inbox = world.alloc_zeroed::<u8>(10)?;
    /// inbox.put_vector(1 - world.my_pe(), &[8..10, 0..3], &[b"he", b"l", b"lo"])?;
    /// world.barrier();
    /// assert_eq!(inbox.local().to_vec(), b"llo\0\0\0\0\0he");
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such PE, a range lies outside the array, or the two sides differ in length; nothing is
    /// written then.
    pub fn put_vector(&self, pe: Pe, ranges: &[Range<usize>], sources: &[&[T]]) -> Result<()> {
        // SAFETY: without a counter the sources are free when the call returns.
        unsafe { self.put_pieces(("put_vector", pe), ranges, &Slices::to_read(sources), None, None) }
    }

    /// Gets ranges of the array on `pe` into slices, as [`put_vector`](View::put_vector) puts them. The get
    /// is complete at return. It counts as one get.
    ///
    /// # Errors
    /// If there is no such PE, a range lies outside the array, or the two sides differ in length; nothing is
    /// read then.
    pub fn get_vector(&self, pe: Pe, ranges: &[Range<usize>], targets: &mut [&mut [T]]) -> Result<()> {
        // SAFETY: without a counter the get is complete when the call returns.
        unsafe { self.get_pieces(("get_vector", pe), ranges, &Slices::to_write(targets), None) }
    }

    /// Puts as [`put_vector`](View::put_vector) and then signals, as [`put_signal`](View::put_signal): a PE
    /// that sees the signal sees all of the data.
    ///
    /// # Errors
    /// As [`put_vector`](View::put_vector), and if the signal's element does not exist or its array belongs
    /// to another world.
    pub fn put_vector_signal(
        &self,
        pe: Pe,
        ranges: &[Range<usize>],
        sources: &[&[T]],
        signals: &View<'_, u64>,
        signal_index: usize,
        op: SignalOp,
    ) -> Result<()> {
        let signal = Some(Signal { words: signals, index: signal_index, op });
        let sources = Slices::to_read(sources);
        // SAFETY: without a counter the sources are free when the call returns.
        unsafe { self.put_pieces(("put_vector_signal", pe), ranges, &sources, signal, None) }
    }

    /// Starts a vector put that owns its source, as [`put_nb`](View::put_nb). `pieces` has the ranges of the
    /// source that are put. The lists may be reused at return.
    ///
    /// # Errors
    /// As [`put_vector`](View::put_vector), and if a piece lies outside the buffer.
    pub fn put_vector_nb(
        &self,
        pe: Pe,
        ranges: &[Range<usize>],
        source: Vec<T>,
        pieces: &[Range<usize>],
    ) -> Result<Transfer<'_, T>> {
        let operation = "put_vector_nb";
        self.check_pieces((operation, pe), source.len(), pieces)?;
        Transfer::of_put(self.world(), source, |source, counter| {
            let sources = Ranges { start: source.as_ptr().cast_mut(), ranges: pieces };
            // SAFETY: the transfer owns the source, in which the pieces lie, and frees it only after it is
            // sent.
            unsafe { self.put_pieces((operation, pe), ranges, &sources, None, counter) }
        })
    }

    /// Starts a vector get that owns its target, as [`get_nb`](View::get_nb). `pieces` has the ranges of the
    /// target that receive the data. The lists may be reused at return.
    ///
    /// # Errors
    /// As [`get_vector`](View::get_vector), and if a piece lies outside the buffer.
    pub fn get_vector_nb(
        &self,
        pe: Pe,
        ranges: &[Range<usize>],
        target: Vec<T>,
        pieces: &[Range<usize>],
    ) -> Result<Transfer<'_, T>> {
        let operation = "get_vector_nb";
        self.check_pieces((operation, pe), target.len(), pieces)?;
        Transfer::of_get(self.world(), target, |target, counter| {
            let targets = Ranges { start: target.as_mut_ptr(), ranges: pieces };
            // SAFETY: the transfer owns the target, in which the pieces lie, and gives it out only after the
            // get is complete.
            unsafe { self.get_pieces((operation, pe), ranges, &targets, counter) }
        })
    }

    /// Starts a vector put, with all checks.
    ///
    /// # Safety
    /// The stretches stay unchanged until the counter has counted the put as sent, or until the call returns
    /// if there is no counter.
    pub(crate) unsafe fn put_pieces(
        &self,
        (operation, pe): (&'static str, Pe),
        ranges: &[Range<usize>],
        stretches: &impl Stretches<T>,
        signal: Option<Signal<'_>>,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        self.check_rest(operation, (pe, 0), signal)?;
        self.check_vector((operation, pe), ranges, stretches)?;
        // SAFETY: all ranges were checked; the caller guarantees that the stretches are valid.
        unsafe { self.put_runs((operation, pe), &Vector { ranges, stretches }, signal, counter) };
        Ok(())
    }

    /// Starts a vector get, with all checks.
    ///
    /// # Safety
    /// No other code accesses the stretches until the counter has counted the get as done, or until the call
    /// returns if there is no counter.
    pub(crate) unsafe fn get_pieces(
        &self,
        (operation, pe): (&'static str, Pe),
        ranges: &[Range<usize>],
        stretches: &impl Stretches<T>,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        self.check_rest(operation, (pe, 0), None)?;
        self.check_vector((operation, pe), ranges, stretches)?;
        // SAFETY: all ranges were checked; the caller guarantees that the stretches are valid.
        unsafe { self.get_runs((operation, pe), &Vector { ranges, stretches }, counter) };
        Ok(())
    }

    /// Whether the ranges lie in the array, and are as long as the stretches.
    fn check_vector(
        &self,
        (operation, pe): (&'static str, Pe),
        ranges: &[Range<usize>],
        stretches: &impl Stretches<T>,
    ) -> Result<()> {
        let (me, len) = (self.world().my_pe(), self.len());
        let is_inside = |range: &Range<usize>| range.start <= range.end && range.end <= len;
        if let Some(range) = ranges.iter().find(|range| !is_inside(range)) {
            if range.start > range.end {
                let reason = format!("the range {range:?} ends before it begins");
                return self.refuse(operation, reason);
            }
            let (pe, index, count) = (self.region().pe(pe), range.start, range.len());
            return Err(ErrorKind::OutOfRange { me, operation, pe, index, count, len }.into());
        }
        let there = ranges.iter().try_fold(0usize, |sum, range| sum.checked_add(range.len()));
        let here = (0..stretches.count()).try_fold(0usize, |sum, i| sum.checked_add(stretches.stretch(i).1));
        if there.is_some() && there == here {
            return Ok(());
        }
        let words = |sum: Option<usize>| sum.map_or("more than fit memory".to_string(), |n| n.to_string());
        let (there, here) = (words(there), words(here));
        let what = format!("the ranges of the array have {there} elements altogether, and what lies here");
        self.refuse(operation, format!("{what} {here}. Both must have as many"))
    }

    /// Whether the pieces lie in the buffer.
    fn check_pieces(
        &self,
        (operation, pe): (&'static str, Pe),
        len: usize,
        pieces: &[Range<usize>],
    ) -> Result<()> {
        self.check_pe(operation, pe)?;
        match pieces.iter().find(|piece| piece.start > piece.end || piece.end > len) {
            None => Ok(()),
            Some(piece) => {
                let reason = format!("the piece {piece:?} lies outside the buffer of {len} elements");
                self.refuse(operation, reason)
            }
        }
    }
}
