//! The atomic discipline: every access is an atomic operation on one element.
//!
//! Invariant: the job's executor of atomics for the type executes all accesses, including those to the own
//! part, so they take effect one after the other. Over the network a batch is one message for each element,
//! all outstanding at the same time: packed elements would bypass that executor.

use super::iter::{Iter, block_len};
use super::{Array, Atomic, reduction};
use crate::Pe;
use crate::array::amo::AtomicElement;
use pelago_core::base::error::Result;
use pelago_core::coll::reduction::{ReduceOp, Reducible};
use pelago_fabric::AtomicOp;

/// Operations on single elements. Over the network, operations that return a value take a round trip; the
/// others do not wait, and are complete after a [`quiet`](crate::World::quiet), a barrier or a conversion.
impl<T: AtomicElement> Array<'_, T, Atomic> {
    /// Reads an element.
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn load(&self, index: usize) -> Result<T> {
        let (owner, local) = self.locate("load", index)?;
        self.view().atomic_fetch(owner, local)
    }

    /// Sets an element.
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn store(&self, index: usize, value: T) -> Result<()> {
        let (owner, local) = self.locate("store", index)?;
        self.view().atomic_set(owner, local, value)
    }

    /// Sets an element and returns its old value.
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn swap(&self, index: usize, value: T) -> Result<T> {
        let (owner, local) = self.locate("swap", index)?;
        self.view().swap(owner, local, value)
    }

    /// Sets an element to `new` if it is `expected`, and returns its old value: the element was changed if
    /// the old value is `expected`. Floats are compared by their bits.
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn compare_swap(&self, index: usize, expected: T, new: T) -> Result<T> {
        let (owner, local) = self.locate("compare_swap", index)?;
        self.view().compare_swap(owner, local, expected, new)
    }

    /// Executes any operation that takes one operand.
    ///
    /// # Errors
    /// If there is no such element, or the type does not have this operation.
    pub fn amo(&self, index: usize, op: AtomicOp, operand: T) -> Result<()> {
        let (owner, local) = self.locate("amo", index)?;
        self.view().amo(owner, local, op, operand)
    }

    /// Executes an operation as [`amo`](Self::amo) does, and returns the old value.
    ///
    /// # Errors
    /// As [`amo`](Self::amo).
    pub fn fetch_amo(&self, index: usize, op: AtomicOp, operand: T) -> Result<T> {
        let (owner, local) = self.locate("fetch_amo", index)?;
        self.view().fetch_amo(owner, local, op, operand)
    }
}

impl<T: AtomicElement> Array<'_, T, Atomic> {
    /// Adds to an element and returns its old value. Integers wrap around.
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn fetch_add(&self, index: usize, value: T) -> Result<T> {
        let (owner, local) = self.locate("fetch_add", index)?;
        self.view().fetch_add(owner, local, value)
    }

    /// Adds values to the elements of a list. Integers wrap around. It completes as
    /// [`amo_all`](Self::amo_all) does.
    ///
    /// ```
    /// # use pelago::distributed::BlockSize;
    /// # pelago::spmd(4, |world| -> pelago::Result<()> {
    /// let counts = world.distributed_array::<u64>(3, BlockSize::Even)?.into_atomic()?;
    /// counts.add(&[0, 2, 2], &[1, 1, 1])?;
    /// let counts = counts.into_read_only()?; // complete
    /// assert_eq!(counts.get(&[0, 1, 2])?, [4, 0, 8]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such element, or the lengths differ; no element is changed then.
    pub fn add(&self, indices: &[usize], values: &[T]) -> Result<()> {
        self.each("add", indices, values, |owner, local, value| self.view().add(owner, local, value))
    }
}

