//! The array itself: its creation, its layout, and the conversions between disciplines.
//!
//! Invariant: as in `distributed`. A conversion consumes the array of the old discipline on this PE, even if
//! it fails: a PE that finds no agreement cannot access the parts of the PEs that do.

use super::{Access, Atomic, Exclusive, Locked, ReadOnly};
use crate::Pe;
use crate::array::amo::AtomicElement;
use crate::array::view::View;
use crate::team::space::Space;
use crate::upc::{BlockSize, Layout, SharedArray};
use crate::world::World;
use pelago_core::base::call::Call;
use pelago_core::base::call::conversion;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::kind::ObjectKind;
use pelago_core::job::callback;

/// An array over all PEs of the job or of a team, with its elements distributed in blocks and named by one
/// index. Its discipline `A` defines how they may be accessed. See [`World::distributed_array`].
///
/// A conversion to another discipline is collective and takes the array by value. The compiler has then
/// proved that no code of this PE uses the array any more: slices, guards, iterators and threads borrow it.
/// The conversion waits for the other PEs, as a barrier does. If this wait cannot end, the message names the
/// conversion, the array and, as far as they are known, the PEs that have not arrived. Arrays are neither
/// cloned nor reference-counted, so no forgotten copy delays a conversion.
///
/// ```
/// use pelago::distributed::BlockSize;
/// # pelago::spmd(3, |world| -> pelago::Result<()> {
/// let mut squares = world.distributed_array::<u64>(10, BlockSize::Cyclic)?;
/// squares.map_in_place(|index, _| (index * index) as u64); // each PE its own part
/// let squares = squares.into_read_only()?;
/// assert_eq!(squares.get(&[9, 3, 3, 0])?, [81, 9, 9, 0]); // from any PE
/// let sums = squares.into_atomic()?;
/// sums.add(&[0, 1, 2], &[10, 20, 30])?; // all three PEs add
/// let sums = sums.into_read_only()?;
/// assert_eq!(sums.iter().take(4).collect::<Vec<_>>(), [30, 61, 94, 9]);
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
///
/// A slice does not outlive the discipline that allows it:
/// ```compile_fail,E0505
/// # use pelago::distributed::BlockSize;
/// # pelago::spmd(2, |world| -> pelago::Result<u64> {
/// let array = world.distributed_array::<u64>(10, BlockSize::Even)?.into_read_only()?;
/// let mine = array.local();
/// let array = array.into_atomic()?; // other PEs may write now
/// Ok(mine[0])
/// # });
/// ```
/// nor does a borrow of another thread:
/// ```compile_fail,E0505
/// # use pelago::distributed::BlockSize;
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// let array = world.distributed_array::<u64>(10, BlockSize::Even)?.into_atomic()?;
/// let shared = &array;
/// std::thread::scope(|scope| {
///     scope.spawn(move || shared.store(0, 1));
///     array.into_read_only().map(drop)
/// })
/// # });
/// ```
/// and an array does not have the operations that its discipline does not allow:
/// ```compile_fail,E0599
/// # use pelago::distributed::BlockSize;
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// let array = world.distributed_array::<u64>(10, BlockSize::Even)?.into_read_only()?;
/// array.put(&[0], &[1])
/// # });
/// ```
pub struct Array<'w, T: Element, A: Access> {
    pub(super) parts: SharedArray<'w, T>,
    pub(super) state: A::State<'w>,
}

impl World {
    /// Creates a distributed array of `len` elements, all zero, over all PEs. Its first discipline is
    /// exclusive. Collective over all PEs; it ends with a barrier.
    ///
    /// # Errors
    /// If a block has no elements, the heap has no space (every PE's part is as long as PE 0's), or the PEs
    /// give different arguments.
    #[track_caller]
    pub fn distributed_array<T: Element>(
        &self,
        len: usize,
        block_size: BlockSize,
    ) -> Result<Array<'_, T, Exclusive>> {
        made(self.shared_array_as(ObjectKind::DistributedArray, len, block_size))
    }
}

impl Space<'_> {
    /// Creates a distributed array over the members of the team, as [`World::distributed_array`] does over
    /// all PEs. Its layout numbers PEs by their rank in the team.
    ///
    /// # Errors
    /// As [`World::distributed_array`].
    #[track_caller]
    pub fn distributed_array<T: Element>(
        &self,
        len: usize,
        block_size: BlockSize,
    ) -> Result<Array<'_, T, Exclusive>> {
        made(self.shared_array_as(ObjectKind::DistributedArray, len, block_size))
    }
}

