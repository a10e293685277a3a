//! The exclusive discipline: each PE has its own part for itself.
//!
//! Invariant: an exclusive array has no operation that leaves its PE, and every PE that relies on this part
//! being its own has found agreement that all arrays are exclusive.

use super::reduction;
use super::{Array, Exclusive, part};
use crate::base::element::Element;
use crate::base::error::Result;
use crate::coll::reduction::{ReduceOp, Reducible};

impl<T: Element> Array<'_, T, Exclusive> {
    /// This PE's part.
    pub fn local(&self) -> &[T] {
        // SAFETY: all PEs have agreed that the array is exclusive, so no other one accesses this part; who
        // would write to it on this PE borrows the array mutably.
        unsafe { part::shared(&self.parts) }
    }

    /// This PE's part, to write.
    ///
    /// ```
    /// # use pelago::distributed::BlockSize;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let mut words = world.distributed_array::<u32>(7, BlockSize::Even)?; // 4 and 3
    /// words.local_mut().sort_unstable();
    /// assert_eq!(words.local_mut().len(), [4, 3][world.my_pe()]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    pub fn local_mut(&mut self) -> &mut [T] {
        // SAFETY: all PEs have agreed that the array is exclusive, so no other one accesses this part; on
        // this PE the array is borrowed mutably.
        unsafe { part::exclusive(&self.parts) }
    }

    /// The elements of this PE with their indices, ascending.
    pub fn local_iter(&self) -> impl ExactSizeIterator<Item = (usize, &T)> {
        self.local_indices().zip(self.local())
    }

    /// As [`local_iter`](Self::local_iter), to write.
    pub fn local_iter_mut(&mut self) -> impl ExactSizeIterator<Item = (usize, &mut T)> {
        self.local_indices().zip(self.local_mut())
    }

    /// Sets all elements of this PE.
    pub fn fill(&mut self, value: T) {
        self.local_mut().fill(value);
    }

    /// Changes all elements of this PE, each to what `new` makes of its index and value.
    pub fn map_in_place(&mut self, mut new: impl FnMut(usize, T) -> T) {
        self.local_iter_mut().for_each(|(index, value)| *value = new(index, *value));
    }

    /// Combines all elements of all PEs; every PE has the same result, bit by bit. `None` if there are none.
    /// Collective: all PEs name the same operation. It sends each PE one word or two of every other one.
    ///
    /// # Errors
    /// If the operation is not defined for the type, or the PEs do not make the same call.
    #[track_caller]
    pub fn reduce(&self, op: ReduceOp) -> Result<Option<T>>
    where
        T: Reducible,
    {
        reduction::reduce(&self.parts, op, self.local())
    }
}
