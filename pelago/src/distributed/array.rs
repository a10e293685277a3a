//! The array itself: how it is made, where its elements lie, and how its discipline changes.
//!
//! Invariant: as in `distributed`. Whatever a conversion ends with, the array of the old discipline is gone
//! on this PE: a PE that does not find agreement cannot reach the parts of those that do.

use super::{Access, Atomic, Exclusive, Locked, ReadOnly};
use crate::Pe;
use crate::array::amo::AtomicElement;
use crate::array::view::View;
use crate::base::call::Call;
use crate::base::call::conversion;
use crate::base::element::Element;
use crate::base::error::{ErrorKind, Result};
use crate::base::kind::ObjectKind;
use crate::job::callback;
use crate::team::space::Space;
use crate::upc::{BlockSize, Layout, SharedArray};
use crate::world::World;

/// An array over all PEs of the job or of a team, its elements dealt out in blocks and named by one index;
/// how they may be accessed is its discipline `A`. See [`World::distributed_array`].
///
/// A conversion to another discipline is collective and takes the array by value. That nothing of this PE
/// uses the array any more, the compiler has proved then: slices, guards, iterators and threads borrow it.
/// For the other PEs it waits, as a barrier does; the words of a wait in vain name conversion, array and, as
/// far as they are known, the PEs that have not come. Arrays are not cloned and not counted, so no
/// forgotten copy holds a conversion up.
///
/// ```
/// use pelago::distributed::BlockSize;
/// # pelago::spmd(3, |world| -> pelago::Result<()> {
/// let mut squares = world.distributed_array::<u64>(10, BlockSize::Cyclic)?;
/// squares.map_in_place(|index, _| (index * index) as u64); // each PE its own part
/// let squares = squares.into_read_only()?;
/// assert_eq!(squares.get(&[9, 3, 3, 0])?, [81, 9, 9, 0]); // from any PE
/// let sums = squares.into_atomic()?;
/// sums.add(&[0, 1, 2], &[10, 20, 30])?; // all three PEs do
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
/// let array = array.into_atomic()?; // others may write now
/// Ok(mine[0])
/// # });
/// ```
/// nor does what another thread uses:
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
/// and what a discipline does not allow, its arrays do not have:
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
    /// Makes a distributed array of `len` elements, all zero, over all PEs; exclusive at first. Collective;
    /// complete with a barrier.
    ///
    /// # Errors
    /// If a block has no elements, the heap has no room (every PE's part takes as much as PE 0's), or the PEs
    /// do not ask for the same.
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
    /// Makes a distributed array over the members of the team; as [`World::distributed_array`]. Its layout
    /// names PEs by their rank.
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

/// The array over these parts, or what is wrong, in its own name.
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
    /// Elements in all.
    #[expect(clippy::len_without_is_empty, reason = "the length of an array, which stays as it is")]
    pub fn len(&self) -> usize {
        self.layout().len()
    }

    /// Where the elements lie.
    pub fn layout(&self) -> &Layout {
        self.parts.layout()
    }

    /// Elements that this PE has.
    pub fn local_len(&self) -> usize {
        self.layout().count_on(self.my_rank())
    }

    /// The indices of the elements that this PE has, ascending, as they stand in its part.
    pub fn local_indices(&self) -> impl ExactSizeIterator<Item = usize> + use<T, A> {
        self.layout().affine(self.my_rank(), 0..self.len()).map(|(index, _)| index)
    }

    /// This PE's number among those of the array.
    pub fn my_rank(&self) -> Pe {
        self.view().region().my_rank()
    }

    /// Gives every PE its own part for itself. Collective: completes all accesses and is a barrier.
    ///
    /// # Errors
    /// If the PEs do not all convert this array to this discipline; this PE has then dropped it.
    #[track_caller]
    pub fn into_exclusive(self) -> Result<Array<'w, T, Exclusive>> {
        self.convert()
    }

    /// Lets nobody write any more. Collective: completes all accesses and is a barrier.
    ///
    /// # Errors
    /// As [`into_exclusive`](Self::into_exclusive).
    #[track_caller]
    pub fn into_read_only(self) -> Result<Array<'w, T, ReadOnly>> {
        self.convert()
    }

    /// Makes every access an atomic. Collective: completes all accesses and is a barrier.
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

    /// Gives each PE's part a lock, which takes 24 bytes of each PE's heap (128 with what a block of the heap
    /// costs) until the next conversion. Collective: completes all accesses and is a barrier.
    ///
    /// # Errors
    /// As [`into_exclusive`](Self::into_exclusive), and if the heap has no room for the locks.
    #[track_caller]
    pub fn into_locked(self) -> Result<Array<'w, T, Locked>> {
        self.convert()
    }

    /// Gives the memory back at once. Collective, begins with a barrier.
    ///
    /// # Errors
    /// If the PEs do not all free this array; it is then reclaimed like a dropped one.
    pub fn free(self) -> Result<()> {
        drop(self.state);
        self.parts.free()
    }

    #[track_caller]
    fn convert<B: Access>(self) -> Result<Array<'w, T, B>> {
        let Array { parts, state } = self;
        let (world, region) = (parts.parts().world(), parts.parts().region());
        callback::forbid(world, conversion(B::CODE));
        drop(state);
        let offset_bytes = parts.parts().place.offset_bytes();
        region.agree(world, Call::Convert { offset_bytes, to: B::CODE })?;
        Ok(Array { state: B::open(parts.parts())?, parts })
    }

    /// The parts of the PEs, for one-sided operations.
    pub(super) fn view(&self) -> &View<'w, T> {
        self.parts.parts()
    }

    /// The PE that has an element, and where in its part.
    #[inline]
    pub(super) fn locate(&self, operation: &'static str, index: usize) -> Result<(Pe, usize)> {
        match index < self.len() {
            true => Ok(self.layout().locate(index)),
            false => Err(self.out_of_range(operation, (index, 1), None)),
        }
    }

    /// Refuses a range that exceeds the array.
    pub(super) fn check_range(&self, operation: &'static str, index: usize, count: usize) -> Result<()> {
        match self.layout().has(index, count) {
            true => Ok(()),
            false => Err(self.out_of_range(operation, (index, count), None)),
        }
    }

    /// Refuses a list that names an element that does not exist, or has another length than its values.
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
