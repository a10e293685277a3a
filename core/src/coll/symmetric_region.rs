//! Symmetric regions: PEs that share symmetric memory, and where it lies on each of them. The world is one,
//! of all PEs and their heaps; each space is one, of the members of a team and a block of each one's pool.
//!
//! Invariant: the members allocate in the same order and reclaim the same sets, so an array lies at the same
//! offset from each member's base. Members are named by their rank: in the world that is the number of the
//! PE.

use crate::Pe;
use crate::base::call::{Call, waiting_for};
use crate::base::element::Element;
use crate::base::error::{ErrorKind, Result};
use crate::base::locked::locked;
use crate::coll::agree::Collective;
use crate::coll::children::Tie;
use crate::coll::schedule::Rank;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use crate::memory::arrays::{ARRAYS_MAX, ArrayId, Arrays, Block};
use crate::memory::heap::Heap;
use crate::memory::members::Members;
use crate::memory::segment::{AddressTable, ArrayLayout, Memory};
use crate::memory::usage::{self, Usage};
use pelago_fabric::shm::segment::REGION_ALIGN_BYTES;
use std::sync::{Arc, Mutex, MutexGuard};

/// The largest alignment of an array, in bytes: that of the heap itself.
const ALIGN_BYTES_MAX: usize = REGION_ALIGN_BYTES;
/// The same in a space: that of the blocks of a pool that spaces are made of.
pub const SPACE_ALIGN_BYTES: usize = 4096;
/// The most arrays that can be alive at once in a space.
const SPACE_ARRAYS_MAX: usize = crate::coll::agreement_record::AGREEMENT_DROPPED_WORDS * 64;

/// Where something begins in the region of each member, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bases {
    /// At the same offset everywhere.
    Same(usize),
    /// By rank.
    Each(Arc<[usize]>),
}

impl Bases {
    /// These offsets, by rank.
    pub fn of(offsets: Vec<usize>) -> Bases {
        match offsets.iter().all(|&offset| offset == offsets[0]) {
            true => Bases::Same(offsets[0]),
            false => Bases::Each(offsets.into()),
        }
    }

    /// Where it begins at a member, in bytes from the start of its region.
    pub fn at(&self, rank: Rank) -> usize {
        match self {
            Bases::Same(offset) => *offset,
            Bases::Each(offsets) => offsets[rank],
        }
    }

    /// The addresses this number of bytes further on.
    pub fn plus(self, bytes: usize) -> Bases {
        match self {
            Bases::Same(offset) => Bases::Same(offset + bytes),
            each if bytes == 0 => each,
            Bases::Each(offsets) => Bases::Each(offsets.iter().map(|offset| offset + bytes).collect()),
        }
    }

    /// Of the first `n` members.
    pub fn first(&self, n: usize) -> Bases {
        match self {
            Bases::Same(offset) => Bases::Same(*offset),
            Bases::Each(offsets) => Bases::of(offsets[..n].to_vec()),
        }
    }
}

/// An allocation: the number of the array, its usages, and its place.
pub type Allocated<T> = ((ArrayId, Arc<Usage>), ArrayLayout<T>);

/// The right of one thread of this PE to make collective calls on a region, until it is dropped. A thread
/// that allocates keeps it until the block is taken: then the blocks of two threads lie in one order at all
/// members.
pub struct Turn<'r> {
    world: &'r Teams,
    region: &'r SymmetricRegion,
    right: Right<'r>,
}

/// The guard of a turn.
enum Right<'r> {
    OfWorld(Collective<'r>),
    OfTeam(&'r Arc<TeamCore>, MutexGuard<'r, u64>),
}

impl Turn<'_> {
    /// As [`SymmetricRegion::agree`].
    #[track_caller]
    pub fn agree(&mut self, call: Call) -> Result<()> {
        match &mut self.right {
            Right::OfWorld(collective) => collective.agree(call),
            Right::OfTeam(team, exchanges) => {
                let _waited = waiting_for(call, 0);
                team.agree(self.world, exchanges, self.region, call)
            }
        }
    }
}

/// PEs that share symmetric memory.
pub struct SymmetricRegion {
    members: Members,
    me: Rank,
    bases: Bases,
    heap: Mutex<Heap>,
    arrays: Mutex<Arrays>,
    /// The team of a space; the world's arrays are agreed on by the world.
    team: Option<Arc<TeamCore>>,
    /// Says that this PE has dropped the space, when it has.
    tie: Option<Arc<Tie>>,
}

impl SymmetricRegion {
    /// The region of all PEs and their heaps.
    pub fn world(me: Pe, n_pes: usize, heap: Heap) -> SymmetricRegion {
        SymmetricRegion {
            members: Members::all(n_pes),
            me,
            bases: Bases::Same(0),
            heap: Mutex::new(heap),
            arrays: Mutex::new(Arrays::new(ARRAYS_MAX)),
            team: None,
            tie: None,
        }
    }

    /// The region of a team and a block of each member's pool, of `bytes` bytes.
    pub fn space(team: Arc<TeamCore>, bases: Bases, bytes: usize, tie: Tie) -> SymmetricRegion {
        SymmetricRegion {
            members: team.members().clone(),
            me: team.my_rank(),
            bases,
            heap: Mutex::new(Heap::new(0, bytes)),
            arrays: Mutex::new(Arrays::new(SPACE_ARRAYS_MAX)),
            team: Some(team),
            tie: Some(Arc::new(tie)),
        }
    }

