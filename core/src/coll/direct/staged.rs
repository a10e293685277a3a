//! Direct forms for private memory, of any size: each member copies a piece of its data to a *large staging
//! slot* in shared memory, from which the others take what they need; then the next piece follows.
//!
//! Two copies cost less here than one system call for each message that a schedule would have: a piece stays
//! in the caches, and reductions read all operands in place.
//!
//! Invariant: as for small operations (see [`Direct`]), with two slots: a piece has a number, its slot is
//! written again two numbers later, and only when all members have begun the number between; before a member
//! begins a number it is done with all earlier pieces. All members use equally many numbers for an operation,
//! also if they find that their sizes differ.
//!
//! Source: R. L. Graham, G. Shipman, "MPI Support for Multi-core Architectures: Optimized Shared Memory
//! Collectives", 2008, for collective operations through shared memory.

use super::{Direct, part};
use crate::coll::reduction::Combiner;
use crate::coll::schedule::Rank;
use crate::coll::symmetric_region::Bases;
use crate::coll::team::{Team, TeamCore};
use crate::coll::teams::Teams;
use crate::job::callback;
use crate::memory::segment::AddressTable;
use pelago_fabric::copy;
use pelago_fabric::shm::flags::Stamp;
use pelago_fabric::sync::{AtomicU64, Ordering};
use std::cell::Cell;

/// Large staging slots of a member, used in turn.
const SLOTS: u64 = 2;
/// Bytes of a piece, for which a slot has room.
pub const PIECE_BYTES: usize = 64 << 10;
/// Bytes of a piece of a broadcast: the others copy one while the root copies the next.
const BROADCAST_BYTES: usize = 16 << 10;
/// Where the slots begin. Before them are their heads, a cache line each.
const SLOTS_OFFSET: usize = 4096;
const LINE_BYTES: usize = 64;
/// Bytes of the slots of a member, with their heads.
pub const SLOTS_BYTES: usize = SLOTS_OFFSET + SLOTS as usize * PIECE_BYTES;

/// The large staging slots of all members, by rank. All zero bytes are a valid start.
pub struct LargeSlots(AddressTable);

/// The head of a slot.
#[repr(C)]
struct Head {
    /// The number of the piece; written last.
    stamp: Stamp,
    /// The size that its member has called the operation with, in bytes.
    bytes: AtomicU64,
}

/// A member that has called an operation with another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherSize {
    pub rank: Rank,
    /// Its size in bytes.
    pub bytes: usize,
}

/// An operation over large staging slots.
pub struct Staged<'a> {
    direct: Direct<'a>,
    slots: &'a LargeSlots,
    /// The size of this member's call.
    bytes: usize,
    other: Cell<Option<OtherSize>>,
}

impl LargeSlots {
    /// The slots that lie there in the regions of the members.
    pub fn new(world: &Teams, team: &TeamCore, bases: &Bases) -> LargeSlots {
        LargeSlots(world.memory.parts((0..team.len()).map(|rank| (team.pe(rank), bases.at(rank)))))
    }

    fn place(&self, rank: Rank, number: u64) -> (&Head, *mut u8) {
        let (start, turn) = (self.0.0[rank], (number % SLOTS) as usize);
        // SAFETY: the slots of each member are mapped there, a head lies at this offset, made of atomics for
        // which all zero bytes are valid.
        unsafe {
            let head = &*start.add(turn * LINE_BYTES).cast::<Head>();
            (head, start.add(SLOTS_OFFSET + turn * PIECE_BYTES))
        }
    }
}

const _: () = assert!(size_of::<Head>() <= LINE_BYTES && SLOTS as usize * LINE_BYTES <= SLOTS_OFFSET);

