//! Views: a symmetric array together with the endpoint that its operations use. All one-sided operations are
//! methods of a view, in the modules `rma`, `amo`, `vis`, `signal` and `nb`. An array derefs to its view
//! through the world's own context.
//!
//! Invariant: a view borrows the array, so no operation can be started on an array that is freed, resized or
//! in an exclusive phase.

use crate::Pe;
use crate::array::local::Local;
use crate::context::Context;
use crate::world::World;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::coll::schedule::Rank;
use pelago_core::coll::symmetric_region::SymmetricRegion;
use pelago_core::coll::teams::Teams;
use pelago_core::endpoint::{Endpoint, Injector, RemoteAddress};
use pelago_core::memory::segment::{ArrayLayout, Part};
use pelago_core::memory::usage::Usage;
use pelago_core::region::access::{self, Access};
use std::sync::Arc;

/// A symmetric array, seen through the world or through a context. One-sided operations are its methods.
///
/// [`Symmetric`](crate::Symmetric) derefs to it; [`via`](View::via) returns a view through a context. If the
/// array lies in a [`Space`](crate::Space), operations take the rank of a PE in the team in place of its
/// number.
///
/// In addition to the errors of each operation, every operation fails on an array whose exclusive phase has
/// not ended on this PE. Over the network, and while operations are counted, it also fails once the job has
/// failed. Over the network, calls that wait panic when the job fails.
pub struct View<'a, T: Element> {
    world: &'a World,
    region: &'a SymmetricRegion,
    usage: Arc<Usage>,
    /// The endpoint of operations over the network; the world's own endpoint if `None`.
    endpoint: Option<&'a Arc<Endpoint>>,
    /// Injects puts of one element and single gets; closed if the view may not inject.
    pub(crate) injector: &'a Injector,
    /// Set in an exclusive phase, and after one that has not ended on this PE.
    is_closed: bool,
    pub(crate) place: ArrayLayout<T>,
}

/// The route of an operation to a member's part.
pub(crate) enum Way<'a, T: Element> {
    /// The part is mapped here.
    Mapped(Part<T>),
    /// Over the network: by this endpoint, to this target.
    Net(&'a Arc<Endpoint>, RemoteAddress),
}

