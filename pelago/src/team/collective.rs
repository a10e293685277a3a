//! Collective operations as users call them: blocking on a [`Team`], non-blocking through
//! [`nonblocking`](Team::nonblocking), to be started again and again through
//! [`persistent`](Team::persistent). The operations are the methods of one trait, [`Collective`].
//!
//! Invariant: the operands of an operation are checked here, before anything is started; all members make
//! the same calls in the same order, so all choose the same form and algorithm.

use super::request::{NonBlocking, PersistentCalls};
use super::span::Span;
use crate::team::Team;
use crate::world::World;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::coll::call::Call;
use pelago_core::coll::direct::Direct;
use pelago_core::coll::reduction::{Combiner, IntoCombiner};
use pelago_core::coll::schedule::Rank;
use pelago_core::coll::shape::{Blocks, Operation};
use pelago_core::job::callback;
use std::sync::Arc;

/// The collective operations of a team. Every member makes the call, with arguments that match: the same
/// operation, root and sizes, and the same elements for source and target or different ones.
///
/// Source and target are elements of symmetric arrays, of the world or of a space, whose PEs include the
/// team's. The target of every member may be written from the moment that the first member makes the call;
/// the source may be changed, and the target read, when the call has returned (or the request is over).
/// Source and target are different elements or, in broadcast, reductions and scans, the same ones.
///
/// Reductions are the same, bit by bit, at all members. Unless `PELAGO_DETERMINISTIC` is on, the order in
/// which elements are combined may depend on the algorithm, which is chosen by size and number of PEs;
/// between PEs that map each other it is always the order of ranks.
///
/// ```
/// use pelago::prelude::*;
/// # pelago::spmd(4, |world| -> pelago::Result<()> {
/// let team = world.team();
/// let (sum, mine) = (world.alloc_zeroed::<u64>(2)?, world.alloc_zeroed::<u64>(2)?);
/// mine.local().set(0, 1);
/// mine.local().set(1, world.my_pe() as u64);
/// team.all_reduce(ReduceOp::Sum, &sum, &mine)?;
/// assert_eq!(sum.local().to_vec(), [4, 6]);
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
///
/// # Errors
/// All of them: if sizes do not fit, an array is of another world or of a space that not all members have,
/// its exclusive phase has not ended here, there is no such root, or the operation is not defined for the
/// type. With `PELAGO_CHECK` on, also if the members do not make the same call. Without memory for it the job
/// ends, because other members have begun it.
pub trait Collective: Sealed {
    /// The result of a call.
    type Outcome<'a>;

    /// The team whose operations these are.
    fn team(&self) -> Team<'_>;

    /// Carries out a call.
    #[doc(hidden)]
    #[track_caller]
    fn perform<'a>(&self, world: &'a World, call: Call<'a>) -> Result<Self::Outcome<'a>>;

