//! The layout of a team's block in the pool of each member.
//!
//! ```text
//! | begun, waiters | meeting | staging slots | kinds | started | agreements | pages of the staging slots |
//! | exchange | slots of arrays | staging buffers |
//! ```
//! The first seven are for direct operations between members that map each other: all of the team, or those
//! of one node of it. The next two are for schedules over whatever carries puts. Slots are there in jobs
//! that synchronise on arrays only: those of pairs of PEs belong to no team, see `pairs`. Staging buffers
//! are there in jobs with a network only: see `staging`. The kinds tell agreements from users' operations,
//! as `started` does, the number of schedules that the member has started, and `agreements`, the number of
//! agreements that it has begun in a team whose members do not all map each other. All zero bytes are a
//! valid start. A slot is a synchronisation word with a mailbox:
//!
//! ```text
//! | word: 8 | announced place: 8 | mailbox: 240, or the length of the announced place |
//! ```

pub mod pairs;

use super::schedule::MAILBOX_BYTES;
use super::{staging, sync_memory};
use crate::Pe;
use crate::coll::agreement_record::AGREEMENT_WORDS;
use crate::coll::symmetric_region::Bases;
use crate::coll::team::{BlockKind, TeamCore};
use crate::coll::teams::Teams;
use crate::memory::segment::Memory;
use pelago_fabric::CORRUPT_REMEDY;
use pelago_fabric::shm::flags::{Meeting, Stamp};
use pelago_fabric::sync::{AtomicU32, Ordering};

/// How a block is aligned.
pub const ALIGN_BYTES: usize = 4096;
/// Staging slots of a member, used in turn.
pub const STAGING_SLOTS: usize = 32;
/// Pages of a member, used in turn, for data that do not fit into a staging slot.
pub const STAGING_PAGES: usize = 8;
/// Bytes of data that a staging slot itself holds, beside its stamp.
pub const STAGING_SLOT_BYTES: usize = 56;
/// Bytes of data that a page holds.
pub const PAGE_BYTES: usize = 1024;

const WAITERS_OFFSET: usize = size_of::<Stamp>();
const MEETING_OFFSET: usize = 64;
const STAGING_OFFSET: usize = 256;
const KINDS_OFFSET: usize = STAGING_OFFSET + STAGING_SLOTS * 64;
const STARTED_OFFSET: usize = KINDS_OFFSET + STAGING_SLOTS * size_of::<Stamp>();
const AGREEMENTS_OFFSET: usize = STARTED_OFFSET + size_of::<Stamp>();
const PAGES_OFFSET: usize = 3072;
const EXCHANGE_OFFSET: usize = PAGES_OFFSET + STAGING_PAGES * PAGE_BYTES;
/// Bytes of a block that has the parts for direct operations only.
pub const DIRECT_BYTES: usize = EXCHANGE_OFFSET;
/// Bytes that a member sends in an exchange: an agreement record, and how many calls it has begun in two
/// levels.
pub const SAID_BYTES: usize = AGREEMENT_WORDS * 8 + 8;
const SLOT_BYTES: usize = 16 + MAILBOX_BYTES;
/// Members whose agreement records an area of an exchange has room for at a time. In builds for tests, small
/// teams exchange their records in parts.
const AREA_RANKS: usize = if cfg!(debug_assertions) { 12 } else { 1024 };

const _: () = assert!(WAITERS_OFFSET + size_of::<AtomicU32>() <= MEETING_OFFSET);
const _: () = assert!(MEETING_OFFSET + size_of::<Meeting>() <= STAGING_OFFSET);
const _: () = assert!(PAGES_OFFSET.is_multiple_of(1024) && STAGING_SLOTS.is_multiple_of(STAGING_PAGES));
const _: () = assert!(AGREEMENTS_OFFSET + size_of::<Stamp>() <= PAGES_OFFSET);

/// Size of a block for a team of `n`, with staging buffers or without.
pub fn bytes((kind, has_staging): BlockKind, n: usize) -> usize {
    staging_offset(n, sync_memory::slots(kind, n)) + if has_staging { staging::bytes(n) } else { 0 }
}

