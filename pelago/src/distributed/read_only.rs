//! The read-only discipline: no PE writes, so all PEs may read at any time.
//!
//! Invariant: a read-only array has no operation that writes, and every PE that relies on that has found
//! agreement that the array is read-only on all PEs, after all writes were complete.

use super::batch::{Batch, zeros};
use super::iter::{Iter, block_len};
use super::{Array, ReadOnly, part, reduction};
use crate::Pe;
use crate::array::nb::Transfer;
use crate::vis::Indexed;
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use pelago_core::coll::reduction::{ReduceOp, Reducible};
use std::ops::Range;

impl<T: Element> Array<'_, T, ReadOnly> {
    /// This PE's part, as a slice.
    pub fn local(&self) -> &[T] {
        // SAFETY: all PEs have agreed that the array is read-only, so no PE writes to it.
        unsafe { part::shared(&self.parts) }
    }

    /// The elements of this PE with their indices, in ascending order.
    ///
    /// ```
    /// # use pelago::distributed::BlockSize;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let array = world.distributed_array::<u8>(5, BlockSize::Cyclic)?.into_read_only()?;
    /// let indices: Vec<_> = array.local_iter().map(|(index, _)| index).collect();
    /// assert_eq!(indices, [vec![0, 2, 4], vec![1, 3]][world.my_pe()]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    pub fn local_iter(&self) -> impl ExactSizeIterator<Item = (usize, &T)> {
        self.local_indices().zip(self.local())
    }

    /// Reads an element: a get, or a load of the own part.
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn load(&self, index: usize) -> Result<T> {
        let (owner, local) = self.locate("load", index)?;
        match owner == self.my_rank() {
            true => Ok(self.local()[local]),
            false => self.view().g(owner, local),
        }
    }

    /// Reads the elements from `index` on into `target`. Over the network it makes one get from each PE that
    /// owns some of them.
    ///
    /// # Errors
    /// If the range exceeds the array; nothing is read then.
    pub fn read(&self, index: usize, target: &mut [T]) -> Result<()> {
        self.check_range("read", index, target.len())?;
        self.parts.memget(index, target)
    }

    /// Reads the elements of a list, which may name an element several times. Over the network it makes one
    /// indexed get from each other PE that owns some of them, all at the same time: packed into messages if
    /// there are 16 elements or more, or else one message for each element.
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

    fn list(&self, operation: &'static str, indices: &[usize], target: &mut [T]) -> Result<()> {
        self.check_list(operation, indices, target.len())?;
        let (view, layout, me) = (self.view(), self.layout(), self.my_rank());
        if view.are_all_mapped() {
            // One load for each element; to sort them would cost more.
            return indices.iter().zip(target).try_for_each(|(&index, value)| {
                let (owner, local) = layout.locate(index);
                *value = view.g(owner, local)?;
                Ok(())
            });
        }
        let batch = Batch::new(layout, indices);
        let mut found = zeros::<T>(indices.len());
        view.world().scope(|scope| {
            let mut rest = &mut found[..];
            for (pe, group) in batch.groups() {
                let (values, behind) = rest.split_at_mut(group.len());
                let locals = batch.locals(group);
                match pe == me {
                    true => values.iter_mut().zip(locals).for_each(|(to, &at)| *to = self.local()[at]),
                    false => scope.get_indexed(view, pe, values, &Indexed::elements(locals))?,
                }
                rest = behind;
            }
            Ok::<(), crate::Error>(())
        })?;
        batch.ungroup(&found, target);
        Ok(())
    }

    /// All elements of all PEs, in the order of their indices. They are fetched in blocks of 16 KiB; the next
    /// block is fetched while one is used.
    ///
    /// ```
    /// # use pelago::distributed::BlockSize;
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let mut array = world.distributed_array::<u64>(1000, BlockSize::Of(7))?;
    /// array.map_in_place(|index, _| index as u64);
    /// let array = array.into_read_only()?;
    /// assert!(array.iter().eq(0..1000));
    /// assert_eq!(array.iter_by(100).skip(990).next(), Some(990));
    /// for (index, value) in (&array).into_iter().enumerate() {
    ///     assert_eq!(value, index as u64);
    /// }
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Panics
    /// If the job fails during the iteration.
    #[track_caller]
    pub fn iter(&self) -> Iter<'_, T> {
        self.iter_by(block_len::<T>())
    }

    /// Iterates as [`iter`](Self::iter) does, in blocks of `block_len` elements. Over the network it makes
    /// one get from each PE that owns some of a block. It uses the memory of three blocks.
    ///
    /// # Panics
    /// If `block_len` is 0, or if the job fails during the iteration.
    #[track_caller]
    pub fn iter_by(&self, block_len: usize) -> Iter<'_, T> {
        let len = self.len();
        let mut ahead: Option<Ahead<'_, T>> = None;
        Iter::new(len, block_len, move |range, block| {
            let here = match ahead.take() {
                Some(ahead) => ahead,
                None => self.start(range.clone())?,
            };
            let next = range.end..range.end.saturating_add(block_len).min(len);
            if !next.is_empty() {
                ahead = Some(self.start(next)?);
            }
            for (pe, transfer) in here {
                self.spread(pe, range.clone(), &transfer.wait(), block);
            }
            Ok(())
        })
    }

    /// Starts the gets of a range.
    fn start(&self, range: Range<usize>) -> Result<Ahead<'_, T>> {
        let layout = self.layout();
        let pieces = (0..layout.n_pes()).map(|pe| (pe, layout.local_range(pe, range.clone())));
        pieces
            .filter(|(_, local)| !local.is_empty())
            .map(|(pe, local)| Ok((pe, self.view().get_nb(pe, local.start, zeros(local.len()))?)))
            .collect()
    }

    /// Combines all elements of all PEs, as an [`Exclusive`](super::Exclusive) array does.
    ///
    /// # Errors
    /// If the operation is not defined for the type, or the PEs make different calls.
    #[track_caller]
    pub fn reduce(&self, op: ReduceOp) -> Result<Option<T>>
    where
        T: Reducible,
    {
        reduction::reduce(&self.parts, op, self.local())
    }
}

/// Iterates as [`Array::iter`](Array::<T, ReadOnly>::iter) does.
impl<'a, T: Element> IntoIterator for &'a Array<'_, T, ReadOnly> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    #[track_caller]
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The gets of a block, one from each PE that owns some of it.
type Ahead<'a, T> = Vec<(Pe, Transfer<'a, T>)>;
