//! Indexed transfers: blocks of one length at a list of indices, as in a gather or a scatter of elements of a
//! table. Source: GASNet-EX, indexed puts and gets.
//!
//! Invariant: the whole list is checked before the first block moves.

use super::{Run, Runs};
use crate::Pe;
use crate::array::nb::Transfer;
use crate::array::signal::Signal;
use crate::array::view::View;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::signal_op::SignalOp;
use pelago_core::endpoint::completion_counter::CompletionCounter;

/// The elements that an indexed put or get moves: a block of `block` elements at each of the indices in the
/// array. In the slice the blocks lie one after the other, unless positions are given.
///
/// ```
/// use pelago::Indexed;
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// let table = world.alloc_zeroed::<u32>(100)?;
/// table.put_indexed(1, &[7, 8, 9], &Indexed::elements(&[50, 3, 99]))?;
/// world.barrier();
/// let mut found = [0; 2];
/// table.get_indexed(1, &mut found, &Indexed::elements(&[99, 50]))?;
/// assert_eq!(found, [9, 7]);
/// # world.barrier();
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexed<'a> {
    /// Elements of a block; at least 1.
    pub block: usize,
    /// The index of the first element of each block in the symmetric array.
    pub indices: &'a [usize],
    /// The position of the first element of each block in the slice, one for each index. If `None`, the
    /// blocks lie one after the other, and the slice has the length of all blocks.
    pub positions: Option<&'a [usize]>,
}

impl<'a> Indexed<'a> {
    /// Single elements, one after the other in the slice.
    pub const fn elements(indices: &'a [usize]) -> Indexed<'a> {
        Indexed::blocks(1, indices)
    }

    /// Blocks of `block` elements, one after the other in the slice.
    pub const fn blocks(block: usize, indices: &'a [usize]) -> Indexed<'a> {
        Indexed { block, indices, positions: None }
    }

    /// The same blocks, at these positions of the slice.
    pub const fn at(self, positions: &'a [usize]) -> Indexed<'a> {
        Indexed { positions: Some(positions), ..self }
    }
}

/// A list that was checked, with the start of the slice.
struct IndexedAt<'i, T> {
    indexed: &'i Indexed<'i>,
    start: *mut T,
}

impl<T> Runs<T> for IndexedAt<'_, T> {
    fn each(&self, mut visit: impl FnMut(Run<T>)) {
        let &Indexed { block, indices, positions } = self.indexed;
        let mut run = |index: usize, position: usize| {
            visit(Run { index, start: self.start.wrapping_add(position), count: block, slice: 0 });
        };
        match positions {
            None => indices.iter().enumerate().for_each(|(i, &index)| run(index, i * block)),
            Some(positions) => indices.iter().zip(positions).for_each(|(&index, &at)| run(index, at)),
        }
    }

    fn elements(&self) -> usize {
        self.indexed.indices.len().saturating_mul(self.indexed.block)
    }
}

impl<T: Element> View<'_, T> {
    /// Puts blocks of the source to a list of indices on `pe`; see [`Indexed`]. The source may be reused at
    /// return; the put is complete at the target after [`quiet`](crate::World::quiet) or a barrier. It counts
    /// as one put. Where blocks overlap in the array, it is unspecified whose elements remain.
    ///
    /// # Errors
    /// If there is no such PE, blocks have no elements, lengths differ, or a block lies outside the array or
    /// the source; nothing is written then.
    pub fn put_indexed(&self, pe: Pe, source: &[T], indexed: &Indexed<'_>) -> Result<()> {
        // SAFETY: without a counter the source is free when the call returns.
        unsafe { self.put_list(("put_indexed", pe), source, indexed, None, None) }
    }

    /// Gets the blocks of a list of indices on `pe`; see [`Indexed`]. The get is complete at return. It
    /// counts as one get. Where blocks overlap in the target, it is unspecified whose elements remain.
    ///
    /// # Errors
    /// If there is no such PE, blocks have no elements, lengths differ, or a block lies outside the array or
    /// the target; nothing is read then.
    pub fn get_indexed(&self, pe: Pe, target: &mut [T], indexed: &Indexed<'_>) -> Result<()> {
        // SAFETY: without a counter the get is complete when the call returns.
        unsafe { self.get_list(("get_indexed", pe), target, indexed, None) }
    }

    /// Puts as [`put_indexed`](View::put_indexed) and then signals, as [`put_signal`](View::put_signal): a PE
    /// that sees the signal sees all of the data.
    ///
    /// # Errors
    /// As [`put_indexed`](View::put_indexed), and if the signal's element does not exist or its array belongs
    /// to another world.
    pub fn put_indexed_signal(
        &self,
        pe: Pe,
        source: &[T],
        indexed: &Indexed<'_>,
        signals: &View<'_, u64>,
        signal_index: usize,
        op: SignalOp,
    ) -> Result<()> {
        let signal = Some(Signal { words: signals, index: signal_index, op });
        // SAFETY: without a counter the source is free when the call returns.
        unsafe { self.put_list(("put_indexed_signal", pe), source, indexed, signal, None) }
    }