/// The array over these parts, or their error, with the name of the distributed array's call.
fn made<T: Element>(parts: Result<SharedArray<'_, T>>) -> Result<Array<'_, T, Exclusive>> {
    match parts {
        Ok(parts) => Ok(Array { parts, state: () }),
        Err(error) => match error.kind() {
            ErrorKind::BadShared { me, reason, .. } => {
                let (me, operation, reason) = (*me, "distributed_array", reason.clone());
                Err(ErrorKind::BadDistributed { me, operation, reason }.into())
            }
            _ => Err(error),
        },
    }
}

impl<'w, T: Element, A: Access> Array<'w, T, A> {
    /// The number of elements on all PEs together.
    #[expect(clippy::len_without_is_empty, reason = "the length of an array, which stays as it is")]
    pub fn len(&self) -> usize {
        self.layout().len()
    }

    /// The layout of the elements.
    pub fn layout(&self) -> &Layout {
        self.parts.layout()
    }

    /// The number of elements that this PE owns.
    pub fn local_len(&self) -> usize {
        self.layout().count_on(self.my_rank())
    }

    /// The indices of the elements that this PE owns, in ascending order, which is their order in its part.
    pub fn local_indices(&self) -> impl ExactSizeIterator<Item = usize> + use<T, A> {
        self.layout().affine(self.my_rank(), 0..self.len()).map(|(index, _)| index)
    }

    /// This PE's rank among the PEs of the array.
    pub fn my_rank(&self) -> Pe {
        self.view().region().my_rank()
    }

    /// Converts to the exclusive discipline: every PE has exclusive access to its own part. Collective: it
    /// completes all accesses and is a barrier.
    ///
    /// # Errors
    /// If not all PEs convert this array to this discipline. This PE has then dropped the array.
    #[track_caller]
    pub fn into_exclusive(self) -> Result<Array<'w, T, Exclusive>> {
        self.convert()
    }

    /// Converts to the read-only discipline: no PE writes. Collective: it completes all accesses and is a
    /// barrier.
    ///
    /// # Errors
    /// As [`into_exclusive`](Self::into_exclusive).
    #[track_caller]
    pub fn into_read_only(self) -> Result<Array<'w, T, ReadOnly>> {
        self.convert()
    }

    /// Converts to the atomic discipline: every access is an atomic. Collective: it completes all accesses
    /// and is a barrier.
    ///
    /// # Errors
    /// As [`into_exclusive`](Self::into_exclusive).
    #[track_caller]
    pub fn into_atomic(self) -> Result<Array<'w, T, Atomic>>
    where
        T: AtomicElement,
    {
        self.convert()
    }

    /// Converts to the locked discipline: each PE's part has a lock. The lock takes 24 bytes of each PE's
    /// heap (128 with the overhead of a heap block) until the next conversion. Collective: it completes all
    /// accesses and is a barrier.
    ///
    /// # Errors
    /// As [`into_exclusive`](Self::into_exclusive), and if the heap has no space for the locks.
    #[track_caller]
    pub fn into_locked(self) -> Result<Array<'w, T, Locked>> {
        self.convert()
    }

    /// Frees the memory at once. Collective; it begins with a barrier.
    ///
    /// # Errors
    /// If not all PEs free this array. It is then reclaimed like a dropped array.
    pub fn free(self) -> Result<()> {
        drop(self.state);
        self.parts.free()
    }

    #[track_caller]
    fn convert<B: Access>(self) -> Result<Array<'w, T, B>> {
        let Array { parts, state } = self;
        let (world, region) = (parts.parts().world(), parts.parts().region());
        callback::forbid(world.core(), conversion(B::CODE));
        drop(state);
        let offset_bytes = parts.parts().place.offset_bytes();
        region.agree(world.core(), Call::Convert { offset_bytes, to: B::CODE })?;
        Ok(Array { state: B::open(parts.parts())?, parts })
    }

    /// The parts of the PEs, for one-sided operations.
    pub(super) fn view(&self) -> &View<'w, T> {
        self.parts.parts()
    }

    /// The PE that owns an element, and the element's position in that PE's part.
    #[inline]
    pub(super) fn locate(&self, operation: &'static str, index: usize) -> Result<(Pe, usize)> {
        match index < self.len() {
            true => Ok(self.layout().locate(index)),
            false => Err(self.out_of_range(operation, (index, 1), None)),
        }
    }

    /// Returns an error for a range that exceeds the array.
    pub(super) fn check_range(&self, operation: &'static str, index: usize, count: usize) -> Result<()> {
        match self.layout().has(index, count) {
            true => Ok(()),
            false => Err(self.out_of_range(operation, (index, count), None)),
        }
    }

    /// Returns an error for a list that names an element that does not exist, or whose length differs from
    /// the number of values.
    pub(super) fn check_list(&self, operation: &'static str, indices: &[usize], values: usize) -> Result<()> {
        if indices.len() != values {
            let (me, indices) = (self.view().world().my_pe(), indices.len());
            return Err(ErrorKind::LengthsDiffer { me, operation, indices, values }.into());
        }
        let len = self.len();
        match indices.iter().position(|&index| index >= len) {
            None => Ok(()),
            Some(number) => Err(self.out_of_range(operation, (indices[number], 1), Some(number))),
        }
    }

    #[cold]
    #[inline(never)]
    fn out_of_range(
        &self,
        operation: &'static str,
        (index, count): (usize, usize),
        number: Option<usize>,
    ) -> crate::Error {
        let (me, len) = (self.view().world().my_pe(), self.len());
        ErrorKind::DistributedOutOfRange { me, operation, index, count, number, len }.into()
    }
}

impl<T: Element, A: Access> std::fmt::Debug for Array<'_, T, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = |name: &'static str| name.rsplit("::").next().unwrap_or(name);
        let (element, discipline) = (std::any::type_name::<T>(), of(std::any::type_name::<A>()));
        let (len, layout, offset) = (self.len(), self.layout(), self.view().place.offset_bytes());
        write!(
            f,
            "Array<{element}, {discipline}>({len} in blocks of {} on {} PEs, at heap offset {offset})",
            layout.block(),
            layout.n_pes()
        )
    }
}