impl<'a> Staged<'a> {
    /// An operation of a team whose members map each other, on blocks of `bytes` bytes.
    pub fn new(
        (world, team): (&'a Teams, &'a Team),
        slots: &'a LargeSlots,
        operation: &'static str,
        bytes: usize,
    ) -> Staged<'a> {
        let direct = Direct { world, team, operation };
        Staged { direct, slots, bytes, other: Cell::new(None) }
    }

    /// A member with another size, if this one has seen one.
    pub fn other_size(&self) -> Option<OtherSize> {
        self.other.get()
    }

    fn rank_and_len(&self) -> (Rank, usize) {
        (self.direct.team.my_rank(), self.direct.team.len())
    }

    /// Begins a piece: its number.
    fn begin(&self) -> u64 {
        let number = self.direct.begin();
        self.direct.tell_begun();
        number
    }

    /// This member's slot for a piece that it has begun, once it is free.
    #[track_caller]
    fn room(&self, number: u64) -> *mut u8 {
        let Direct { world, team, operation } = self.direct;
        let least = (number + 1).saturating_sub(SLOTS);
        if team.begun_by_all.load(Ordering::Relaxed) < least {
            super::make_room_slowly(world, team, operation, (number, least));
        }
        self.slots.place(team.my_rank(), number).1
    }

    /// Shows what this member has copied to its slot.
    fn show(&self, number: u64) {
        let (head, _) = self.slots.place(self.direct.team.my_rank(), number);
        head.bytes.store(self.bytes as u64, Ordering::Relaxed);
        head.stamp.raise(number);
        self.direct.wake();
    }

    /// Waits until a member has shown a piece: where it lies.
    #[track_caller]
    fn look(&self, rank: Rank, number: u64) -> *const u8 {
        let (head, data) = self.slots.place(rank, number);
        if !head.stamp.has_reached(number) {
            let Direct { world, operation, .. } = self.direct;
            callback::forbid(world, operation);
            let ready = || head.stamp.has_reached(number);
            world.wait(self.direct.awaits(rank), self.direct.watching((rank, number), ready));
        }
        let bytes = head.bytes.load(Ordering::Relaxed) as usize;
        if bytes != self.bytes && self.other.get().is_none() {
            self.other.set(Some(OtherSize { rank, bytes }));
        }
        data
    }

    /// Notes that all members have shown a piece, and so have begun it.
    fn note_all(&self, number: u64) {
        self.direct.team.begun_by_all.store(number, Ordering::Relaxed);
    }

    /// Broadcast from `source` at the root to `target`.
    ///
    /// # Safety
    /// The source is valid at the root for reads, the target for writes, of as many bytes as the operation
    /// has; the same holds for all functions that follow.
    #[track_caller]
    pub unsafe fn broadcast(&self, root: Rank, source: *const u8, target: *mut u8) {
        let (me, _) = self.rank_and_len();
        // The others go by the root's size, so that all use as many numbers.
        let (mut all, mut start) = (self.bytes, 0);
        while start < all {
            let number = self.begin();
            // SAFETY: the caller guarantees source and target; the slot has room for a piece.
            unsafe {
                if me == root {
                    let len = BROADCAST_BYTES.min(all - start);
                    copy::copy(self.room(number), source.add(start), len);
                    self.show(number);
                    if source != target {
                        copy::copy(target.add(start), source.add(start), len);
                    }
                } else {
                    let shown = self.look(root, number);
                    all = self.other.get().map_or(all, |other| other.bytes);
                    let len = BROADCAST_BYTES.min(self.bytes.saturating_sub(start));
                    copy::copy(target.wrapping_add(start), shown, len);
                }
            }
            start += BROADCAST_BYTES;
        }
    }

    /// Gather of blocks that each fit into a piece.
    ///
    /// # Safety
    /// As [`broadcast`](Staged::broadcast), the target at the root.
    #[track_caller]
    pub unsafe fn gather(&self, root: Rank, source: *const u8, target: *mut u8) {
        let ((me, n), bytes, number) = (self.rank_and_len(), self.bytes, self.begin());
        // SAFETY: the caller guarantees source and target; the slot has room for a piece.
        unsafe {
            if me != root {
                copy::copy(self.room(number), source, bytes);
                return self.show(number);
            }
            for rank in (0..n).map(|i| (me + i) % n) {
                let block = if rank == me { source } else { self.look(rank, number) };
                let place = target.add(rank * bytes);
                if block != place {
                    copy::copy(place, block, bytes);
                }
            }
        }
        self.note_all(number);
    }

    /// Scatter of blocks that fit into a piece together.
    ///
    /// # Safety
    /// As [`broadcast`](Staged::broadcast), the source at the root.
    #[track_caller]
    pub unsafe fn scatter(&self, root: Rank, source: *const u8, target: *mut u8) {
        let ((me, n), bytes, number) = (self.rank_and_len(), self.bytes, self.begin());
        // SAFETY: the caller guarantees source and target; the slot has room for a piece.
        unsafe {
            let block = if me == root {
                let slot = self.room(number);
                for rank in (0..n).filter(|&rank| rank != me) {
                    copy::copy(slot.add(rank * bytes), source.add(rank * bytes), bytes);
                }
                self.show(number);
                source
            } else {
                self.look(root, number)
            };
            let block = block.add(me * bytes);
            if block != target {
                copy::copy(target, block, bytes);
            }
        }
    }

    /// All-gather.
    ///
    /// # Safety
    /// As [`broadcast`](Staged::broadcast).
    #[track_caller]
    pub unsafe fn all_gather(&self, source: *const u8, target: *mut u8) {
        let ((me, n), bytes) = (self.rank_and_len(), self.bytes);
        for start in (0..bytes).step_by(PIECE_BYTES) {
            let len = PIECE_BYTES.min(bytes - start);
            let number = self.begin();
            let slot = self.room(number);
            // SAFETY: the caller guarantees source and target; the slot has room for a piece.
            unsafe {
                let (from, own) = (source.add(start), target.add(me * bytes + start));
                copy::copy(slot, from, len);
                self.show(number);
                if from != own {
                    copy::copy(own, from, len);
                }
                for rank in (1..n).map(|i| (me + i) % n) {
                    let shown = self.look(rank, number);
                    if self.other.get().is_none() {
                        copy::copy(target.add(rank * bytes + start), shown, len);
                    }
                }
            }
            self.note_all(number);
            if self.other.get().is_some() {
                return;
            }
        }
    }

    /// All-to-all of any number of members for which [`share`] is not 0.
    ///
    /// # Safety
    /// As [`broadcast`](Staged::broadcast).
    #[track_caller]
    pub unsafe fn all_to_all(&self, source: *const u8, target: *mut u8) {
        let ((me, n), bytes) = (self.rank_and_len(), self.bytes);
        let most = share(n, 1);
        for start in (0..bytes).step_by(most) {
            let len = most.min(bytes - start);
            let number = self.begin();
            let slot = self.room(number);
            // SAFETY: the caller guarantees source and target; the slot has room for a part for each.
            unsafe {
                for rank in (0..n).filter(|&rank| rank != me) {
                    copy::copy(slot.add(rank * len), source.add(rank * bytes + start), len);
                }
                self.show(number);
                let (from, own) = (source.add(me * bytes + start), target.add(me * bytes + start));
                if from != own {
                    copy::copy(own, from, len);
                }
                for rank in (1..n).map(|i| (me + i) % n) {
                    let shown = self.look(rank, number);
                    if self.other.get().is_none() {
                        copy::copy(target.add(rank * bytes + start), shown.add(me * len), len);
                    }
                }
            }
            self.note_all(number);
            if self.other.get().is_some() {
                return;
            }
        }
    }

    /// Reduce to `root`, or to all if `None`.
    ///
    /// # Safety
    /// As [`broadcast`](Staged::broadcast), the target where there is a result. Source and target are apart
    /// or the same.
    #[track_caller]
    pub unsafe fn reduce(&self, combiner: &Combiner, root: Option<Rank>, source: *const u8, target: *mut u8) {
        let ((me, n), bytes) = (self.rank_and_len(), self.bytes);
        let most = share(1, combiner.element_bytes());
        let has_result = root.is_none_or(|root| root == me);
        for start in (0..bytes).step_by(most) {
            let len = most.min(bytes - start);
            let part = |rank| part(unit_bytes(combiner.element_bytes()), len, (rank, n));
            let (from, to) = part(me);
            // SAFETY: the caller guarantees source and target; the slots have room for a piece.
            unsafe {
                let source = source.add(start);
                let number = self.begin();
                let slot = self.room(number);
                copy::copy(slot, source, from);
                copy::copy(slot.add(to), source.add(to), len - to);
                self.show(number);
                let operand =
                    |rank| if rank == me { source } else { self.look(rank, number) }.wrapping_add(from);
                let operands: Vec<_> = (0..n).map(operand).collect();
                self.note_all(number);
                if self.other.get().is_some() {
                    return;
                }
                // The next number says that this member is done with the operands, so it begins after the
                // fold. All have begun this piece, so the next slot is free.
                let (_, slot) = self.slots.place(me, number + 1);
                if from < to {
                    self.direct.fold(combiner, &operands, slot, to - from);
                }
                let number = self.begin();
                self.show(number);
                if !has_result {
                    continue;
                }
                for rank in (0..n).map(|i| (me + i) % n) {
                    let (from, to) = part(rank);
                    copy::copy(target.add(start + from), self.look(rank, number), to - from);
                }
                self.note_all(number);
            }
        }
    }

    /// Reduce-scatter.
    ///
    /// # Safety
    /// As [`broadcast`](Staged::broadcast). The target and the source are apart, or begin at the same place.
    #[track_caller]
    pub unsafe fn reduce_scatter(&self, combiner: &Combiner, source: *const u8, target: *mut u8) {
        let ((me, n), bytes) = (self.rank_and_len(), self.bytes);
        let most = share(n, combiner.element_bytes());
        for start in (0..bytes).step_by(most) {
            let len = most.min(bytes - start);
            let number = self.begin();
            let slot = self.room(number);
            // SAFETY: the caller guarantees source and target; the slot has room for a part for each.
            unsafe {
                let block = |rank| source.add(rank * bytes + start);
                for rank in (0..n).filter(|&rank| rank != me) {
                    copy::copy(slot.add(rank * len), block(rank), len);
                }
                self.show(number);
                let operand =
                    |rank| if rank == me { block(me) } else { self.look(rank, number).add(me * len) };
                let operands: Vec<_> = (0..n).map(operand).collect();
                self.note_all(number);
                if self.other.get().is_some() {
                    return;
                }
                self.direct.fold(combiner, &operands, target.add(start), len);
            }
        }
    }
}

