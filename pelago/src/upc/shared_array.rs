//! Shared arrays: one array over all PEs, with its elements distributed over them block by block, and one
//! index.
//!
//! Invariant: every access is checked against the array's length and then against the part that has the
//! element; an element has affinity to one PE, defined by the layout, for as long as the array lives. Source:
//! UPC Language Specifications 1.3, sections 6.5 (shared arrays), 6.6.2 (`upc_forall`).

use super::layout::{Affine, BlockSize, Layout};
use super::pointer::SharedPointer;
use crate::Pe;
use crate::array::symmetric::Symmetric;
use crate::array::view::View;
use crate::team::space::Space;
use crate::world::World;
use pelago_core::base::call::{Call, NO_BLOCKS};
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::kind::ObjectKind;
use pelago_core::coll::symmetric_region::SymmetricRegion;
use std::ops::Range;

/// An array over all PEs of the job or of a team, with its elements distributed in blocks: see
/// [`World::shared_array`].
///
/// Accesses are relaxed: they are ordered and complete as puts and gets are. [`strict_get`](Self::strict_get)
/// and [`strict_put`](Self::strict_put) are sequentially consistent.
///
/// ```
/// use pelago::upc::BlockSize;
/// # pelago::spmd(3, |world| -> pelago::Result<()> {
/// let squares = world.shared_array::<u64>(100, BlockSize::Of(8))?;
/// for (index, local) in squares.affine(0..100) {
///     squares.local().set(local, (index * index) as u64); // upc_forall (...; &squares[i])
/// }
/// world.barrier();
/// let mut some = [0; 20];
/// squares.memget(30, &mut some)?; // from several PEs
/// assert_eq!((some[0], some[19], squares.get(99)?), (900, 49 * 49, 99 * 99));
/// # world.barrier();
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
pub struct SharedArray<'w, T: Element> {
    parts: Symmetric<'w, T>,
    layout: Layout,
}

impl World {
    /// Creates a shared array of `len` elements, all zero, over all PEs. Collective over all PEs; it ends
    /// with a barrier.
    ///
    /// # Errors
    /// If a block has no elements, the heap has no space (every PE's part is as long as PE 0's), or the PEs
    /// give different arguments.
    #[track_caller]
    pub fn shared_array<T: Element>(&self, len: usize, block_size: BlockSize) -> Result<SharedArray<'_, T>> {
        self.shared_array_as(ObjectKind::SharedArray, len, block_size)
    }

    /// Creates an array of this kind, as [`shared_array`](World::shared_array) does.
    #[track_caller]
    pub(crate) fn shared_array_as<T: Element>(
        &self,
        kind: ObjectKind,
        len: usize,
        block_size: BlockSize,
    ) -> Result<SharedArray<'_, T>> {
        let alloc = |part_len| self.alloc_zeroed_as(kind, part_len);
        SharedArray::new(self, &self.core().region, kind, (len, block_size), alloc)
    }
}

impl Space<'_> {
    /// Creates a shared array over the members of the team, as [`World::shared_array`] does over all PEs.
    ///
    /// # Errors
    /// As [`World::shared_array`].
    #[track_caller]
    pub fn shared_array<T: Element>(&self, len: usize, block_size: BlockSize) -> Result<SharedArray<'_, T>> {
        self.shared_array_as(ObjectKind::SharedArray, len, block_size)
    }

    /// Creates an array of this kind, as [`shared_array`](Space::shared_array) does.
    #[track_caller]
    pub(crate) fn shared_array_as<T: Element>(
        &self,
        kind: ObjectKind,
        len: usize,
        block_size: BlockSize,
    ) -> Result<SharedArray<'_, T>> {
        let alloc = |part_len| self.alloc_zeroed_as(kind, part_len);
        SharedArray::new(self.world(), self.region(), kind, (len, block_size), alloc)
    }
}