/// Where the staging buffers lie.
pub fn staging_offset(n: usize, slots: usize) -> usize {
    match slots {
        0 => end_of_exchange(area_ranks(n, false)).next_multiple_of(64),
        _ => (slots_offset(n) + slots * SLOT_BYTES).next_multiple_of(64),
    }
}

/// Members that an area of an exchange has room for, in a block for a team of `n`: all, if the team
/// synchronises on arrays, whose slots grow with the team as well.
pub fn area_ranks(n: usize, has_arrays: bool) -> usize {
    if has_arrays { n } else { n.min(AREA_RANKS) }
}

/// Where the agreement records of an exchange arrive, in the order of the ranks, in bytes from the block's
/// start, if an area has room for `ranks` members. Two areas are used in turn: no member begins the exchange
/// after the next one before all members have begun the next one, and so have read this one.
pub fn exchange_offset(ranks: usize, exchange: u64) -> usize {
    EXCHANGE_OFFSET + (exchange % 2) as usize * ranks * SAID_BYTES
}

/// Where this PE's own agreement record of an exchange lies until it is over.
pub fn own_notice_offset(ranks: usize, exchange: u64) -> usize {
    EXCHANGE_OFFSET + (2 * ranks + (exchange % 2) as usize) * SAID_BYTES
}

fn end_of_exchange(ranks: usize) -> usize {
    EXCHANGE_OFFSET + (2 * ranks + 2) * SAID_BYTES
}

fn slots_offset(n: usize) -> usize {
    end_of_exchange(area_ranks(n, true)).next_multiple_of(256)
}

/// Where the word of a slot lies.
pub fn word_offset(n: usize, index: usize) -> usize {
    slots_offset(n) + index * SLOT_BYTES
}

/// Where the place that the signal of a slot announces lies, and its length, which is stored in place of the
/// mailbox's data. The two words follow each other.
pub fn announced_offsets(n: usize, index: usize) -> [usize; 2] {
    [word_offset(n, index) + 8, mailbox_offset(n, index)]
}

/// Where the mailbox of a slot lies.
pub fn mailbox_offset(n: usize, index: usize) -> usize {
    word_offset(n, index) + 16
}

/// A staging slot: the place where a member shows its data to the others in a direct operation.
pub struct StagingSlot {
    /// The operation in which it is shown; written last.
    pub stamp: *const Stamp,
    /// Up to 56 bytes.
    pub inline: *mut u8,
    /// Up to 1 KiB.
    pub page: *mut u8,
}

impl Teams {
    /// The offsets of the members' blocks, which are `bytes` long, as received from the members. Ends the
    /// job if a block lies outside its member's pool.
    pub fn checked_blocks(&self, told: impl Iterator<Item = (Pe, u64)>, bytes: usize) -> Bases {
        Bases::of(told.map(|(pe, offset)| self.checked_block(pe, offset as usize, bytes)).collect())
    }

    pub fn checked_block(&self, pe: Pe, offset_bytes: usize, bytes: usize) -> usize {
        let (start, end) = (self.memory.heap_bytes(), self.memory.region_bytes());
        let fits = offset_bytes >= start && end.checked_sub(offset_bytes).is_some_and(|room| bytes <= room);
        if !fits || !offset_bytes.is_multiple_of(ALIGN_BYTES) {
            let me = self.my_pe();
            self.fail(&format!(
                "PE {me}: PE {pe} has announced a block of {bytes} bytes of a team or space at byte \
                 {offset_bytes} of its memory, whose pool is {start} to {end}. {CORRUPT_REMEDY}"
            ));
        }
        offset_bytes
    }
}

impl TeamCore {
    /// The direct operation that a member has begun last, by its own word.
    #[inline(always)]
    pub fn begun(&self, rank: usize) -> &Stamp {
        // SAFETY: the block of each member is mapped there (direct operations are only for such teams), and
        // begins with this word, which is accessed as an atomic only.
        unsafe { &*self.starts.0[rank].cast::<Stamp>() }
    }

