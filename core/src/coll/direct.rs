//! Direct forms: blocking operations of members that map each other, without a request or a schedule.
//!
//! Every direct operation has a number, which each member writes to its own word, `begun`, when it begins. A
//! small one goes over *staging slots*: a member that contributes shows its data on its staging slot of that
//! number, and the members that need them read them there. In a large one members read and write each other's
//! source and target themselves: data are copied once, and each member computes its part of the result. Of
//! private memory they copy one piece after the other to larger slots ([`staged`]).
//!
//! An agreement has a kind of its own: before a member begins one, it writes the number to its word of kinds,
//! which nothing else writes to, and it shows its data when all members have begun the same agreement.
//!
//! Invariant: a member that has begun an operation is done with all staging slots of earlier ones. A staging
//! slot is written again, [`STAGING_SLOTS`] operations later, only when all members have begun a later
//! operation than that of its old contents. The same holds for a page, [`STAGING_PAGES`] operations later.
//! Elements are combined in the order of ranks, each result by one member or by all alike, so results are the
//! same everywhere and do not depend on the form.

mod agreement;
pub mod staged;

use super::block::{PAGE_BYTES, STAGING_PAGES, STAGING_SLOT_BYTES, STAGING_SLOTS};
use super::reduction::Combiner;
use super::schedule::Rank;
use crate::base::awaited::Awaited;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use crate::job::callback::{self, Callback};
use pelago_fabric::copy;
use pelago_fabric::shm::flags::Stamp;
use pelago_fabric::sync::{Ordering, fence, prefetch_for_write, spin_once};
use smallvec::SmallVec;

/// Where every member has its source or its target, by rank.
pub type Places<'a> = dyn Fn(Rank) -> *mut u8 + 'a;

/// The operands of an operation, one of each rank.
type Operands = SmallVec<[*const u8; 16]>;

/// A direct operation of a team.
pub struct Direct<'a> {
    pub world: &'a Teams,
    pub team: &'a TeamCore,
    pub operation: &'static str,
}

/// Looks for a member between two looks whether it agrees meanwhile.
const LOOKS_PER_KIND_CHECK: u32 = 64;
/// Elements that belong together, in bytes: different members compute parts that begin at multiples.
const PART_ALIGN_BYTES: usize = 64;

impl TeamCore {
    /// Whether the members map each other, so that there are direct forms.
    #[inline]
    pub fn is_mapped(&self) -> bool {
        !self.starts.0.is_empty()
    }

    /// Wakes the members that sleep until this one has begun an operation.
    #[inline(always)]
    pub fn tell_begun(&self, world: &Teams) {
        // No fence orders the number before this look: see `Doorbell`.
        if self.own_begun_waiters().load(Ordering::Relaxed) != 0 {
            world.ring_sleepers();
        }
    }
}