    /// Starts an indexed put that owns its source, as [`put_nb`](View::put_nb). The lists may be reused at
    /// return.
    ///
    /// # Errors
    /// As [`put_indexed`](View::put_indexed).
    pub fn put_indexed_nb(&self, pe: Pe, source: Vec<T>, indexed: &Indexed<'_>) -> Result<Transfer<'_, T>> {
        Transfer::of_put(self.world(), source, |source, counter| {
            // SAFETY: the transfer owns the source and frees it only after it is sent.
            unsafe { self.put_list(("put_indexed_nb", pe), source, indexed, None, counter) }
        })
    }

    /// Starts an indexed get that owns its target, as [`get_nb`](View::get_nb). The lists may be reused at
    /// return.
    ///
    /// # Errors
    /// As [`get_indexed`](View::get_indexed).
    pub fn get_indexed_nb(&self, pe: Pe, target: Vec<T>, indexed: &Indexed<'_>) -> Result<Transfer<'_, T>> {
        Transfer::of_get(self.world(), target, |target, counter| {
            // SAFETY: the transfer owns the target and gives it out only after the get is complete.
            unsafe { self.get_list(("get_indexed_nb", pe), target, indexed, counter) }
        })
    }

    /// Starts an indexed put, with all checks.
    ///
    /// # Safety
    /// The source stays unchanged until the counter has counted the put as sent, or until the call returns if
    /// there is no counter.
    pub(crate) unsafe fn put_list(
        &self,
        (operation, pe): (&'static str, Pe),
        source: &[T],
        indexed: &Indexed<'_>,
        signal: Option<Signal<'_>>,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        self.check_rest(operation, (pe, 0), signal)?;
        self.check_list((operation, pe), source.len(), indexed)?;
        let runs = IndexedAt { indexed, start: source.as_ptr().cast_mut() };
        if indexed.block == 1
            && let Some(part) = self.near(pe, signal)
        {
            // SAFETY: every index lies in the array, and every element in the source.
            runs.each(|run| unsafe { part.store(run.index, *run.start) });
            return Ok(());
        }
        // SAFETY: all indices were checked; the caller guarantees that the source stays unchanged.
        unsafe { self.put_runs((operation, pe), &runs, signal, counter) };
        Ok(())
    }

    /// Starts an indexed get, with all checks.
    ///
    /// # Safety
    /// No other code accesses the target until the counter has counted the get as done, or until the call
    /// returns if there is no counter.
    pub(crate) unsafe fn get_list(
        &self,
        (operation, pe): (&'static str, Pe),
        target: &mut [T],
        indexed: &Indexed<'_>,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        self.check_rest(operation, (pe, 0), None)?;
        self.check_list((operation, pe), target.len(), indexed)?;
        let runs = IndexedAt { indexed, start: target.as_mut_ptr() };
        if indexed.block == 1
            && let Some(part) = self.near(pe, None)
        {
            // SAFETY: every index lies in the array, and every element in the target.
            runs.each(|run| unsafe { *run.start = part.load(run.index) });
            return Ok(());
        }
        // SAFETY: all indices were checked; the caller guarantees that no other code accesses the target.
        unsafe { self.get_runs((operation, pe), &runs, counter) };
        Ok(())
    }

    /// Whether every block lies in the array and in the slice.
    fn check_list(
        &self,
        (operation, pe): (&'static str, Pe),
        slice_len: usize,
        indexed: &Indexed<'_>,
    ) -> Result<()> {
        let &Indexed { block, indices, positions } = indexed;
        let (me, len, count) = (self.world().my_pe(), self.len(), indices.len());
        if block == 0 {
            return self.refuse(operation, "a block has at least 1 element".to_string());
        }
        if let Some(&index) = indices.iter().find(|&&index| !self.has_range(index, block)) {
            let pe = self.region().pe(pe);
            return Err(ErrorKind::OutOfRange { me, operation, pe, index, count: block, len }.into());
        }
        let Some(positions) = positions else {
            return match count.checked_mul(block) == Some(slice_len) {
                true => Ok(()),
                false => self.refuse(
                    operation,
                    format!(
                        "the slice has {slice_len} elements, and not those of {count} blocks of {block}. \
                         Give it this length, or positions"
                    ),
                ),
            };
        };
        if positions.len() != count {
            let reason = format!("it has {count} indices and {} positions; give as many", positions.len());
            return self.refuse(operation, reason);
        }
        let fits = |at: usize| slice_len.checked_sub(block).is_some_and(|last| at <= last);
        match positions.iter().find(|&&at| !fits(at)) {
            None => Ok(()),
            Some(at) => self.refuse(
                operation,
                format!(
                    "a block of {block} elements at position {at} lies outside the slice, which has \
                     {slice_len} elements"
                ),
            ),
        }
    }
}