    /// Copies the root's source to every member's target, the root's too.
    #[track_caller]
    fn broadcast<'a, T: Element>(
        &self,
        root: Rank,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        self.perform(world, Call::new(Operation::Broadcast, root, target.len, target, source))
    }

    /// Copies block i of the root's source to the target of rank i; a block has as many elements as the
    /// target.
    #[track_caller]
    fn scatter<'a, T: Element>(
        &self,
        root: Rank,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        self.perform(world, Call::new(Operation::Scatter, root, target.len, target, source))
    }

    /// Copies every member's source, in the order of ranks, to the root's target.
    #[track_caller]
    fn gather<'a, T: Element>(
        &self,
        root: Rank,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        self.perform(world, Call::new(Operation::Gather, root, source.len, target, source))
    }

    /// As [`scatter`](Collective::scatter), with blocks of different lengths, which lie one after the other:
    /// rank i gets `counts[i]` elements, which may be none. All members give the same counts.
    #[track_caller]
    fn scatter_varying<'a, T: Element>(
        &self,
        root: Rank,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
        counts: &[usize],
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        let call = Call::new(Operation::Scatter, root, target.len, target, source);
        self.perform(world, call.of(Blocks::Counts(counts.to_vec())))
    }

    /// As [`gather`](Collective::gather), with sources of different lengths: rank i contributes `counts[i]`
    /// elements, which may be none. All members give the same counts.
    #[track_caller]
    fn gather_varying<'a, T: Element>(
        &self,
        root: Rank,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
        counts: &[usize],
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        let call = Call::new(Operation::Gather, root, source.len, target, source);
        self.perform(world, call.of(Blocks::Counts(counts.to_vec())))
    }

    /// Copies every member's source, in the order of ranks, to every member's target.
    #[track_caller]
    fn all_gather<'a, T: Element>(
        &self,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        self.perform(world, Call::new(Operation::AllGather, 0, source.len, target, source))
    }

    /// As [`all_gather`](Collective::all_gather), with sources of different lengths: rank i contributes
    /// `counts[i]` elements, which may be none. All members give the same counts.
    #[track_caller]
    fn all_gather_varying<'a, T: Element>(
        &self,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
        counts: &[usize],
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        let call = Call::new(Operation::AllGather, 0, source.len, target, source);
        self.perform(world, call.of(Blocks::Counts(counts.to_vec())))
    }

    /// Copies block j of rank i's source to block i of rank j's target, for all i and j. The length of the
    /// source is a multiple of the number of members.
    #[track_caller]
    fn all_to_all<'a, T: Element>(
        &self,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        let n = self.team().n_pes();
        if !source.len.is_multiple_of(n) {
            let reason = format!(
                "the source has {} elements, which is not a multiple of the {n} members. Take a slice of it",
                source.len
            );
            let me = self.team().world().my_pe();
            return Err(ErrorKind::BadCollective { me, operation: "all_to_all", reason }.into());
        }
        self.perform(world, Call::new(Operation::AllToAll, 0, source.len / n, target, source))
    }

    /// As [`all_to_all`](Collective::all_to_all), `count` elements for each member, which lie `strides`
    /// elements apart in target and source: element e of the block for rank j is `source[(j * count + e) *
    /// strides.1]`, and is stored at `target[(i * count + e) * strides.0]`.
    #[track_caller]
    fn all_to_all_strided<'a, T: Element>(
        &self,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
        count: usize,
        strides: (usize, usize),
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        let call = Call::new(Operation::AllToAll, 0, count, target, source);
        self.perform(world, call.of(Blocks::Strided { source: strides.1, target: strides.0 }))
    }

    /// As [`all_to_all`](Collective::all_to_all), with blocks of any length at any place: `sends[j]` gives
    /// the start in the source and the number of elements of the block for rank j, `receives[i]` the start
    /// in the target and the number of elements of the block from rank i.
    #[track_caller]
    fn all_to_all_varying<'a, T: Element>(
        &self,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
        receives: &[(usize, usize)],
        sends: &[(usize, usize)],
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        let call = Call::new(Operation::AllToAll, 0, 0, target, source);
        let blocks = Blocks::Exchanged { source: sends.to_vec(), target: receives.to_vec() };
        self.perform(world, call.of(blocks))
    }

    /// Combines the sources, element by element, in the root's target.
    #[track_caller]
    fn reduce<'a, T: Element>(
        &self,
        op: impl IntoCombiner<T>,
        root: Rank,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        let call = Call::new(Operation::Reduce, root, source.len, target, source);
        self.perform(world, call.with(self.combiner(op)?))
    }

    /// Combines the sources, element by element, in every member's target.
    #[track_caller]
    fn all_reduce<'a, T: Element>(
        &self,
        op: impl IntoCombiner<T>,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        let call = Call::new(Operation::AllReduce, 0, source.len, target, source);
        self.perform(world, call.with(self.combiner(op)?))
    }

    /// Combines block i of all sources in the target of rank i; a block has as many elements as the target.
    #[track_caller]
    fn reduce_scatter<'a, T: Element>(
        &self,
        op: impl IntoCombiner<T>,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        let call = Call::new(Operation::ReduceScatter, 0, target.len, target, source);
        self.perform(world, call.with(self.combiner(op)?))
    }

    /// Combines the sources of ranks 0 to i in the target of rank i.
    #[track_caller]
    fn inclusive_scan<'a, T: Element>(
        &self,
        op: impl IntoCombiner<T>,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        let call = Call::new(Operation::InclusiveScan, 0, source.len, target, source);
        self.perform(world, call.with(self.combiner(op)?))
    }

    /// Combines the sources of ranks 0 to i - 1 in the target of rank i; the target of rank 0 stays as it
    /// is.
    #[track_caller]
    fn exclusive_scan<'a, T: Element>(
        &self,
        op: impl IntoCombiner<T>,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<Self::Outcome<'a>> {
        let ((world, target), source) = (target.into().with_world(), source.into().operand());
        let call = Call::new(Operation::ExclusiveScan, 0, source.len, target, source);
        self.perform(world, call.with(self.combiner(op)?))
    }

    /// The combiner of an operation, if the type has it.
    #[doc(hidden)]
    fn combiner<T: Element>(&self, op: impl IntoCombiner<T>) -> Result<Combiner> {
        op.into_combiner().map_err(|reason| {
            let me = self.team().world().my_pe();
            ErrorKind::BadCollective { me, operation: "a reduction", reason }.into()
        })
    }
}

/// A perform with operands of its own would not be checked, so only the types of this crate implement
/// [`Collective`].
mod sealed {
    pub trait Sealed {}
}

pub(super) use sealed::Sealed;

impl Sealed for Team<'_> {}