    /// The team of a space; `None` for the world.
    pub fn team(&self) -> Option<&Arc<TeamCore>> {
        self.team.as_ref()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The PE of a member.
    #[inline]
    pub fn pe(&self, rank: Rank) -> Pe {
        self.members.pe(rank)
    }

    /// The rank of a PE, if it is a member.
    pub fn rank_of(&self, pe: Pe) -> Option<Rank> {
        self.members.rank_of(pe)
    }

    /// This PE's rank.
    #[inline]
    pub fn my_rank(&self) -> Rank {
        self.me
    }

    /// The number that tells a space from others of the same team; 0 for the world.
    pub fn number(&self) -> u64 {
        self.tie.as_ref().map_or(0, |tie| tie.number())
    }

    /// Whether the members are all PEs, each with its own number.
    pub fn is_world(&self) -> bool {
        self.team.is_none()
    }

    /// Where an offset of this region lies in the region of a member, in bytes.
    pub fn region_offset(&self, rank: Rank, offset_bytes: usize) -> usize {
        self.bases.at(rank) + offset_bytes
    }

    pub fn heap(&self) -> MutexGuard<'_, Heap> {
        locked(&self.heap)
    }

    pub fn arrays(&self) -> MutexGuard<'_, Arrays> {
        locked(&self.arrays)
    }

    /// Where an array is mapped, by rank.
    pub fn parts(&self, memory: &Memory, offset_bytes: usize) -> AddressTable {
        let place = |rank| (self.pe(rank), self.region_offset(rank, offset_bytes));
        memory.parts((0..self.len()).map(place))
    }

    /// The place of an array of `len` elements at an offset of this region, whose table is `parts`.
    ///
    /// # Safety
    /// As [`Memory::place`].
    pub unsafe fn place<T: Element>(
        &self,
        memory: &Memory,
        (offset_bytes, len): (usize, usize),
        parts: &AddressTable,
    ) -> ArrayLayout<T> {
        let own = (self.pe(self.me), self.region_offset(self.me, offset_bytes));
        // SAFETY: the caller's promises are the same.
        unsafe { memory.place((offset_bytes, len), own, parts) }
    }

    /// Makes sure that all members make this call, completes the operations that they have started, and
    /// reclaims the arrays that all have dropped.
    #[track_caller]
    pub fn agree(&self, world: &Teams, call: Call) -> Result<()> {
        self.turn(world).agree(call)
    }

    /// The right to make collective calls on this region, for one thread of this PE at a time.
    ///
    /// # Panics
    /// If another thread of this PE has it, as [`Teams::collective`].
    #[track_caller]
    pub fn turn<'r>(&'r self, world: &'r Teams) -> Turn<'r> {
        let right = match &self.team {
            None => Right::OfWorld(world.collective()),
            Some(team) => Right::OfTeam(team, team.exchanging(world)),
        };
        Turn { world, region: self, right }
    }

    /// A barrier of the members.
    #[track_caller]
    pub fn barrier(&self, world: &Teams) {
        match &self.team {
            None => world.barrier(),
            Some(team) => team.barrier(world),
        }
    }

    /// Allocates an array that all members have agreed on, in the turn in which they have.
    #[track_caller]
    pub fn alloc_agreed<T: Element>(
        &self,
        world: &Teams,
        len: usize,
        align_bytes: usize,
    ) -> Result<Allocated<T>> {
        let me = world.my_pe();
        let max_bytes = if self.is_world() { ALIGN_BYTES_MAX } else { SPACE_ALIGN_BYTES };
        if !align_bytes.is_power_of_two() || align_bytes.max(align_of::<T>()) > max_bytes {
            return Err(ErrorKind::BadAlignment { me, align_bytes, max_bytes }.into());
        }
        let align_bytes = align_bytes.max(align_of::<T>());
        let bytes = world.array_bytes::<T>("alloc", len)?;
        let offset_bytes = self.heap().alloc(bytes, align_bytes);
        let offset_bytes = offset_bytes.ok_or_else(|| self.exhausted(me, "alloc", bytes))?;
        let parts = self.parts(&world.memory, offset_bytes);
        // SAFETY: the block was allocated with this size and alignment; the array borrows the region, which
        // keeps the memory and the table with the block.
        let place = unsafe { self.place(&world.memory, (offset_bytes, len), &parts) };
        let space = self.tie.clone().map(|tie| tie as Arc<dyn usage::Space>);
        let usage = Usage::new(space);
        let block = Block { offset_bytes, align_bytes, parts, usage: Arc::clone(&usage) };
        let id = self.arrays().insert(block);
        let Some(id) = id else {
            self.heap().free(offset_bytes);
            return Err(ErrorKind::TooManyArrays { me, count: self.arrays().count() }.into());
        };
        Ok(((id, usage), place))
    }

    pub fn exhausted(&self, me: Pe, operation: &'static str, asked_bytes: usize) -> crate::Error {
        let heap = self.heap();
        let (free_bytes, largest_bytes) = (heap.free_bytes(), heap.largest_free_bytes());
        let total_bytes = heap.total_bytes();
        match self.is_world() {
            true => ErrorKind::HeapExhausted {
                me,
                operation,
                asked_bytes,
                free_bytes,
                largest_bytes,
                total_bytes,
            },
            false => ErrorKind::SpaceExhausted {
                me,
                operation,
                asked_bytes,
                free_bytes,
                largest_bytes,
                total_bytes,
            },
        }
        .into()
    }
}
