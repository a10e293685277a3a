//! The locked discipline: each PE's part has a lock for readers and writers, which every access takes.
//!
//! Invariant: a slice of the own part exists only in a guard, which holds the part's lock. Every operation
//! that moves elements of a part holds that part's lock meanwhile and is complete before it releases the
//! lock. No call holds the locks of two parts, and no call is possible while a guard is alive, because the
//! guard borrows the array mutably.

use super::batch::{Batch, zeros};
use super::iter::{Iter, block_len};
use super::part_lock::{Mode, PartLocks};
use super::{Array, Locked, part, reduction};
use crate::Pe;
use crate::upc::SharedArray;
use crate::vis::Indexed;
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use pelago_core::coll::reduction::{ReduceOp, Reducible};
use pelago_core::job::callback::{self, Callback};
use std::ops::{Add, Deref, DerefMut, Range};

/// This PE's part.
impl<T: Element> Array<'_, T, Locked> {
    /// Waits until no PE writes to this PE's part, and returns a guard to read it. Other PEs may read it
    /// meanwhile.
    ///
    /// ```
    /// # use pelago::distributed::BlockSize;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let mut array = world.distributed_array::<u32>(8, BlockSize::Even)?.into_locked()?;
    /// array.update(&[0, 7, 0], &[1, 2, 3], |old, by| old + by)?;
    /// world.barrier();
    /// let sum: u32 = array.read_guard()?.iter().sum();
    /// assert_eq!(sum, [8, 4][world.my_pe()]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// While a guard is alive, this PE cannot use the array otherwise. So PEs that hold their own parts
    /// cannot wait for each other's parts:
    /// ```compile_fail,E0502
    /// # use pelago::distributed::BlockSize;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let mut array = world.distributed_array::<u32>(8, BlockSize::Even)?.into_locked()?;
    /// let guard = array.read_guard()?;
    /// array.store(7, guard[0])
    /// # });
    /// ```
    ///
    /// # Errors
    /// If the job has failed.
    pub fn read_guard(&mut self) -> Result<ReadGuard<'_, T>> {
        let this: &Self = self;
        this.state.hold("read_guard", Mode::Read)?;
        Ok(ReadGuard { locks: &this.state, parts: &this.parts })
    }

    /// Waits until no PE accesses this PE's part, and returns a guard to write it. A guard that is forgotten
    /// holds the part until the next call on the array, until a conversion, or until the array is dropped.
    ///
    /// # Errors
    /// If the job has failed.
    pub fn write_guard(&mut self) -> Result<WriteGuard<'_, T>> {
        let this: &Self = self;
        this.state.hold("write_guard", Mode::Write)?;
        Ok(WriteGuard { locks: &this.state, parts: &this.parts })
    }

    /// Sets all elements of this PE, under the lock of its part.
    ///
    /// # Errors
    /// If the job has failed.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.write_guard()?.fill(value);
        Ok(())
    }

    /// Replaces each element of this PE with the result of `new` for its index and value, under the lock of
    /// its part.
    ///
    /// # Errors
    /// If the job has failed.
    pub fn map_in_place(&mut self, mut new: impl FnMut(usize, T) -> T) -> Result<()> {
        self.write_guard()?.local_iter_mut().for_each(|(index, value)| *value = new(index, *value));
        Ok(())
    }
}

