//! The atomic discipline: every access is an atomic operation on one element.
//!
//! Invariant: all accesses, those to the own part as well, go to the executor of atomics that the job has for
//! the type, so they take effect one after the other. Over the net a batch is one message an element, all
//! under way at once: elements that were packed would not go to that executor.

use super::iter::{Iter, block_len};
use super::{Array, Atomic, reduction};
use crate::Pe;
use crate::array::amo::{AtomicElement, AtomicInteger};
use crate::base::error::Result;
use crate::coll::reduction::{ReduceOp, Reducible};
use pelago_fabric::AtomicOp;

/// Single elements. Over the net those that answer something take a round trip; the others do not wait, and
/// are complete after a [`quiet`](crate::World::quiet), a barrier or a conversion.
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

    /// Sets an element and answers its old value.
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn swap(&self, index: usize, value: T) -> Result<T> {
        let (owner, local) = self.locate("swap", index)?;
        self.view().swap(owner, local, value)
    }

    /// Sets an element to `new` if it is `expected`, and answers its old value: the swap has happened if that
    /// is `expected`. Floats are compared by their bits.
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
    /// If there is no such element, or no such operation on this type.
    pub fn amo(&self, index: usize, op: AtomicOp, operand: T) -> Result<()> {
        let (owner, local) = self.locate("amo", index)?;
        self.view().amo(owner, local, op, operand)
    }

    /// As [`amo`](Self::amo); answers the old value.
    ///
    /// # Errors
    /// As [`amo`](Self::amo).
    pub fn fetch_amo(&self, index: usize, op: AtomicOp, operand: T) -> Result<T> {
        let (owner, local) = self.locate("fetch_amo", index)?;
        self.view().fetch_amo(owner, local, op, operand)
    }
}

impl<T: AtomicInteger> Array<'_, T, Atomic> {
    /// Adds to an element, wrapping around, and answers its old value.
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn fetch_add(&self, index: usize, value: T) -> Result<T> {
        let (owner, local) = self.locate("fetch_add", index)?;
        self.view().fetch_add(owner, local, value)
    }

    /// Adds values to the elements of a list, wrapping around; complete as [`amo_all`](Self::amo_all). Floats
    /// are added to by that one.
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
    /// If there is no such element, or the lengths differ; nothing happens then.
    pub fn add(&self, indices: &[usize], values: &[T]) -> Result<()> {
        self.each("add", indices, values, |owner, local, value| self.view().add(owner, local, value))
    }
}

/// Lists of elements, which may name one several times. Over the net they are one message an element, and
/// as many are under way at once as the fabric takes; those that answer something wait for all at the end.
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

    /// As [`get`](Self::get), into a slice.
    ///
    /// # Errors
    /// As [`get`](Self::get), and if the slice has another length than the list.
    pub fn get_into(&self, indices: &[usize], target: &mut [T]) -> Result<()> {
        self.list("get_into", indices, target)
    }

    /// Sets the elements of a list; complete as [`amo_all`](Self::amo_all). Of values for one element it is
    /// unspecified which stays.
    ///
    /// # Errors
    /// If there is no such element, or the lengths differ; nothing happens then.
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
    /// If there is no such element, the lengths differ, or there is no such operation on this type; nothing
    /// happens then.
    pub fn amo_all(&self, op: AtomicOp, indices: &[usize], operands: &[T]) -> Result<()> {
        self.view().check_op("amo_all", op, false)?;
        let view = self.view();
        self.each("amo_all", indices, operands, |owner, local, operand| view.amo(owner, local, op, operand))
    }

    /// As [`amo_all`](Self::amo_all); answers the old values.
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

    /// Reads the elements at these places of the parts.
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

    /// Executes a fetching operation at these places of the parts, all at once.
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

    /// Calls for each element of a list, with the PE that has it, its place there, and its value.
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

/// Whole parts, and the whole array.
impl<T: AtomicElement> Array<'_, T, Atomic> {
    /// The elements of this PE with their indices, ascending, read in blocks of 16 KiB.
    ///
    /// # Panics
    /// While it goes on, if the job fails.
    #[track_caller]
    pub fn local_iter(&self) -> impl Iterator<Item = (usize, T)> {
        let (me, len) = (self.my_rank(), self.local_len());
        let values = Iter::new(len, block_len::<T>(), move |range, block| {
            self.load_all(range.map(|local| (me, local)), block)
        });
        self.local_indices().zip(values)
    }

    /// Sets all elements of this PE; complete as [`amo_all`](Self::amo_all).
    ///
    /// # Errors
    /// If the job has failed.
    pub fn fill(&self, value: T) -> Result<()> {
        let (me, view) = (self.my_rank(), self.view());
        (0..self.local_len()).try_for_each(|local| view.atomic_set(me, local, value))
    }

    /// All elements of all PEs, in the order of their indices, each read once. They come in blocks of 16 KiB,
    /// whose elements are read at once; what others write meanwhile may be among them or not.
    ///
    /// # Panics
    /// While it goes on, if the job fails.
    #[track_caller]
    pub fn iter(&self) -> Iter<'_, T> {
        self.iter_by(block_len::<T>())
    }

    /// As [`iter`](Self::iter), in blocks of so many elements.
    ///
    /// # Panics
    /// If a block has no elements; while it goes on, if the job fails.
    #[track_caller]
    pub fn iter_by(&self, block_len: usize) -> Iter<'_, T> {
        Iter::new(self.len(), block_len, move |range, block| {
            self.load_all(range.map(|index| self.layout().locate(index)), block)
        })
    }

    /// Combines all elements of all PEs, as an [`Exclusive`](super::Exclusive) array does. It
    /// begins with a barrier, so that what any PE has done before its call counts; what one does after it
    /// may count or not.
    ///
    /// # Errors
    /// If the operation is not defined for the type, or the PEs do not make the same call.
    #[track_caller]
    pub fn reduce(&self, op: ReduceOp) -> Result<Option<T>>
    where
        T: Reducible,
    {
        self.view().region().barrier(self.view().world());
        let mut values = vec![T::from_word(0); self.local_len()];
        self.load_all((0..values.len()).map(|local| (self.my_rank(), local)), &mut values)?;
        reduction::reduce(&self.parts, op, &values)
    }
}