impl Direct<'_> {
    /// Begins an operation: its number.
    #[inline(always)]
    fn begin(&self) -> u64 {
        let number = self.team.sequence.load(Ordering::Relaxed) + 1;
        self.team.sequence.store(number, Ordering::Relaxed);
        // This PE is done with earlier staging slots.
        self.team.own_begun().raise(number);
        number
    }

    /// Waits until a member has begun an operation.
    #[inline(always)]
    #[track_caller]
    fn await_begun(&self, rank: Rank, number: u64) {
        let begun = self.team.begun(rank);
        if !begun.has_reached(number) {
            wait_begun(self.world, self.team, self.operation, (rank, number));
        }
    }

    /// Called while this PE waits for a member that has not begun an operation: ends the job if the member
    /// makes an agreement of the team of which this one is the part on a node, where this PE makes none.
    fn watching(&self, (rank, number): (Rank, u64), ready: impl Fn() -> bool) -> impl FnMut() -> bool {
        let mut looks = 0u32;
        move || {
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_PER_KIND_CHECK) && !ready() {
                let team = self.team;
                // Looked at first: a member that has begun the operation before it agreed is seen to have.
                let theirs = team.agreements(rank).number();
                let is_elsewhere = theirs > team.agreements(team.my_rank()).number();
                if is_elsewhere && !team.begun(rank).has_reached(number) {
                    team.fail_met(self.world, self.operation, Some(rank));
                }
            }
            ready()
        }
    }

    #[inline(always)]
    fn awaits(&self, rank: Rank) -> Awaited {
        Awaited::member(self.operation, Some(self.team.pe(rank)))
    }

    /// Wakes sleeping members, so that they see this PE's last stores.
    #[inline(always)]
    fn wake(&self) {
        // SYNC POINT doorbell: orders the change before the look at the sleepers.
        fence(Ordering::SeqCst);
        self.world.ring_sleepers();
    }

    /// Wakes the members that sleep until this one has begun an operation: for a free staging slot, or for an
    /// agreement. It is for a member that shows nothing, or later: one that shows its data wakes all.
    #[inline(always)]
    fn tell_begun(&self) {
        self.team.tell_begun(self.world);
    }

    /// Waits until all members have come: everything that they did before is visible.
    #[inline]
    #[track_caller]
    pub fn sync(&self) {
        let number = self.begin();
        if self.team.meets_at_counter {
            return self.meet(number);
        }
        self.wake();
        for (rank, &start) in self.team.starts.0.iter().enumerate() {
            // SAFETY: the block of each member begins with its word, which is accessed as an atomic only.
            let begun = unsafe { &*start.cast::<Stamp>() };
            if !begun.has_reached(number) {
                wait_begun(self.world, self.team, self.operation, (rank, number));
            }
        }
        self.team.begun_by_all.store(number, Ordering::Relaxed);
    }

    /// Meets the others at the counter.
    #[inline(never)]
    #[track_caller]
    fn meet(&self, number: u64) {
        let meeting = self.team.meeting();
        match meeting.arrive(self.team.len() as u32, number) {
            true => self.world.ring_sleepers(),
            false => {
                self.tell_begun();
                callback::forbid(self.world, self.operation);
                let awaited = Awaited::member(self.operation, None);
                // A member that has left before this is over has not entered, and cannot enter any more.
                let left = || {
                    (0..self.team.len()).map(|rank| self.team.pe(rank)).find(|&pe| self.world.has_left(pe))
                };
                self.world.wait_for_members(awaited, || meeting.is_over(number), left);
            }
        }
        self.team.begun_by_all.store(number, Ordering::Relaxed);
    }

    /// Makes sure that the staging slot of operation `number`, or its page, is free. There are `turns` of
    /// them.
    #[inline(always)]
    #[track_caller]
    fn make_room(&self, number: u64, turns: usize) {
        if number - self.team.begun_by_all.load(Ordering::Relaxed) >= turns as u64 {
            let least = number + 1 - turns as u64;
            make_room_slowly(self.world, self.team, self.operation, (number, least));
        }
    }

    /// Shows data on this PE's staging slot.
    ///
    /// # Safety
    /// `source` is valid for reads of `bytes` bytes, at most 1 KiB.
    #[inline(always)]
    #[track_caller]
    unsafe fn show(&self, number: u64, source: *const u8, bytes: usize) {
        let slot = self.team.own_staging_slot(number);
        // SAFETY: the staging slot or its page has room for the bytes, and is free; the caller guarantees the
        // source.
        unsafe {
            match bytes {
                0..=STAGING_SLOT_BYTES => {
                    self.make_room(number, STAGING_SLOTS);
                    copy::transfer(slot.inline, source, bytes);
                }
                _ => {
                    self.make_room(number, STAGING_PAGES);
                    copy::copy(slot.page, source, bytes);
                }
            }
            (*slot.stamp).raise(number);
        }
        // No fence orders the data before this look: see `Doorbell`.
        self.world.ring_sleepers();
    }

    /// Waits until a member has shown its data, and returns their address.
    #[inline(always)]
    #[track_caller]
    fn look(&self, rank: Rank, number: u64, bytes: usize) -> *const u8 {
        let slot = self.team.staging_slot(rank, number);
        // SAFETY: the stamp lies in the member's block and is accessed as an atomic only.
        let stamp = unsafe { &*slot.stamp };
        if !stamp.has_reached(number) {
            await_staging_slot(self.world, self.team, self.operation, (rank, number));
        }
        if bytes <= STAGING_SLOT_BYTES { slot.inline } else { slot.page }
    }

    /// Exchanges data of `bytes` bytes, at most 1 KiB, that every member gives: `take` gets those of each.
    ///
    /// # Safety
    /// `source` is valid for reads of that many bytes.
    #[inline]
    #[track_caller]
    unsafe fn show_all(&self, source: *const u8, bytes: usize, mut take: impl FnMut(Rank, *const u8)) {
        let number = self.begin();
        // SAFETY: the caller guarantees that the source is valid.
        unsafe { self.show(number, source, bytes) };
        for rank in 0..self.team.len() {
            take(rank, self.look(rank, number, bytes));
        }
        self.team.begun_by_all.store(number, Ordering::Relaxed);
    }

    /// Begins the last operation in which the members from rank `n` on take part: the others wait until those
    /// have begun it, too.
    #[track_caller]
    pub fn part_from(&self, n: usize) {
        let number = self.begin();
        self.wake();
        if self.team.my_rank() < n {
            for rank in n..self.team.len() {
                self.await_begun(rank, number);
            }
        }
    }

    #[track_caller]
    unsafe fn all_gather_small(&self, source: *const u8, target: *mut u8, bytes: usize) {
        // SAFETY: the caller guarantees that source and target are valid.
        unsafe {
            self.show_all(source, bytes, |rank, shown| {
                copy::transfer(target.add(rank * bytes), shown, bytes)
            });
        }
    }

    /// Lets `root` wait until all members have entered: the end of an operation in which its memory was read
    /// or written, or the first half of a barrier.
    #[inline]
    #[track_caller]
    pub fn finish_at(&self, root: Rank) {
        let number = self.begin();
        self.wake();
        if self.team.my_rank() == root {
            for rank in 0..self.team.len() {
                self.await_begun(rank, number);
            }
            self.team.begun_by_all.store(number, Ordering::Relaxed);
        }
    }

    /// Lets the others continue when `root` has entered: the second half of a barrier.
    #[track_caller]
    pub fn release_from(&self, root: Rank) {
        let number = self.begin();
        self.wake();
        if self.team.my_rank() != root {
            self.await_begun(root, number);
        }
    }

    /// Brings `bytes` bytes, at most 1 KiB, from one member to another one.
    ///
    /// # Safety
    /// `source` is valid for reads at rank `from`, `target` for writes at rank `to`.
    #[track_caller]
    pub unsafe fn pass(&self, (from, to): (Rank, Rank), source: *const u8, target: *mut u8, bytes: usize) {
        let (me, number) = (self.team.my_rank(), self.begin());
        // SAFETY: the caller guarantees that source and target are valid.
        unsafe {
            if me == from {
                return self.show(number, source, bytes);
            }
            self.tell_begun();
            if me == to {
                copy::transfer(target, self.look(from, number, bytes), bytes);
            }
        }
    }

    /// Broadcast of one word.
    ///
    /// # Safety
    /// Both are aligned, and valid at this member: the source at the root for reads, the target for writes.
    #[inline]
    #[track_caller]
    pub unsafe fn broadcast_word(&self, root: Rank, source: *const u64, target: *mut u64) {
        let number = self.begin();
        // SAFETY: a staging slot has room for a word, aligned, and its stamp is accessed as an atomic only.
        // The caller guarantees source and target.
        unsafe {
            if self.team.my_rank() == root {
                let slot = self.team.own_staging_slot(number);
                self.make_room(number, STAGING_SLOTS);
                let word = copy::load(source);
                copy::store(slot.inline.cast(), word);
                (*slot.stamp).raise(number);
                self.wake();
                copy::store(target, word);
            } else {
                self.tell_begun();
                let slot = self.team.staging_slot(root, number);
                let stamp = &*slot.stamp;
                if !stamp.has_reached(number) {
                    await_staging_slot(self.world, self.team, self.operation, (root, number));
                }
                copy::store(target, copy::load(slot.inline.cast::<u64>()));
            }
        }
    }

    /// All-reduce of at most 56 bytes.
    ///
    /// # Safety
    /// As [`broadcast`](Direct::broadcast).
    #[inline]
    #[track_caller]
    pub unsafe fn all_reduce_small(
        &self,
        combiner: &Combiner,
        source: *const u8,
        target: *mut u8,
        bytes: usize,
    ) {
        let number = self.begin();
        // SAFETY: the caller guarantees source and target; the bytes that are read lie inside them.
        unsafe {
            self.show(number, source, bytes);
            // This PE's cache has that line when it is written. Until then a slow member may read it.
            prefetch_for_write(&*self.team.own_staging_slot(number + 1).stamp);
            let n = self.team.len();
            if n == 1 {
                copy::transfer(target, source, bytes);
            } else {
                let (first, second) = (self.look(0, number, bytes), self.look(1, number, bytes));
                self.combine(combiner, first, second, target, bytes);
                for rank in 2..n {
                    self.combine(combiner, target, self.look(rank, number, bytes), target, bytes);
                }
            }
        }
        self.team.begun_by_all.store(number, Ordering::Relaxed);
    }

    /// Broadcast.
    ///
    /// # Safety
    /// The places are valid for `bytes` bytes at every member, as the operation's description requires; the
    /// same holds for all functions that follow.
    #[inline]
    #[track_caller]
    pub unsafe fn broadcast(&self, root: Rank, source: &Places<'_>, target: &Places<'_>, bytes: usize) {
        let me = self.team.my_rank();
        let number = self.begin();
        let is_small = bytes <= PAGE_BYTES;
        // SAFETY: the caller guarantees that all places are valid.
        unsafe {
            if me == root {
                let (source, target) = (source(me), target(me));
                self.show(number, source, if is_small { bytes } else { 0 });
                if source != target {
                    copy::copy(target, source, bytes);
                }
            } else {
                self.tell_begun();
                let shown = self.look(root, number, bytes);
                copy::transfer(target(me), if is_small { shown } else { source(root) }, bytes);
            }
        }
        if !is_small {
            self.finish_at(root);
        }
    }

    /// Scatter, of blocks of `bytes` bytes.
    ///
    /// # Safety
    /// As [`broadcast`](Direct::broadcast).
    #[track_caller]
    pub unsafe fn scatter(&self, root: Rank, source: &Places<'_>, target: &Places<'_>, bytes: usize) {
        let (me, all) = (self.team.my_rank(), bytes * self.team.len());
        let number = self.begin();
        let is_small = all <= PAGE_BYTES;
        // SAFETY: the caller guarantees that all places are valid.
        unsafe {
            if me == root {
                self.show(number, source(me), if is_small { all } else { 0 });
            } else {
                self.tell_begun();
            }
            let shown = if me == root { source(root).cast_const() } else { self.look(root, number, all) };
            // A root whose block stays in its source (MPI_IN_PLACE) writes nothing: that may be constant.
            if me != root || target(me).cast_const() != source(root).cast_const().add(me * bytes) {
                let blocks = if is_small { shown } else { source(root) };
                copy::copy(target(me), blocks.add(me * bytes), bytes);
            }
        }
        if !is_small {
            self.finish_at(root);
        }
    }

    /// Gather, of blocks of `bytes` bytes.
    ///
    /// # Safety
    /// As [`broadcast`](Direct::broadcast).
    #[track_caller]
    pub unsafe fn gather(&self, root: Rank, source: &Places<'_>, target: &Places<'_>, bytes: usize) {
        let (me, n) = (self.team.my_rank(), self.team.len());
        let number = self.begin();
        // SAFETY: the caller guarantees that all places are valid.
        unsafe {
            if bytes > PAGE_BYTES {
                self.wake();
                self.await_begun(root, number);
                copy::copy(target(root).add(me * bytes), source(me), bytes);
                return self.finish_at(root);
            }
            if me != root {
                return self.show(number, source(me), bytes);
            }
            self.tell_begun();
            for rank in 0..n {
                let block = if rank == me { source(me).cast_const() } else { self.look(rank, number, bytes) };
                copy::copy(target(me).add(rank * bytes), block, bytes);
            }
        }
        self.team.begun_by_all.store(number, Ordering::Relaxed);
    }

    /// All-gather, of blocks of `bytes` bytes.
    ///
    /// # Safety
    /// As [`broadcast`](Direct::broadcast).
    #[track_caller]
    pub unsafe fn all_gather(&self, source: &Places<'_>, target: &Places<'_>, bytes: usize) {
        let (me, n) = (self.team.my_rank(), self.team.len());
        let target = target(me);
        // SAFETY: the caller guarantees that all places are valid.
        unsafe {
            if bytes <= PAGE_BYTES {
                return self.all_gather_small(source(me), target, bytes);
            }
            self.sync();
            for rank in (0..n).map(|i| (me + i) % n) {
                copy::copy(target.add(rank * bytes), source(rank), bytes);
            }
        }
        self.sync();
    }

    /// All-to-all, of blocks of `bytes` bytes.
    ///
    /// # Safety
    /// As [`broadcast`](Direct::broadcast).
    #[track_caller]
    pub unsafe fn all_to_all(&self, source: &Places<'_>, target: &Places<'_>, bytes: usize) {
        let (me, n) = (self.team.my_rank(), self.team.len());
        let target = target(me);
        // SAFETY: the caller guarantees that all places are valid.
        unsafe {
            if bytes * n <= PAGE_BYTES {
                return self.show_all(source(me), bytes * n, |rank, shown| {
                    copy::transfer(target.add(rank * bytes), shown.add(me * bytes), bytes);
                });
            }
            self.sync();
            for rank in (0..n).map(|i| (me + i) % n) {
                copy::copy(target.add(rank * bytes), source(rank).add(me * bytes), bytes);
            }
        }
        self.sync();
    }

    /// All-to-all of `count` elements of `element` bytes for each member, `strides` apart (in elements, in
    /// source and target).
    ///
    /// # Safety
    /// As [`broadcast`](Direct::broadcast).
    #[track_caller]
    pub unsafe fn all_to_all_strided(
        &self,
        source: &Places<'_>,
        target: &Places<'_>,
        (element, count): (usize, usize),
        (source_stride, target_stride): (usize, usize),
    ) {
        let (me, n) = (self.team.my_rank(), self.team.len());
        self.sync();
        for rank in (0..n).map(|i| (me + i) % n) {
            let (from, into) = (source(rank), target(me));
            for i in 0..count {
                let (at, to) = ((me * count + i) * source_stride, (rank * count + i) * target_stride);
                // SAFETY: the caller guarantees that all places are valid.
                unsafe { copy::copy(into.add(to * element), from.add(at * element), element) };
            }
        }
        self.sync();
    }

    /// Reduce to `root`, or to all if `None`, of `bytes` bytes.
    ///
    /// # Safety
    /// As [`broadcast`](Direct::broadcast).
    #[track_caller]
    pub unsafe fn reduce(
        &self,
        combiner: &Combiner,
        root: Option<Rank>,
        source: &Places<'_>,
        target: &Places<'_>,
        bytes: usize,
    ) {
        let (me, n) = (self.team.my_rank(), self.team.len());
        if bytes > PAGE_BYTES {
            // SAFETY: the caller guarantees that all places are valid.
            return unsafe { self.reduce_large(combiner, root, source, target, bytes) };
        }
        let number = self.begin();
        // SAFETY: the caller guarantees that all places are valid.
        unsafe {
            if root != Some(me) {
                self.show(number, source(me), bytes);
            }
            match root {
                Some(root) if root != me => return,
                Some(_) => self.tell_begun(),
                None => {}
            }
            let own = |rank| rank == me && root.is_some();
            let shown =
                |rank| if own(rank) { source(me).cast_const() } else { self.look(rank, number, bytes) };
            match n {
                2 => self.combine(combiner, shown(0), shown(1), target(me), bytes),
                _ => self.fold(combiner, &(0..n).map(shown).collect::<Vec<_>>(), target(me), bytes),
            }
        }
        self.team.begun_by_all.store(number, Ordering::Relaxed);
    }

    #[track_caller]
    unsafe fn reduce_large(
        &self,
        combiner: &Combiner,
        root: Option<Rank>,
        source: &Places<'_>,
        target: &Places<'_>,
        bytes: usize,
    ) {
        let (me, n) = (self.team.my_rank(), self.team.len());
        self.sync();
        let (start, end) = self.part(combiner, bytes, me);
        if start < end {
            // SAFETY: the caller guarantees all places; the parts of the members do not overlap.
            unsafe {
                let operand = |rank| source(rank).add(start).cast_const();
                let first = target(root.unwrap_or(me)).add(start);
                match n {
                    2 => self.combine(combiner, operand(0), operand(1), first, end - start),
                    _ => self.fold(combiner, &(0..n).map(operand).collect::<Vec<_>>(), first, end - start),
                }
                for rank in (0..n).filter(|&rank| root.is_none() && rank != me) {
                    copy::copy(target(rank).add(start), first, end - start);
                }
            }
        }
        self.sync();
    }

    /// As [`Combiner::combine`].
    ///
    /// # Safety
    /// As [`Combiner::combine`].
    #[inline(always)]
    #[track_caller]
    unsafe fn combine(
        &self,
        combiner: &Combiner,
        left: *const u8,
        right: *const u8,
        into: *mut u8,
        bytes: usize,
    ) {
        // SAFETY: the caller guarantees that all places are valid.
        unsafe {
            if !combiner.combine_built_in(left, right, into, bytes) {
                fold_by_function(self, combiner, &[left, right], into, bytes);
            }
        }
    }

    /// As [`Combiner::fold`].
    ///
    /// # Safety
    /// As [`Combiner::fold`].
    #[track_caller]
    pub unsafe fn fold(&self, combiner: &Combiner, operands: &[*const u8], into: *mut u8, bytes: usize) {
        // SAFETY: the caller guarantees that all places are valid.
        unsafe {
            match combiner.is_function() {
                true => fold_by_function(self, combiner, operands, into, bytes),
                false => combiner.fold(operands, into, bytes),
            }
        }
    }

    /// The part of `bytes` bytes that a member computes: from and to, in bytes; whole elements.
    fn part(&self, combiner: &Combiner, bytes: usize, rank: Rank) -> (usize, usize) {
        part(combiner.element_bytes() * PART_ALIGN_BYTES, bytes, (rank, self.team.len()))
    }

    /// Reduce-scatter, of blocks of `bytes` bytes.
    ///
    /// # Safety
    /// As [`broadcast`](Direct::broadcast).
    #[track_caller]
    pub unsafe fn reduce_scatter(
        &self,
        combiner: &Combiner,
        source: &Places<'_>,
        target: &Places<'_>,
        bytes: usize,
    ) {
        let (me, n) = (self.team.my_rank(), self.team.len());
        let is_small = bytes * n <= PAGE_BYTES;
        // SAFETY: the caller guarantees that all places are valid.
        unsafe {
            let mut operands = Operands::with_capacity(n);
            if is_small {
                self.show_all(source(me), bytes * n, |_, shown| operands.push(shown.add(me * bytes)));
            } else {
                self.sync();
                operands.extend((0..n).map(|rank| source(rank).add(me * bytes).cast_const()));
            }
            self.fold(combiner, &operands, target(me), bytes);
        }
        if !is_small {
            self.sync();
        }
    }

    /// Scan, of `bytes` bytes.
    ///
    /// # Safety
    /// As [`broadcast`](Direct::broadcast); source and target are not the same if it is exclusive and larger
    /// than 1 KiB.
    #[track_caller]
    pub unsafe fn scan(
        &self,
        combiner: &Combiner,
        is_inclusive: bool,
        source: &Places<'_>,
        target: &Places<'_>,
        bytes: usize,
    ) {
        let (me, n) = (self.team.my_rank(), self.team.len());
        if bytes <= PAGE_BYTES {
            let number = self.begin();
            let operands = if is_inclusive { me + 1 } else { me };
            // SAFETY: the caller guarantees that all places are valid.
            unsafe {
                self.show(number, source(me), bytes);
                let shown: Operands = (0..operands).map(|rank| self.look(rank, number, bytes)).collect();
                if !shown.is_empty() {
                    self.fold(combiner, &shown, target(me), bytes);
                }
            }
            return;
        }
        self.sync();
        let (start, end) = self.part(combiner, bytes, me);
        let first = usize::from(!is_inclusive);
        if start < end && first < n {
            // SAFETY: the caller guarantees all places; the parts of the members do not overlap.
            unsafe {
                copy::copy(target(first).add(start), source(0).add(start), end - start);
                for rank in first + 1..n {
                    let (before, own) = (target(rank - 1).add(start), source(rank - first).add(start));
                    self.combine(combiner, before, own, target(rank).add(start), end - start);
                }
            }
        }
        self.sync();
    }
}

