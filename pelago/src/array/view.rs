//! Views: a symmetric array as one-sided operations see it. They are all methods of the view, in the modules
//! `rma`, `amo`, `vis`, `signal` and `nb`; an array is a view of itself, through the world's own context.
//!
//! Invariant: a view borrows the array, so nothing can be started on an array that is freed, resized or in an
//! exclusive phase.

use crate::Pe;
use crate::array::local::Local;
use crate::base::element::Element;
use crate::base::error::{ErrorKind, Result};
use crate::coll::schedule::Rank;
use crate::coll::symmetric_region::SymmetricRegion;
use crate::coll::teams::Teams;
use crate::context::Context;
use crate::endpoint::{Endpoint, Injector, RemoteAddress};
use crate::memory::segment::{ArrayLayout, Part};
use crate::memory::usage::Usage;
use crate::world::World;
use pelago_fabric::shm::doorbell::Cause;
use std::sync::Arc;

/// A symmetric array, or one through a context: what one-sided operations are called on.
///
/// [`Symmetric`](crate::Symmetric) derefs to it; [`via`](View::via) makes one through a context. Where an
/// operation takes the number of a PE, that is its rank in the team if the array lies in a
/// [`Space`](crate::Space).
///
/// Every operation also fails on an array whose exclusive phase has not ended here, and, over the net or
/// while operations are counted, once the job has failed. Over the net, calls that wait panic when the job
/// fails.
pub struct View<'a, T: Element> {
    world: &'a World,
    region: &'a SymmetricRegion,
    usage: Arc<Usage>,
    /// Where operations over the net start; the world's own endpoint if `None`.
    endpoint: Option<&'a Arc<Endpoint>>,
    /// Injects puts of one element and lone gets; closed if the view may not.
    pub(crate) injector: &'a Injector,
    /// In an exclusive phase, or after one that has not ended here.
    is_closed: bool,
    pub(crate) place: ArrayLayout<T>,
}

/// How an operation reaches a member's part.
pub(crate) enum Way<'a, T: Element> {
    /// It is mapped here.
    Mapped(Part<T>),
    /// Over the net: by this endpoint, at this target.
    Net(&'a Arc<Endpoint>, RemoteAddress),
}

impl<'a, T: Element> View<'a, T> {
    pub(crate) fn new(
        world: &'a World,
        region: &'a SymmetricRegion,
        place: ArrayLayout<T>,
        usage: Arc<Usage>,
    ) -> View<'a, T> {
        let injector = &world.no_injector;
        let mut view = View { world, region, usage, endpoint: None, injector, is_closed: false, place };
        view.open(place.limit);
        view
    }

    /// Closes it, so that every operation takes the cold function, which refuses. Returns what opens it
    /// again.
    pub(crate) fn close(&mut self) -> usize {
        self.is_closed = true;
        self.injector = &self.world.no_injector;
        std::mem::replace(&mut self.place.limit, 0)
    }

    /// Lets operations happen; `limit` is what `close` has returned.
    pub(crate) fn open(&mut self, limit: usize) {
        self.is_closed = false;
        if self.region.is_world() {
            self.injector = self.own_injector();
        }
        self.place.limit = limit;
    }

    /// Whether it is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// This view with another place in the same memory.
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

    /// What collective operations hold while they use the array.
    pub(crate) fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    /// The array seen through a context: operations on the result are ordered and completed by that context's
    /// fence and quiet, not by the world's.
    ///
    /// # Panics
    /// If the context belongs to another world, which this array is not reached by.
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

    /// Where this PE maps the part on `pe`; `None` if there is no such PE, or operations on it go over the
    /// net (OpenSHMEM's `shmem_ptr`). The pointer is good for the array's `len` elements until the array is
    /// freed. Whoever follows it must do so by atomics or other means that bear with other PEs' accesses.
    pub fn ptr(&self, pe: Pe) -> Option<*mut T> {
        if pe >= self.region.len() {
            return None;
        }
        // SAFETY: there is such a member.
        unsafe { self.place.mapped(pe) }.map(Part::as_ptr)
    }

    /// How an operation reaches an element.
    pub(crate) fn way(&self, operation: &'static str, rank: Rank, index: usize) -> Way<'a, T> {
        assert!(rank < self.region.len(), "{operation}: callers check that there is a PE {rank}");
        let pe = self.region.pe(rank);
        // SAFETY: the rank was compared with the number of members above.
        if let Some(part) = unsafe { self.place.mapped(rank) } {
            return Way::Mapped(part);
        }
        Way::Net(
            self.net_endpoint(),
            RemoteAddress { operation, pe, offset_bytes: self.region_offset(rank, index) },
        )
    }

    /// Where operations over the net start.
    pub(crate) fn net_endpoint(&self) -> &'a Arc<Endpoint> {
        self.endpoint.unwrap_or_else(|| self.world.net_endpoint())
    }

    /// The injector of the endpoint where operations over the net start.
    fn own_injector(&self) -> &'a Injector {
        let endpoint = self.endpoint.or(self.world.net.as_ref());
        endpoint.map_or(&self.world.no_injector, |endpoint| endpoint.injector())
    }

    /// Whether the parts of all members are mapped.
    pub(crate) fn are_all_mapped(&self) -> bool {
        // SAFETY: the range has the ranks of the members, and no others.
        (0..self.region.len()).all(|rank| unsafe { self.place.mapped(rank) }.is_some())
    }

    /// Where an element of a PE's part lies in that PE's region, in bytes.
    pub(crate) fn region_offset(&self, rank: Rank, index: usize) -> usize {
        self.region.region_offset(rank, self.place.offset_bytes() + index * size_of::<T>())
    }

    /// Wakes `pe`, which sleeps until its part of this array changes.
    #[cold]
    #[inline(never)]
    pub(crate) fn ring(&self, pe: Pe) {
        self.world.memory.near_block(self.region.pe(pe)).doorbell.ring(Cause::Data);
    }

    #[inline(always)]
    pub(crate) fn has_range(&self, index: usize, count: usize) -> bool {
        self.len().checked_sub(count).is_some_and(|last| index <= last)
    }

    /// All that the fast path does not look at: which of PE and range is wrong, or what else keeps the
    /// operation from happening.
    pub(crate) fn check(&self, operation: &'static str, pe: Pe, index: usize, count: usize) -> Result<()> {
        self.check_pe(operation, pe)?;
        let (me, len) = (self.world.my_pe(), self.len());
        if !self.has_range(index, count) {
            return Err(ErrorKind::OutOfRange { me, operation, pe, index, count, len }.into());
        }
        self.check_open(operation)?;
        match self.world.has_failed() {
            Some(reason) => Err(ErrorKind::JobFailed { me, operation, reason }.into()),
            None => Ok(()),
        }
    }

    /// Refuses an array of another world than the one whose operation it is named in.
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
            let (me, n_pes) = (self.world().my_pe(), self.region().len());
            ErrorKind::PeOutOfRange { me, operation, pe, n_pes }.into()
        })
    }

    pub(crate) fn check_pe(&self, operation: &'static str, pe: Pe) -> Result<()> {
        let (me, n_pes) = (self.world.my_pe(), self.region.len());
        if pe >= n_pes {
            return Err(ErrorKind::PeOutOfRange { me, operation, pe, n_pes }.into());
        }
        Ok(())
    }

    /// Refuses an operation on an array whose exclusive phase has not ended here.
    pub(crate) fn check_open(&self, operation: &'static str) -> Result<()> {
        match self.is_closed {
            true => Err(ErrorKind::ArrayClosed { me: self.world.my_pe(), operation }.into()),
            false => Ok(()),
        }
    }
}