impl Collective for Team<'_> {
    type Outcome<'a> = ();

    fn team(&self) -> Team<'_> {
        Team { world: self.world, core: Arc::clone(&self.core) }
    }

    #[inline]
    #[track_caller]
    fn perform<'a>(&self, _: &'a World, call: Call<'a>) -> Result<()> {
        self.core.do_call(self.world.core(), &call)
    }

    #[inline]
    #[track_caller]
    fn broadcast<'a, T: Element>(
        &self,
        root: Rank,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<()> {
        let (target, source) = (target.into(), source.into());
        let world = self.world.teams();
        if self.core.is_fast && root < self.n_pes() && target.is_word_like(&source, world) {
            let direct = Direct { world, team: &self.core, operation: "broadcast" };
            // SAFETY: both are aligned words of arrays of this world, in this PE's own part.
            unsafe { direct.broadcast_word(root, source.own().cast(), target.own().cast()) };
            return Ok(());
        }
        self.broadcast_any(root, target, source)
    }

    #[inline]
    #[track_caller]
    fn all_reduce<'a, T: Element>(
        &self,
        op: impl IntoCombiner<T>,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<()> {
        let (target, source) = (target.into(), source.into());
        let world = self.world.teams();
        let combiner = self.combiner(op)?;
        if self.core.is_fast && target.is_small_like(&source, world) {
            let direct = Direct { world, team: &self.core, operation: "all_reduce" };
            let bytes = source.len() * size_of::<T>();
            // SAFETY: both are elements of arrays of this world, in this PE's own part.
            unsafe { direct.all_reduce_small(&combiner, source.own().cast(), target.own().cast(), bytes) };
            return Ok(());
        }
        let call = Call::new(Operation::AllReduce, 0, source.len(), target.operand(), source.operand());
        self.core.do_call(self.world.core(), &call.with(combiner))
    }
}

impl Sealed for World {}

/// The collective operations of all PEs, those of [`World::team`].
///
/// ```
/// use pelago::prelude::*;
/// # pelago::spmd(4, |world| -> pelago::Result<()> {
/// let numbers = world.alloc::<usize>(1)?;
/// numbers.local().set(0, world.my_pe());
/// world.all_reduce(ReduceOp::Sum, &numbers, &numbers)?;
/// assert_eq!(numbers.local().get(0), 6);
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
impl Collective for World {
    type Outcome<'a> = ();

    fn team(&self) -> Team<'_> {
        World::team(self)
    }

    #[inline]
    #[track_caller]
    fn perform<'a>(&self, _: &'a World, call: Call<'a>) -> Result<()> {
        self.core().team.do_call(self.core(), &call)
    }

    #[inline]
    #[track_caller]
    fn broadcast<'a, T: Element>(
        &self,
        root: Rank,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<()> {
        World::team(self).broadcast(root, target, source)
    }

    #[inline]
    #[track_caller]
    fn all_reduce<'a, T: Element>(
        &self,
        op: impl IntoCombiner<T>,
        target: impl Into<Span<'a, T>>,
        source: impl Into<Span<'a, T>>,
    ) -> Result<()> {
        World::team(self).all_reduce(op, target, source)
    }
}

impl<'w> Team<'w> {
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn broadcast_any<T: Element>(&self, root: Rank, target: Span<'_, T>, source: Span<'_, T>) -> Result<()> {
        let count = target.len();
        self.core.do_call(
            self.world.core(),
            &Call::new(Operation::Broadcast, root, count, target.operand(), source.operand()),
        )
    }

    /// As [`broadcast`](Collective::broadcast), but the root's target stays as it is. Collective.
    ///
    /// # Errors
    /// Those of [`broadcast`](Collective::broadcast).
    #[doc(hidden)]
    #[track_caller]
    pub fn broadcast_to_others<T: Element>(
        &self,
        root: Rank,
        target: Span<'_, T>,
        source: Span<'_, T>,
    ) -> Result<()> {
        let call = Call::new(Operation::Broadcast, root, target.len(), target.operand(), source.operand());
        self.core.do_call(self.world.core(), &call.sparing_root(self.my_rank()))
    }

    /// Waits until all members have entered, and completes all operations that they issued before, except
    /// through a [`Context`](crate::Context). Collective.
    ///
    /// # Panics
    /// If a member that has not come has left the job or failed, so that the barrier cannot end.
    #[inline]
    #[track_caller]
    pub fn barrier(&self) {
        self.core.barrier(self.world.core());
    }

    /// Waits until all members have entered. Their earlier stores are visible; it completes no operations
    /// that go over the network. Collective.
    ///
    /// # Panics
    /// As [`barrier`](Team::barrier).
    #[inline]
    #[track_caller]
    pub fn sync(&self) {
        self.core.sync(self.world.core());
    }

    /// The operations of this team, not waiting for their end: each returns a [`Request`](crate::Request).
    pub fn nonblocking(&self) -> NonBlocking<'_, 'w> {
        NonBlocking { team: self }
    }

    /// The operations of this team, to be started again and again: each returns a
    /// [`Persistent`](crate::Persistent).
    pub fn persistent(&self) -> PersistentCalls<'_, 'w> {
        PersistentCalls { team: self }
    }

    /// The counts of the synchronisation memory that this PE's operations by schedules use in this team: its
    /// words and bytes, and the signals that were sent. If that memory belongs to pairs of PEs, all teams of
    /// this PE share it, and the counts are those of all teams.
    pub fn sync_counts(&self) -> pelago_core::coll::sync_memory::SyncCounts {
        callback::forbid(self.world.core(), "sync_counts");
        self.world.core().sync_counts(&self.core)
    }
}
