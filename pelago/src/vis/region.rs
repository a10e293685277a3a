//! Transfers of scattered elements in a scope or a region: they do not wait, and their buffers are borrowed
//! until the scope ends. The lists of indices and ranges may be reused when a call returns.

use super::vector::Slices;
use super::{Indexed, Shape};
use crate::Pe;
use crate::array::nb::Region;
use crate::array::signal::Signal;
use crate::array::view::View;
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use pelago_core::base::signal_op::SignalOp;
use std::ops::Range;

impl<'scope> Region<'scope> {
    /// Starts a strided put, as [`View::put_strided`]. The source is in use until the scope ends.
    ///
    /// # Errors
    /// As [`View::put_strided`], and if the array and the scope belong to different worlds; no operation is
    /// started then.
    pub fn put_strided<T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        index: usize,
        source: &'scope [T],
        shape: &(impl Shape + ?Sized),
    ) -> Result<()> {
        let counter = self.tracker_for("put_strided", array)?;
        // SAFETY: the source is borrowed until the scope has completed all its operations.
        unsafe { array.put_shape(("put_strided", pe), (index, source), shape, None, counter) }
    }

    /// Starts a strided get, as [`View::get_strided`]. The get is complete when the scope ends.
    ///
    /// # Errors
    /// As [`View::get_strided`], and if the array and the scope belong to different worlds; no operation is
    /// started then.
    pub fn get_strided<T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        index: usize,
        target: &'scope mut [T],
        shape: &(impl Shape + ?Sized),
    ) -> Result<()> {
        let counter = self.tracker_for("get_strided", array)?;
        // SAFETY: the target is borrowed until the scope has completed all its operations.
        unsafe { array.get_shape(("get_strided", pe), (index, target), shape, counter) }
    }

    /// Starts a strided put with its signal, as [`View::put_strided_signal`]. The source is in use until the
    /// scope ends.
    ///
    /// # Errors
    /// As [`View::put_strided_signal`], and if the array and the scope belong to different worlds.
    #[expect(clippy::too_many_arguments, reason = "what View::put_strided_signal takes, and the array")]
    pub fn put_strided_signal<T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        index: usize,
        source: &'scope [T],
        shape: &(impl Shape + ?Sized),
        signals: &View<'_, u64>,
        signal_index: usize,
        op: SignalOp,
    ) -> Result<()> {
        let (operation, signal) = ("put_strided_signal", Signal { words: signals, index: signal_index, op });
        let counter = self.tracker_for(operation, array)?;
        // SAFETY: the source is borrowed until the scope has completed all its operations.
        unsafe { array.put_shape((operation, pe), (index, source), shape, Some(signal), counter) }
    }

    /// Starts an indexed put, as [`View::put_indexed`]. The source is in use until the scope ends.
    ///
    /// # Errors
    /// As [`View::put_indexed`], and if the array and the scope belong to different worlds; no operation is
    /// started then.
    pub fn put_indexed<T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        source: &'scope [T],
        indexed: &Indexed<'_>,
    ) -> Result<()> {
        let counter = self.tracker_for("put_indexed", array)?;
        // SAFETY: the source is borrowed until the scope has completed all its operations.
        unsafe { array.put_list(("put_indexed", pe), source, indexed, None, counter) }
    }

    /// Starts an indexed get, as [`View::get_indexed`]. The get is complete when the scope ends.
    ///
    /// # Errors
    /// As [`View::get_indexed`], and if the array and the scope belong to different worlds; no operation is
    /// started then.
    pub fn get_indexed<T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        target: &'scope mut [T],
        indexed: &Indexed<'_>,
    ) -> Result<()> {
        let counter = self.tracker_for("get_indexed", array)?;
        // SAFETY: the target is borrowed until the scope has completed all its operations.
        unsafe { array.get_list(("get_indexed", pe), target, indexed, counter) }
    }

    /// Starts an indexed put with its signal, as [`View::put_indexed_signal`]. The source is in use until the
    /// scope ends.
    ///
    /// # Errors
    /// As [`View::put_indexed_signal`], and if the array and the scope belong to different worlds.
    #[expect(clippy::too_many_arguments, reason = "what View::put_indexed_signal takes, and the array")]
    pub fn put_indexed_signal<T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        source: &'scope [T],
        indexed: &Indexed<'_>,
        signals: &View<'_, u64>,
        signal_index: usize,
        op: SignalOp,
    ) -> Result<()> {
        let (operation, signal) = ("put_indexed_signal", Signal { words: signals, index: signal_index, op });
        let counter = self.tracker_for(operation, array)?;
        // SAFETY: the source is borrowed until the scope has completed all its operations.
        unsafe { array.put_list((operation, pe), source, indexed, Some(signal), counter) }
    }

    /// Starts a vector put, as [`View::put_vector`]. The sources are in use until the scope ends.
    ///
    /// # Errors
    /// As [`View::put_vector`], and if the array and the scope belong to different worlds; no operation is
    /// started then.
    pub fn put_vector<T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        ranges: &[Range<usize>],
        sources: &[&'scope [T]],
    ) -> Result<()> {
        let counter = self.tracker_for("put_vector", array)?;
        let sources = Slices::to_read(sources);
        // SAFETY: the sources are borrowed until the scope has completed all its operations.
        unsafe { array.put_pieces(("put_vector", pe), ranges, &sources, None, counter) }
    }

    /// Starts a vector get, as [`View::get_vector`]. The get is complete when the scope ends. The list of
    /// targets is borrowed until then as well, because the targets could be accessed through it.
    ///
    /// # Errors
    /// As [`View::get_vector`], and if the array and the scope belong to different worlds; no operation is
    /// started then.
    pub fn get_vector<'b: 'scope, T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        ranges: &[Range<usize>],
        targets: &'scope mut [&'b mut [T]],
    ) -> Result<()> {
        let counter = self.tracker_for("get_vector", array)?;
        let targets = Slices::to_write(targets);
        // SAFETY: the targets are borrowed until the scope has completed all its operations.
        unsafe { array.get_pieces(("get_vector", pe), ranges, &targets, counter) }
    }

    /// Starts a vector put with its signal, as [`View::put_vector_signal`]. The sources are in use until the
    /// scope ends.
    ///
    /// # Errors
    /// As [`View::put_vector_signal`], and if the array and the scope belong to different worlds.
    #[expect(clippy::too_many_arguments, reason = "what View::put_vector_signal takes, and the array")]
    pub fn put_vector_signal<T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        ranges: &[Range<usize>],
        sources: &[&'scope [T]],
        signals: &View<'_, u64>,
        signal_index: usize,
        op: SignalOp,
    ) -> Result<()> {
        let (operation, signal) = ("put_vector_signal", Signal { words: signals, index: signal_index, op });
        let counter = self.tracker_for(operation, array)?;
        // SAFETY: the sources are borrowed until the scope has completed all its operations.
        unsafe { array.put_pieces((operation, pe), ranges, &Slices::to_read(sources), Some(signal), counter) }
    }
}
