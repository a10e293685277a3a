//! Spans: elements of a symmetric array that a collective operation works on.

use super::schedule::Rank;
use crate::Pe;
use crate::element::Element;
use crate::realm::Realm;
use crate::symmetric::{Symmetric, Usage};
use crate::team::TeamCore;
use crate::view::View;
use crate::world::World;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Elements of a symmetric array that a collective operation works on: the same at every member. Made of an
/// array, all of it, or by [`View::span`].
#[derive(Clone, Copy)]
pub struct Span<'a> {
    pub(super) world: &'a World,
    pub(super) realm: &'a Realm,
    pub(super) usage: &'a Arc<Usage>,
    pub(super) offset_bytes: usize,
    pub(super) len: usize,
    pub(super) element_bytes: usize,
    pub(super) is_closed: bool,
    pub(super) own: *mut u8,
}

impl<T: Element> View<'_, T> {
    /// The elements of `range` at every PE, for a collective operation.
    ///
    /// # Panics
    /// If the range exceeds the array.
    pub fn span(&self, range: Range<usize>) -> TypedSpan<'_, T> {
        let (me, len) = (self.world().my_pe(), self.len());
        assert!(
            range.start <= range.end && range.end <= len,
            "PE {me}: span of the elements {range:?} of an array that has {len} elements a PE; name elements \
             inside it, the lower end first"
        );
        let offset_bytes = self.place.offset_bytes() + range.start * size_of::<T>();
        // SAFETY: this PE is a member, and the index at most the array's length.
        let own = unsafe { self.place.part(self.realm().my_rank()).element(range.start) };
        let span = Span {
            world: self.world(),
            realm: self.realm(),
            usage: self.usage(),
            offset_bytes,
            len: range.len(),
            element_bytes: size_of::<T>(),
            is_closed: self.is_closed,
            own: own.cast(),
        };
        TypedSpan { span, element: PhantomData }
    }
}

/// A [`Span`] with the type of its elements.
pub struct TypedSpan<'a, T> {
    pub(super) span: Span<'a>,
    element: PhantomData<T>,
}

impl<T> Clone for TypedSpan<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for TypedSpan<'_, T> {}

impl<'a, T: Element> From<&'a View<'_, T>> for TypedSpan<'a, T> {
    fn from(view: &'a View<'_, T>) -> Self {
        view.span(0..view.len())
    }
}

impl<'a, T: Element> From<&'a Symmetric<'_, T>> for TypedSpan<'a, T> {
    fn from(array: &'a Symmetric<'_, T>) -> Self {
        array.span(0..array.len())
    }
}

impl Span<'_> {
    /// Where a member of a team has these elements, if it is mapped.
    #[inline]
    pub(super) fn place(&self, world: &World, team: &TeamCore, rank: Rank) -> *mut u8 {
        if rank == team.my_rank() {
            return self.own;
        }
        let pe = team.pe(rank);
        world.memory.heap(pe).wrapping_add(self.region_offset(pe))
    }

    /// Where a PE has these elements, from the start of its region.
    pub(super) fn region_offset(&self, pe: Pe) -> usize {
        let rank = self.realm.rank_of(pe).expect("all members of the team have a part of the array");
        self.realm.region_offset(rank, self.offset_bytes)
    }
}
