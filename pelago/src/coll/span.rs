//! Spans: elements of a symmetric array that a collective operation works on.

use super::block::STAGING_SLOT_BYTES;
use super::schedule::Rank;
use crate::Pe;
use crate::array::symmetric::Symmetric;
use crate::array::view::View;
use crate::base::element::Element;
use crate::memory::usage::Usage;
use crate::symmetric_region::{Bases, SymmetricRegion};
use crate::team::TeamCore;
use crate::world::{Core, World};
use std::ops::Range;
use std::sync::Arc;

/// Elements of a symmetric array that a collective operation works on: the same at every member. Made of an
/// array, all of it, or by [`View::span`].
pub struct Span<'a, T: Element> {
    view: &'a View<'a, T>,
    start: usize,
    len: usize,
}

impl<T: Element> Clone for Span<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Element> Copy for Span<'_, T> {}

impl<T: Element> View<'_, T> {
    /// The elements of `range` at every PE, for a collective operation.
    ///
    /// # Panics
    /// If the range exceeds the array.
    pub fn span(&self, range: Range<usize>) -> Span<'_, T> {
        let (me, len) = (self.world().my_pe(), self.len());
        assert!(
            range.start <= range.end && range.end <= len,
            "PE {me}: span of the elements {range:?} of an array that has {len} elements a PE; name elements \
             inside it, the lower end first"
        );
        Span { view: self, start: range.start, len: range.len() }
    }
}

impl<'a, T: Element> From<&'a View<'_, T>> for Span<'a, T> {
    #[inline]
    fn from(view: &'a View<'_, T>) -> Self {
        Span { view, start: 0, len: view.len() }
    }
}

impl<'a, T: Element> From<&'a Symmetric<'_, T>> for Span<'a, T> {
    #[inline]
    fn from(array: &'a Symmetric<'_, T>) -> Self {
        Span { view: array, start: 0, len: array.len() }
    }
}

impl<'a, T: Element> Span<'a, T> {
    /// Elements at each member.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Where this PE has them.
    #[inline(always)]
    pub(super) fn own(&self) -> *mut T {
        // SAFETY: the index is at most the array's length.
        unsafe { self.view.place.own().element(self.start) }
    }

    /// The same without the type of its elements.
    pub(super) fn operand(self) -> Operand<'a> {
        Operand {
            world: self.view.world(),
            region: self.view.region(),
            usage: self.view.usage(),
            offset_bytes: self.view.place.offset_bytes() + self.start * size_of::<T>(),
            len: self.len,
            element_bytes: size_of::<T>(),
            is_closed: self.view.is_closed(),
            own: self.own().cast(),
        }
    }

    /// Whether these and those are open elements of this world, which every PE has.
    #[inline(always)]
    fn is_plain_like(&self, other: &Span<'_, T>, world: &World) -> bool {
        let is_plain =
            |view: &View<'_, T>| std::ptr::eq(view.region(), &raw const world.region) && !view.is_closed();
        self.len == other.len && is_plain(self.view) && is_plain(other.view)
    }

    /// Whether both are one aligned word of 8 bytes, of open arrays of this world.
    #[inline(always)]
    pub(super) fn is_word_like(&self, other: &Span<'_, T>, world: &World) -> bool {
        let is_aligned =
            align_of::<T>() == 8 || (self.own() as usize | other.own() as usize).is_multiple_of(8);
        self.len * size_of::<T>() == 8 && is_aligned && self.is_plain_like(other, world)
    }

    /// Whether both fit on a staging slot, being elements of open arrays of this world, and not only some of
    /// the same.
    #[inline(always)]
    pub(super) fn is_small_like(&self, other: &Span<'_, T>, world: &World) -> bool {
        let bytes = self.len * size_of::<T>();
        let distance = (self.own() as usize).abs_diff(other.own() as usize);
        let is_apart = distance == 0 || distance >= bytes;
        bytes <= STAGING_SLOT_BYTES && is_apart && self.is_plain_like(other, world)
    }
}

/// A [`Span`] of elements of any type.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    pub(super) world: &'a World,
    pub(super) region: &'a SymmetricRegion,
    pub(super) usage: &'a Arc<Usage>,
    pub(super) offset_bytes: usize,
    pub(super) len: usize,
    pub(super) element_bytes: usize,
    pub(super) is_closed: bool,
    pub(super) own: *mut u8,
}

impl Operand<'_> {
    /// Where a member of a team has these elements, if it is mapped.
    #[inline]
    pub(super) fn place(&self, world: &Core, team: &TeamCore, rank: Rank) -> *mut u8 {
        if rank == team.my_rank() {
            return self.own;
        }
        let pe = team.pe(rank);
        world.memory.heap(pe).wrapping_add(self.region_offset(pe))
    }

    /// Where the members of a team have these elements in their regions.
    pub(super) fn bases(&self, team: &TeamCore) -> Bases {
        match self.region.is_world() {
            true => Bases::Same(self.offset_bytes),
            false => Bases::of(team.members().iter().map(|pe| self.region_offset(pe)).collect()),
        }
    }

    /// Where a PE has these elements, from the start of its region.
    pub(super) fn region_offset(&self, pe: Pe) -> usize {
        let rank = self.region.rank_of(pe).expect("all members of the team have a part of the array");
        self.region.region_offset(rank, self.offset_bytes)
    }
}