/// The part of `bytes` bytes that member `rank` of `n` computes: from and to, in multiples of a unit.
fn part(unit_bytes: usize, bytes: usize, (rank, n): (Rank, usize)) -> (usize, usize) {
    let units = bytes.div_ceil(unit_bytes);
    let bound = |rank: Rank| (units * rank / n * unit_bytes).min(bytes);
    (bound(rank), bound(rank + 1))
}

// The functions that wait take their arguments one by one, so that a caller that does not wait prepares
// nothing.

/// Looks before a wait that makes progress between its looks: most waits for a member are short.
const FIRST_LOOKS: u32 = 32;

fn comes_soon(world: &Teams, has_come: impl Fn() -> bool) -> bool {
    (0..FIRST_LOOKS.min(world.spins_before_wait())).any(|_| {
        spin_once();
        has_come()
    })
}

#[cold]
#[inline(never)]
#[track_caller]
fn await_staging_slot(world: &Teams, team: &TeamCore, operation: &'static str, (rank, number): (Rank, u64)) {
    let slot = team.staging_slot(rank, number);
    // SAFETY: the stamp lies in the member's block and is accessed as an atomic only.
    let stamp = unsafe { &*slot.stamp };
    callback::forbid(world, operation);
    if comes_soon(world, || stamp.has_reached(number)) {
        return;
    }
    let direct = Direct { world, team, operation };
    world.wait(direct.awaits(rank), direct.watching((rank, number), || stamp.has_reached(number)));
}