/// Operations on lists of elements. A list may name an element several times. Over the network there is one
/// message for each element, and as many are outstanding as the fabric accepts; operations that return values
/// wait for all of them at the end.
impl<T: AtomicElement> Array<'_, T, Atomic> {
    /// Reads the elements of a list.
    ///
    /// # Errors
    /// If there is no such element; nothing is read then.
    pub fn get(&self, indices: &[usize]) -> Result<Vec<T>> {
        let mut values = vec![T::from_word(0); indices.len()];
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

    /// Sets the elements of a list. It completes as [`amo_all`](Self::amo_all) does. If the list names an
    /// element several times, it is unspecified which value remains.
    ///
    /// # Errors
    /// If there is no such element, or the lengths differ; no element is changed then.
    pub fn put(&self, indices: &[usize], values: &[T]) -> Result<()> {
        self.each("put", indices, values, |owner, local, value| self.view().atomic_set(owner, local, value))
    }

    /// Executes an operation on the elements of a list, each with its operand. It does not wait: it is
    /// complete after a [`quiet`](crate::World::quiet), a barrier or a conversion.
    ///
    /// ```
    /// # use pelago::{AtomicOp, distributed::BlockSize};
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let sums = world.distributed_array::<f64>(4, BlockSize::Cyclic)?.into_atomic()?;
    /// sums.amo_all(AtomicOp::Add, &[3, 0, 3], &[0.5, 1.0, 0.25])?;
    /// let sums = sums.into_read_only()?;
    /// assert_eq!(sums.get(&[0, 3])?, [2.0, 1.5]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such element, the lengths differ, or the type does not have this operation; no element
    /// is changed then.
    pub fn amo_all(&self, op: AtomicOp, indices: &[usize], operands: &[T]) -> Result<()> {
        self.view().check_op("amo_all", op, false)?;
        let view = self.view();
        self.each("amo_all", indices, operands, |owner, local, operand| view.amo(owner, local, op, operand))
    }

    /// Executes an operation as [`amo_all`](Self::amo_all) does, waits for it, and returns the old values in
    /// the order of the list.
    ///
    /// # Errors
    /// As [`amo_all`](Self::amo_all).
    pub fn fetch_amo_all(&self, op: AtomicOp, indices: &[usize], operands: &[T]) -> Result<Vec<T>> {
        self.view().check_op("fetch_amo_all", op, false)?;
        self.check_list("fetch_amo_all", indices, operands.len())?;
        let mut olds = vec![T::from_word(0); indices.len()];
        let places = indices.iter().map(|&index| self.layout().locate(index));
        self.fetch(op, places.zip(operands.iter().copied()), &mut olds)?;
        Ok(olds)
    }

    fn list(&self, operation: &'static str, indices: &[usize], target: &mut [T]) -> Result<()> {
        self.check_list(operation, indices, target.len())?;
        self.load_all(indices.iter().map(|&index| self.layout().locate(index)), target)
    }

    /// Reads the elements at these positions of the parts.
    fn load_all(&self, places: impl Iterator<Item = (Pe, usize)>, target: &mut [T]) -> Result<()> {
        let view = self.view();
        if !view.are_all_mapped() {
            return self.fetch(AtomicOp::Fetch, places.map(|place| (place, T::from_word(0))), target);
        }
        places.zip(target).try_for_each(|((owner, local), value)| {
            *value = view.atomic_fetch(owner, local)?;
            Ok(())
        })
    }

    /// Executes a fetching operation at these positions of the parts, all at once.
    fn fetch(
        &self,
        op: AtomicOp,
        operands: impl Iterator<Item = ((Pe, usize), T)>,
        olds: &mut [T],
    ) -> Result<()> {
        self.view().world().scope(|scope| {
            operands.zip(olds).try_for_each(|(((owner, local), operand), old)| {
                scope.fetch_amo(self.view(), owner, local, op, operand, old)
            })
        })
    }

    /// Calls `work` for each element of a list, with its owner, its position in the owner's part, and its
    /// value.
    #[inline]
    fn each(
        &self,
        operation: &'static str,
        indices: &[usize],
        values: &[T],
        start: impl Fn(Pe, usize, T) -> Result<()>,
    ) -> Result<()> {
        self.check_list(operation, indices, values.len())?;
        indices.iter().zip(values).try_for_each(|(&index, &value)| {
            let (owner, local) = self.layout().locate(index);
            start(owner, local, value)
        })
    }
}

/// Operations on whole parts, and on the whole array.
impl<T: AtomicElement> Array<'_, T, Atomic> {
    /// The elements of this PE with their indices, in ascending order, read in blocks of 16 KiB.
    ///
    /// # Panics
    /// If the job fails during the iteration.
    #[track_caller]
    pub fn local_iter(&self) -> impl Iterator<Item = (usize, T)> {
        let (me, len) = (self.my_rank(), self.local_len());
        let values = Iter::new(len, block_len::<T>(), move |range, block| {
            self.load_all(range.map(|local| (me, local)), block)
        });
        self.local_indices().zip(values)
    }

    /// Sets all elements of this PE. It completes as [`amo_all`](Self::amo_all) does.
    ///
    /// # Errors
    /// If the job has failed.
    pub fn fill(&self, value: T) -> Result<()> {
        let (me, view) = (self.my_rank(), self.view());
        (0..self.local_len()).try_for_each(|local| view.atomic_set(me, local, value))
    }

    /// All elements of all PEs, in the order of their indices, each read once. They come in blocks of 16 KiB,
    /// whose elements are read concurrently. Values that other PEs write meanwhile may or may not be seen.
    ///
    /// # Panics
    /// If the job fails during the iteration.
    #[track_caller]
    pub fn iter(&self) -> Iter<'_, T> {
        self.iter_by(block_len::<T>())
    }

    /// Iterates as [`iter`](Self::iter) does, in blocks of `block_len` elements.
    ///
    /// # Panics
    /// If `block_len` is 0, or if the job fails during the iteration.
    #[track_caller]
    pub fn iter_by(&self, block_len: usize) -> Iter<'_, T> {
        Iter::new(self.len(), block_len, move |range, block| {
            self.load_all(range.map(|index| self.layout().locate(index)), block)
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
        self.view().region().barrier(self.view().world().core());
        let mut values = vec![T::from_word(0); self.local_len()];
        self.load_all((0..values.len()).map(|local| (self.my_rank(), local)), &mut values)?;
        reduction::reduce(&self.parts, op, &values)
    }
}