/// The most bytes of whole elements for each of `n` members for which a piece has room; 0 if an element is
/// too large.
pub fn share(n: usize, element_bytes: usize) -> usize {
    let unit = unit_bytes(element_bytes);
    let share = PIECE_BYTES / n;
    if share >= unit { share / unit * unit } else { share / element_bytes * element_bytes }
}

/// Elements that belong together, in bytes: about a cache line.
fn unit_bytes(element_bytes: usize) -> usize {
    element_bytes * (LINE_BYTES / element_bytes).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_elements_and_cover_all() {
        for (element_bytes, count, n) in
            [(1, 5, 3), (8, 8192, 16), (12, 999, 7), (16, 4, 2), (24, 1, 5), (100, 77, 4), (4096, 16, 3)]
        {
            let (bytes, mut end) = (element_bytes * count, 0);
            for rank in 0..n {
                let (from, to) = part(unit_bytes(element_bytes), bytes, (rank, n));
                assert_eq!(from, end);
                assert!(
                    from <= to && from.is_multiple_of(element_bytes),
                    "{element_bytes} x {count}, {rank}"
                );
                end = to;
            }
            assert_eq!(end, bytes);
        }
    }

    #[test]
    fn shares_fit_into_a_piece() {
        for (n, element_bytes) in [(1, 1), (2, 8), (16, 8), (3, 12), (7, 100), (1000, 8), (64, 4096)] {
            let share = share(n, element_bytes);
            assert!(share.is_multiple_of(element_bytes) && share * n <= PIECE_BYTES);
            assert_eq!(share == 0, element_bytes * n > PIECE_BYTES, "{n} of {element_bytes}");
        }
        assert_eq!(share(1, PIECE_BYTES + 1), 0);
    }
}