impl<'a, T: Element> View<'a, T> {
    pub(crate) fn new(
        world: &'a World,
        region: &'a SymmetricRegion,
        place: ArrayLayout<T>,
        usage: Arc<Usage>,
    ) -> View<'a, T> {
        let injector = &world.core().no_injector;
        let mut view = View { world, region, usage, endpoint: None, injector, is_closed: false, place };
        view.open(place.limit);
        view
    }

    /// Closes the view, so that every operation takes the cold function, which returns an error. Returns the
    /// limit to open it with.
    pub(crate) fn close(&mut self) -> usize {
        self.is_closed = true;
        self.injector = &self.world.core().no_injector;
        std::mem::replace(&mut self.place.limit, 0)
    }

    /// Opens the view for operations; `limit` is the value that `close` has returned.
    pub(crate) fn open(&mut self, limit: usize) {
        self.is_closed = false;
        if self.region.is_world() {
            self.injector = self.own_injector();
        }
        self.place.limit = limit;
    }

    /// Whether the view is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// This view with another layout in the same memory.
    pub(crate) fn with_place<U: Element>(&self, place: ArrayLayout<U>) -> View<'a, U> {
        let (world, region, usage) = (self.world, self.region, Arc::clone(&self.usage));
        let (endpoint, injector, is_closed) = (self.endpoint, self.injector, self.is_closed);
        View { world, region, usage, endpoint, injector, is_closed, place }
    }

    /// Elements on each PE.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "the length of a part, not of a collection")]
    pub fn len(&self) -> usize {
        self.place.len
    }

    /// The world that the array belongs to.
    #[inline]
    pub fn world(&self) -> &'a World {
        self.world
    }

    /// The PEs that have a part of the array.
    #[inline]
    pub(crate) fn region(&self) -> &'a SymmetricRegion {
        self.region
    }

    /// The usage count that collective operations hold while they use the array.
    pub(crate) fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    /// Returns the array seen through a context: operations on the result are ordered and completed by the
    /// fence and quiet of that context, not by those of the world.
    ///
    /// # Panics
    /// If the context belongs to another world.
    #[track_caller]
    pub fn via<'b>(&'b self, context: &'b Context<'_>) -> View<'b, T> {
        let is_ours = std::ptr::eq(context.world(), self.world);
        assert!(is_ours, "PE {}: an array seen through a context of another world", self.world.my_pe());
        let mut view = View { endpoint: context.endpoint(), ..self.with_place(self.place) };
        if !view.is_closed && view.region.is_world() {
            view.injector = view.own_injector();
        }
        view
    }

    /// The part in this PE's own memory, which other PEs may access at the same time.
    #[inline]
    pub fn local(&self) -> Local<'_, T> {
        Local::new(self, self.place.own())
    }

    /// The address where this PE maps the part on `pe`; `None` if there is no such PE, or if operations on it
    /// use the network (OpenSHMEM's `shmem_ptr`). The pointer is valid for the array's `len` elements until
    /// the array is freed, dropped or resized. It must not be used in an exclusive phase of the array, in
    /// which the owner of a part has a slice of it. Accesses through it must be atomic, or must otherwise
    /// tolerate concurrent accesses by other PEs.
    pub fn ptr(&self, pe: Pe) -> Option<*mut T> {
        if pe >= self.region.len() {
            return None;
        }
        // SAFETY: the rank was compared with the number of members above.
        unsafe { self.place.mapped(pe) }.map(Part::as_ptr)
    }

    /// The route of an operation to an element.
    pub(crate) fn way(&self, operation: &'static str, rank: Rank, index: usize) -> Way<'a, T> {
        match self.access().way(operation, rank, index * size_of::<T>()) {
            access::Way::Mapped(part) => Way::Mapped(part.cast()),
            access::Way::Net(endpoint, target) => Way::Net(endpoint, target),
        }
    }

    /// The same memory as bytes.
    #[inline]
    pub(crate) fn access(&self) -> Access<'a> {
        let mut layout = self.place.cast();
        if size_of::<T>() == 0 {
            // Elements without bytes are checked by their number.
            layout.len = self.len();
        }
        Access {
            world: self.world.teams(),
            region: self.region,
            layout,
            endpoint: self.endpoint,
            is_closed: self.is_closed,
        }
    }

    /// The endpoint of operations over the network.
    pub(crate) fn net_endpoint(&self) -> &'a Arc<Endpoint> {
        self.access().net_endpoint()
    }

    /// The injector of the endpoint of operations over the network.
    fn own_injector(&self) -> &'a Injector {
        let endpoint = self.endpoint.or(self.world.core().net.as_ref());
        endpoint.map_or(&self.world.core().no_injector, |endpoint| endpoint.injector())
    }

    /// Whether the parts of all members are mapped.
    pub(crate) fn are_all_mapped(&self) -> bool {
        // SAFETY: the range has the ranks of the members, and no others.
        (0..self.region.len()).all(|rank| unsafe { self.place.mapped(rank) }.is_some())
    }

    /// The offset of an element of a PE's part in that PE's region, in bytes.
    pub(crate) fn region_offset(&self, rank: Rank, index: usize) -> usize {
        self.access().region_offset(rank, index * size_of::<T>())
    }

    /// Wakes `pe`, which sleeps until its part of this array changes.
    #[cold]
    #[inline(never)]
    pub(crate) fn ring(&self, pe: Pe) {
        self.access().ring(pe);
    }

    #[inline(always)]
    pub(crate) fn has_range(&self, index: usize, count: usize) -> bool {
        self.len().checked_sub(count).is_some_and(|last| index <= last)
    }

    /// All checks that the fast path does not make: returns the error of the PE or the range, or another
    /// reason that prevents the operation.
    pub(crate) fn check(&self, operation: &'static str, pe: Pe, index: usize, count: usize) -> Result<()> {
        self.access().check(operation, pe, (index, count, size_of::<T>()))
    }

    /// Returns an error if the array belongs to another world than `world`, whose operation uses it.
    pub(crate) fn check_world(&self, operation: &'static str, world: &Teams) -> Result<()> {
        match std::ptr::eq(self.world.teams(), world) {
            true => Ok(()),
            false => Err(ErrorKind::OtherWorld { me: world.my_pe(), operation }.into()),
        }
    }

    /// The rank of a PE of the job, as this array names PEs.
    pub(crate) fn rank_of(&self, operation: &'static str, pe: Pe) -> Result<Rank> {
        let rank = self.region().rank_of(pe);
        rank.ok_or_else(|| {
            let reason = format!(
                "the array has no part on PE {pe}. Allocate it in the world, or in a space of that PE"
            );
            ErrorKind::BadPattern { me: self.world().my_pe(), operation, reason }.into()
        })
    }

    pub(crate) fn check_pe(&self, operation: &'static str, pe: Pe) -> Result<()> {
        self.access().check_pe(operation, pe)
    }

    /// Returns an error if the exclusive phase of the array has not ended on this PE.
    pub(crate) fn check_open(&self, operation: &'static str) -> Result<()> {
        self.access().check_open(operation)
    }
}