impl<'w, T: Element> SharedArray<'w, T> {
    fn new(
        world: &World,
        region: &SymmetricRegion,
        kind: ObjectKind,
        (len, block_size): (usize, BlockSize),
        alloc: impl FnOnce(usize) -> Result<Symmetric<'w, T>>,
    ) -> Result<SharedArray<'w, T>> {
        let layout = Layout::new(len, block_size, region.len());
        let block = match (layout, block_size) {
            (None, _) => 0,
            (Some(_), BlockSize::Indefinite) => NO_BLOCKS,
            (Some(layout), _) => layout.block(),
        };
        region.agree(world.core(), Call::Layout { kind, len, block })?;
        let me = world.my_pe();
        let layout = layout.ok_or_else(|| ErrorKind::BadShared {
            me,
            operation: "shared_array",
            reason: "blocks of 0 elements. A block has at least 1; an array without blocks is Indefinite"
                .to_owned(),
        })?;
        Ok(SharedArray { parts: alloc(layout.part_len())?, layout })
    }

    /// The number of elements on all PEs together.
    #[expect(clippy::len_without_is_empty, reason = "the length of an array, which stays as it is")]
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// The layout of the elements.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The parts of the PEs as a symmetric array, for all one-sided operations: an element is at position
    /// `local` on PE `owner`, as returned by [`Layout::locate`]. The end of a part may belong to no element.
    pub fn parts(&self) -> &View<'w, T> {
        &self.parts
    }

    /// This PE's part, indexed by position in the part.
    pub fn local(&self) -> crate::Local<'_, T> {
        self.parts.local()
    }

    /// This PE's number among the PEs of the array.
    pub(super) fn my_rank(&self) -> Pe {
        self.parts.region().my_rank()
    }

    /// Reads an element; the get is complete at return.
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn get(&self, index: usize) -> Result<T> {
        if index >= self.len() {
            return Err(self.out_of_range("get", index, 1));
        }
        let (owner, local) = self.layout.locate(index);
        self.parts.g(owner, local)
    }

    /// Writes an element; the put is complete at its owner after a quiet or a barrier.
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn put(&self, index: usize, value: T) -> Result<()> {
        if index >= self.len() {
            return Err(self.out_of_range("put", index, 1));
        }
        let (owner, local) = self.layout.locate(index);
        self.parts.p(owner, local, value)
    }

    /// Reads an element; sequentially consistent with all other strict accesses: see [`View::strict`].
    ///
    /// # Errors
    /// If there is no such element.
    pub fn strict_get(&self, index: usize) -> Result<T> {
        self.check("strict_get", index, 1)?;
        let (owner, local) = self.layout.locate(index);
        self.parts.strict().g(owner, local)
    }

    /// Writes an element; sequentially consistent with all other strict accesses: see [`View::strict`].
    ///
    /// # Errors
    /// If there is no such element.
    pub fn strict_put(&self, index: usize, value: T) -> Result<()> {
        self.check("strict_put", index, 1)?;
        let (owner, local) = self.layout.locate(index);
        self.parts.strict().p(owner, local, value)
    }

    /// The elements of a range that have affinity to this PE, as index and position in
    /// [`local`](Self::local): UPC's `upc_forall` with the address of an element. Indices beyond the array
    /// are left out. The iterations of `upc_forall (...; i)`, whose affinity is an integer, are
    /// `(me..len).step_by(n)`.
    pub fn affine(&self, range: Range<usize>) -> Affine {
        self.layout.affine(self.my_rank(), range)
    }

    /// All elements that have affinity to this PE, with their indices, in ascending order.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let array = world.shared_array::<u32>(5, Default::default())?; // 3 and 2
    /// array.update(|index, _| 10 * index as u32);
    /// let expected = [vec![(0, 0), (1, 10), (2, 20)], vec![(3, 30), (4, 40)]];
    /// assert_eq!(array.forall().collect::<Vec<_>>(), expected[world.my_pe()]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    pub fn forall(&self) -> impl Iterator<Item = (usize, T)> {
        let local = self.local();
        self.affine(0..self.len()).map(move |(index, place)| (index, local.get(place)))
    }

    /// Replaces each element that has affinity to this PE with the result of `new` for its index and value.
    pub fn update(&self, mut new: impl FnMut(usize, T) -> T) {
        let local = self.local();
        for (index, place) in self.affine(0..self.len()) {
            local.set(place, new(index, local.get(place)));
        }
    }

    /// The pointer to an element, or to the position just behind the last one.
    ///
    /// # Errors
    /// If there is no such element.
    pub fn pointer(&self, index: usize) -> Result<SharedPointer<T>> {
        if index > self.len() {
            return Err(self.out_of_range("pointer", index, 1));
        }
        Ok(SharedPointer::new(&self.layout, index))
    }

    /// The index of the element that a pointer points to, for any block size of the pointer.
    ///
    /// # Errors
    /// If it points to no element of this array.
    pub fn index_of(&self, pointer: SharedPointer<T>) -> Result<usize> {
        let local = pointer.local();
        let index = local.and_then(|local| self.layout.index_of(pointer.threadof(), local));
        index.ok_or_else(|| {
            let (me, operation) = (self.parts.world().my_pe(), "index_of");
            let (len, thread, region) = (self.len(), pointer.threadof(), self.parts.region());
            let mut reason = format!("{pointer:?} points to no element of this array of {len}");
            if thread < region.len() {
                let count = self.layout.count_on(thread);
                reason += &format!(", of which PE {} has {count}", region.pe(thread));
            }
            ErrorKind::BadShared { me, operation, reason }.into()
        })
    }

    /// Frees the memory at once. Collective; it begins with a barrier.
    ///
    /// # Errors
    /// As [`Symmetric::free`].
    #[track_caller]
    pub fn free(self) -> Result<()> {
        self.parts.free()
    }

    pub(super) fn check(&self, operation: &'static str, index: usize, count: usize) -> Result<()> {
        match self.layout.has(index, count) {
            true => Ok(()),
            false => Err(self.out_of_range(operation, index, count)),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn out_of_range(&self, operation: &'static str, index: usize, count: usize) -> crate::Error {
        let (me, len) = (self.parts.world().my_pe(), self.len());
        ErrorKind::SharedOutOfRange { me, operation, index, count, len }.into()
    }
}

impl<T: Element> std::fmt::Debug for SharedArray<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, len, layout) = (std::any::type_name::<T>(), self.len(), &self.layout);
        write!(f, "SharedArray<{name}>({len} in blocks of {} on {} PEs)", layout.block(), layout.n_pes())
    }
}
