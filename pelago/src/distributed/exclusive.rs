//! The exclusive discipline: each PE has exclusive access to its own part.
//!
//! Invariant: an exclusive array has no remote operation, and every PE that relies on exclusive access to its
//! part has found agreement that the array is exclusive on all PEs.

use super::reduction;
use super::{Array, Exclusive, part};
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use pelago_core::coll::reduction::{ReduceOp, Reducible};

impl<T: Element> Array<'_, T, Exclusive> {
    /// This PE's part, as a slice.
    pub fn local(&self) -> &[T] {
        // SAFETY: all PEs have agreed that the array is exclusive, so no other PE accesses this part; code of
        // this PE that writes to it borrows the array mutably.
        unsafe { part::shared(&self.parts) }
    }

    /// This PE's part, as a mutable slice.
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
        // SAFETY: all PEs have agreed that the array is exclusive, so no other PE accesses this part; on this
        // PE the array is borrowed mutably.
        unsafe { part::exclusive(&self.parts) }
    }

    /// The elements of this PE with their indices, in ascending order.
    pub fn local_iter(&self) -> impl ExactSizeIterator<Item = (usize, &T)> {
        self.local_indices().zip(self.local())
    }

    /// Iterates as [`local_iter`](Self::local_iter) does, with mutable references.
    pub fn local_iter_mut(&mut self) -> impl ExactSizeIterator<Item = (usize, &mut T)> {
        self.local_indices().zip(self.local_mut())
    }

    /// Sets all elements of this PE.
    pub fn fill(&mut self, value: T) {
        self.local_mut().fill(value);
    }

    /// Replaces each element of this PE with the result of `new` for its index and value.
    pub fn map_in_place(&mut self, mut new: impl FnMut(usize, T) -> T) {
        self.local_iter_mut().for_each(|(index, value)| *value = new(index, *value));
    }

    /// Combines all elements of all PEs; every PE gets the same result, bit for bit. `None` if there are no
    /// elements. Collective: all PEs give the same operation. Each PE receives one or two words from every
    /// other PE.
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