/// Operations on elements of any part. To lock a part over the network costs four round trips, and a writer
/// may wait for readers in addition. A list locks each part once, one after the other.
impl<T: Element> Array<'_, T, Locked> {
    /// Reads an element.
    ///
    /// # Errors
    /// If there is no such element.
    pub fn load(&self, index: usize) -> Result<T> {
        let (owner, local) = self.locate("load", index)?;
        self.state.with("load", (Mode::Read, owner), || self.view().g(owner, local))
    }

    /// Writes an element; the write is complete at return.
    ///
    /// # Errors
    /// If there is no such element.
    pub fn store(&self, index: usize, value: T) -> Result<()> {
        let (owner, local) = self.locate("store", index)?;
        self.state.with("store", (Mode::Write, owner), || self.view().p(owner, local, value))
    }

    /// Reads the elements of a list, which may name an element several times. The elements of one PE are read
    /// under one lock; those of different PEs are read at different times. It makes one indexed get from each
    /// PE that owns some of them.
    ///
    /// # Errors
    /// If there is no such element; nothing is read then.
    pub fn get(&self, indices: &[usize]) -> Result<Vec<T>> {
        let mut values = zeros(indices.len());
        self.list("get", indices, &mut values)?;
        Ok(values)
    }

    /// Reads the elements of a list, as [`get`](Self::get) does, into a slice.
    ///
    /// # Errors
    /// As [`get`](Self::get), and if the lengths of the slice and the list differ.
    pub fn get_into(&self, indices: &[usize], target: &mut [T]) -> Result<()> {
        self.list("get_into", indices, target)
    }

    /// Writes the elements of a list; the writes are complete at return. If the list names an element several
    /// times, it is unspecified which value remains. It makes one indexed put to each PE that owns some of
    /// them.
    ///
    /// # Errors
    /// If there is no such element, or the lengths differ; nothing is written then.
    pub fn put(&self, indices: &[usize], values: &[T]) -> Result<()> {
        self.check_list("put", indices, values.len())?;
        let batch = Batch::new(self.layout(), indices);
        let values = batch.grouped(values);
        batch.groups().try_for_each(|(pe, group)| {
            let (locals, values) = (batch.locals(group.clone()), &values[group]);
            self.state.with("put", (Mode::Write, pe), || {
                self.view().put_indexed(pe, values, &Indexed::elements(locals))
            })
        })
    }

    /// Replaces each element of a list with the result of `new` for the element and its operand; the changes
    /// are complete at return. If the list names an element several times, its operands are applied one after
    /// the other, in their order. It makes one indexed get and one indexed put for each PE that owns some of
    /// the elements.
    ///
    /// # Errors
    /// If there is no such element, or the lengths differ; nothing is changed then.
    ///
    /// # Panics
    /// If `new` panics, or makes a call that waits for other PEs. The job then fails.
    #[track_caller]
    pub fn update(&self, indices: &[usize], operands: &[T], new: impl FnMut(T, T) -> T) -> Result<()> {
        self.update_as("update", indices, operands, new)
    }

    /// Adds values to the elements of a list, as [`update`](Self::update) does. Integer overflow panics if
    /// the program is built with overflow checks.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn add(&self, indices: &[usize], values: &[T]) -> Result<()>
    where
        T: Add<Output = T>,
    {
        self.update_as("add", indices, values, Add::add)
    }

    fn update_as(
        &self,
        operation: &'static str,
        indices: &[usize],
        operands: &[T],
        mut new: impl FnMut(T, T) -> T,
    ) -> Result<()> {
        self.check_list(operation, indices, operands.len())?;
        let (view, batch) = (self.view(), Batch::new(self.layout(), indices));
        batch.groups().try_for_each(|(pe, group)| {
            let (places, changes) = changes(&batch, group, operands);
            self.state.with(operation, (Mode::Write, pe), || {
                let mut values = zeros::<T>(places.len());
                view.get_indexed(pe, &mut values, &Indexed::elements(&places))?;
                callback::run(view.world().core(), Callback::Function(operation), || {
                    for &(at, operand) in &changes {
                        values[at] = new(values[at], operand);
                    }
                });
                view.put_indexed(pe, &values, &Indexed::elements(&places))
            })
        })
    }

    fn list(&self, operation: &'static str, indices: &[usize], target: &mut [T]) -> Result<()> {
        self.check_list(operation, indices, target.len())?;
        let batch = Batch::new(self.layout(), indices);
        let mut found = zeros::<T>(indices.len());
        for (pe, group) in batch.groups() {
            let (locals, values) = (batch.locals(group.clone()), &mut found[group]);
            self.state.with(operation, (Mode::Read, pe), || {
                self.view().get_indexed(pe, values, &Indexed::elements(locals))
            })?;
        }
        batch.ungroup(&found, target);
        Ok(())
    }
}

