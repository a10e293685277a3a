//! Spans: elements of a symmetric array that a collective operation works on.

use crate::array::symmetric::Symmetric;
use crate::array::view::View;
use crate::world::World;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::coll::block::STAGING_SLOT_BYTES;
use pelago_core::coll::operand::Operand;
use pelago_core::coll::teams::Teams;
use std::ops::Range;

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
    #[track_caller]
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
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where this PE has them.
    #[inline(always)]
    pub(super) fn own(&self) -> *mut T {
        // SAFETY: the index is at most the array's length.
        unsafe { self.view.place.own().element(self.start) }
    }

    /// Refuses elements of an array that is in an exclusive phase.
    pub(super) fn check_open(&self, operation: &'static str) -> Result<()> {
        match self.view.is_closed() {
            false => Ok(()),
            true => Err(ErrorKind::ArrayClosed { me: self.view.world().my_pe(), operation }.into()),
        }
    }

    /// The world of the array, and these elements without their type.
    pub(super) fn with_world(self) -> (&'a World, Operand<'a>) {
        (self.view.world(), self.operand())
    }

    pub(super) fn operand(self) -> Operand<'a> {
        Operand {
            world: self.view.world().teams(),
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
    fn is_plain_like(&self, other: &Span<'_, T>, world: &Teams) -> bool {
        let is_plain =
            |view: &View<'_, T>| std::ptr::eq(view.region(), &raw const world.region) && !view.is_closed();
        self.len == other.len && is_plain(self.view) && is_plain(other.view)
    }

    /// Whether both are one aligned word of 8 bytes, of open arrays of this world.
    #[inline(always)]
    pub(super) fn is_word_like(&self, other: &Span<'_, T>, world: &Teams) -> bool {
        let is_aligned =
            align_of::<T>() == 8 || (self.own() as usize | other.own() as usize).is_multiple_of(8);
        self.len * size_of::<T>() == 8 && is_aligned && self.is_plain_like(other, world)
    }

    /// Whether both fit on a staging slot, being elements of open arrays of this world, and not only some of
    /// the same.
    #[inline(always)]
    pub(super) fn is_small_like(&self, other: &Span<'_, T>, world: &Teams) -> bool {
        let bytes = self.len * size_of::<T>();
        let distance = (self.own() as usize).abs_diff(other.own() as usize);
        let is_apart = distance == 0 || distance >= bytes;
        bytes <= STAGING_SLOT_BYTES && is_apart && self.is_plain_like(other, world)
    }
}