    /// The same of this PE.
    #[inline(always)]
    pub fn own_begun(&self) -> &Stamp {
        // SAFETY: the own block is mapped there, and begins with this word.
        unsafe { &*self.own.0.cast::<Stamp>() }
    }

    /// How many threads sleep until a member has begun an operation in which it wakes nobody else, or has
    /// started a schedule.
    pub fn begun_waiters(&self, rank: usize) -> &AtomicU32 {
        // SAFETY: the block of each member is mapped there, and has this word, accessed as an atomic only.
        unsafe { &*self.starts.0[rank].add(WAITERS_OFFSET).cast::<AtomicU32>() }
    }

    /// The same of this PE.
    #[inline(always)]
    pub fn own_begun_waiters(&self) -> &AtomicU32 {
        // SAFETY: the own block is mapped there, and has this word, accessed as an atomic only.
        unsafe { &*self.own.0.add(WAITERS_OFFSET).cast::<AtomicU32>() }
    }

    /// The last agreement of a member among the direct operations whose numbers are equal to this one modulo
    /// [`STAGING_SLOTS`].
    pub fn agreed(&self, rank: usize, operation: u64) -> &Stamp {
        let offset = KINDS_OFFSET + operation as usize % STAGING_SLOTS * size_of::<Stamp>();
        // SAFETY: the block of each member is mapped there, and has this word, accessed as an atomic only.
        unsafe { &*self.starts.0[rank].add(offset).cast::<Stamp>() }
    }

    /// How many schedules a member has started.
    pub fn started(&self, rank: usize) -> &Stamp {
        // SAFETY: the block of each member is mapped there, and has this word, accessed as an atomic only.
        unsafe { &*self.starts.0[rank].add(STARTED_OFFSET).cast::<Stamp>() }
    }

    /// How many agreements of a larger team, of which this one is the part on a node, a member has begun; 0
    /// if there is none.
    pub fn agreements(&self, rank: usize) -> &Stamp {
        // SAFETY: the block of each member is mapped there, and has this word, accessed as an atomic only.
        unsafe { &*self.starts.0[rank].add(AGREEMENTS_OFFSET).cast::<Stamp>() }
    }

    /// Says that this PE begins an agreement of this team, whose members do not all map each other.
    pub fn agrees(&self, memory: &Memory, number: u64) {
        // SAFETY: this PE's block is mapped there, and has this word, accessed as an atomic only.
        unsafe { &*self.own_start(memory).add(AGREEMENTS_OFFSET).cast::<Stamp>() }.raise(number);
        self.agreed_last.store(number, Ordering::Relaxed);
    }

    /// Where the members of an oversubscribed team meet: in the first one's block.
    pub fn meeting(&self) -> &Meeting {
        // SAFETY: the first member's block is mapped there, a meeting lies at this offset, made of atomics
        // for which all zero bytes are valid.
        unsafe { &*self.starts.0[0].add(MEETING_OFFSET).cast::<Meeting>() }
    }

    /// The staging slot of a member for a direct operation.
    #[inline(always)]
    pub fn staging_slot(&self, rank: usize, operation: u64) -> StagingSlot {
        // SAFETY: the block of each member is mapped there.
        unsafe { staging_slot_in(self.starts.0[rank], operation) }
    }

    /// This PE's staging slot for a direct operation.
    #[inline(always)]
    pub fn own_staging_slot(&self, operation: u64) -> StagingSlot {
        // SAFETY: this PE's block is mapped there.
        unsafe { staging_slot_in(self.own.0, operation) }
    }
}

/// The staging slot for a direct operation in the block that begins there.
///
/// # Safety
/// A member's block begins there.
#[inline(always)]
unsafe fn staging_slot_in(start: *mut u8, operation: u64) -> StagingSlot {
    let turn = operation as usize % STAGING_SLOTS;
    // SAFETY: the staging slots and pages of a block lie at these offsets.
    unsafe {
        let stamp = start.add(STAGING_OFFSET + turn * 64);
        let page = start.add(PAGES_OFFSET + turn % STAGING_PAGES * PAGE_BYTES);
        StagingSlot { stamp: stamp.cast(), inline: stamp.add(8), page }
    }
}