/// Operations on the whole array.
impl<T: Element> Array<'_, T, Locked> {
    /// All elements of all PEs, in the order of their indices. They are read in blocks of 16 KiB. The
    /// elements of a block on one PE are read under one lock; those of different PEs are read at different
    /// times.
    ///
    /// # Panics
    /// If the job fails during the iteration.
    #[track_caller]
    pub fn iter(&self) -> Iter<'_, T> {
        self.iter_by(block_len::<T>())
    }

    /// Iterates as [`iter`](Self::iter) does, in blocks of `block_len` elements. For each block it locks the
    /// part of each PE that owns some of the block once.
    ///
    /// # Panics
    /// If `block_len` is 0, or if the job fails during the iteration.
    #[track_caller]
    pub fn iter_by(&self, block_len: usize) -> Iter<'_, T> {
        Iter::new(self.len(), block_len, move |range, block| {
            (0..self.layout().n_pes()).try_for_each(|pe| {
                let local = self.layout().local_range(pe, range.clone());
                if local.is_empty() {
                    return Ok(());
                }
                let packed = self.part_of("iter", pe, local)?;
                self.spread(pe, range.clone(), &packed, block);
                Ok(())
            })
        })
    }

    /// Combines all elements of all PEs, as an [`Exclusive`](super::Exclusive) array does. It begins with a
    /// barrier, so that the result includes all changes that PEs have made before their calls. It may or may
    /// not include later changes.
    ///
    /// # Errors
    /// If the operation is not defined for the type, or the PEs make different calls.
    #[track_caller]
    pub fn reduce(&self, op: ReduceOp) -> Result<Option<T>>
    where
        T: Reducible,
    {
        self.state.settle();
        self.view().region().barrier(self.view().world().core());
        let values = self.part_of("reduce", self.my_rank(), 0..self.local_len())?;
        reduction::reduce(&self.parts, op, &values)
    }

    /// A copy of a range of a PE's part.
    fn part_of(&self, operation: &'static str, pe: Pe, local: Range<usize>) -> Result<Vec<T>> {
        let mut values = zeros(local.len());
        self.state.with(operation, (Mode::Read, pe), || self.view().get(pe, local.start, &mut values))?;
        Ok(values)
    }
}

/// Iterates as [`Array::iter`](Array::<T, Locked>::iter) does.
impl<'a, T: Element> IntoIterator for &'a Array<'_, T, Locked> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    #[track_caller]
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The positions that a group changes, each once and in ascending order, and the changes: the number of the
/// position, and the operand.
fn changes<T: Copy>(batch: &Batch, group: Range<usize>, operands: &[T]) -> (Vec<usize>, Vec<(usize, T)>) {
    let numbers = batch.numbers(group.clone()).iter().map(|&number| operands[number]);
    let mut changes: Vec<(usize, T)> = batch.locals(group).iter().copied().zip(numbers).collect();
    // The sort is stable: operands of one element keep their order.
    changes.sort_by_key(|&(local, _)| local);
    let mut places: Vec<usize> = Vec::with_capacity(changes.len());
    for (local, _) in &mut changes {
        if places.last() != Some(local) {
            places.push(*local);
        }
        *local = places.len() - 1;
    }
    (places, changes)
}

/// A guard to read this PE's part: see [`Array::read_guard`](Array::<T, Locked>::read_guard).
#[must_use = "the part is let go when the guard is dropped"]
pub struct ReadGuard<'a, T: Element> {
    locks: &'a PartLocks<'a>,
    parts: &'a SharedArray<'a, T>,
}

/// A guard to write this PE's part: see [`Array::write_guard`](Array::<T, Locked>::write_guard).
#[must_use = "the part is let go when the guard is dropped"]
pub struct WriteGuard<'a, T: Element> {
    locks: &'a PartLocks<'a>,
    parts: &'a SharedArray<'a, T>,
}

impl<T: Element> ReadGuard<'_, T> {
    /// The elements of this PE with their indices, in ascending order.
    pub fn local_iter(&self) -> impl ExactSizeIterator<Item = (usize, &T)> {
        local_indices(self.parts).zip(self.iter())
    }
}

impl<T: Element> WriteGuard<'_, T> {
    /// The elements of this PE with their indices, in ascending order.
    pub fn local_iter_mut(&mut self) -> impl ExactSizeIterator<Item = (usize, &mut T)> {
        local_indices(self.parts).zip(self.iter_mut())
    }
}

/// The indices of the elements that this PE owns.
fn local_indices<T: Element>(parts: &SharedArray<'_, T>) -> impl ExactSizeIterator<Item = usize> + use<T> {
    parts.affine(0..parts.len()).map(|(index, _)| index)
}

impl<T: Element> Deref for ReadGuard<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the guard holds the part for reading, and every PE that writes to a part of a locked array
        // holds it for writing, until its puts are complete.
        unsafe { part::shared(self.parts) }
    }
}

impl<T: Element> Deref for WriteGuard<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the guard holds the part for writing, so no other PE accesses it; on this PE the guard
        // borrows the array, and code that writes through the guard borrows it mutably.
        unsafe { part::shared(self.parts) }
    }
}

impl<T: Element> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the guard holds the part for writing, so no other PE accesses it; on this PE the guard
        // borrows the array, and the guard is borrowed mutably.
        unsafe { part::exclusive(self.parts) }
    }
}

impl<T: Element> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        self.locks.let_go();
    }
}

impl<T: Element> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        self.locks.let_go();
    }
}