#[cold]
#[inline(never)]
#[track_caller]
fn wait_begun(world: &Teams, team: &TeamCore, operation: &'static str, (rank, number): (Rank, u64)) {
    let (direct, begun) = (Direct { world, team, operation }, team.begun(rank));
    callback::forbid(world, operation);
    if comes_soon(world, || begun.has_reached(number)) {
        return;
    }
    world.wait(direct.awaits(rank), direct.watching((rank, number), || begun.has_reached(number)));
}

/// Folds by a user's function. Operations of the same team that it begins are found even if they need not
/// wait: the staging slots that it reads could be written again.
///
/// # Safety
/// As [`Combiner::fold`].
#[cold]
#[inline(never)]
#[track_caller]
unsafe fn fold_by_function(
    direct: &Direct<'_>,
    combiner: &Combiner,
    operands: &[*const u8],
    into: *mut u8,
    bytes: usize,
) {
    let &Direct { world, team, operation } = direct;
    let number = team.sequence.load(Ordering::Relaxed);
    callback::run(world, Callback::Function(operation), || {
        // SAFETY: the caller guarantees that the operands and `into` are valid.
        unsafe { combiner.fold(operands, into, bytes) };
        if team.sequence.load(Ordering::Relaxed) != number {
            callback::forbid(world, "another operation of the team");
        }
    });
}

/// Waits until the staging slot of operation `number` is free: all members have begun operation `least`.
#[cold]
#[inline(never)]
#[track_caller]
fn make_room_slowly(world: &Teams, team: &TeamCore, operation: &'static str, (number, least): (u64, u64)) {
    let mut by_all = number;
    for rank in 0..team.len() {
        let (direct, begun) = (Direct { world, team, operation }, team.begun(rank));
        if !begun.has_reached(least) {
            callback::forbid(world, operation);
            let ready = direct.watching((rank, least), || begun.has_reached(least));
            world.wait_with(direct.awaits(rank), Some(team.begun_waiters(rank)), ready);
        }
        by_all = by_all.min(team.begun(rank).number());
    }
    team.begun_by_all.store(by_all, Ordering::Relaxed);
}
