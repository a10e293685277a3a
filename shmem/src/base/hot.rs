//! The data that the fast path reads: one plain struct for each context, written before the program gets the
//! context.
//!
//! Invariant: the *limit* is the number of PEs of the context. It is 0 before the library is initialised and
//! after it has ended, and while operations are counted or checked. The table has an entry for each PE below
//! the limit, which is null where operations on the PE go over the network. All cases that the fast path does
//! not handle go to the one cold function of the operation.

use crate::base::abi::{Ctx, c_int};
use pelago::World;
use pelago::binding::Far;
use std::ptr::null;

/// The addresses of the symmetric heap, for the PEs of one context.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Hot {
    /// The path to PEs that are not mapped.
    pub(crate) far: Far,
    /// PEs that the fast path may look up in `parts`.
    pub(crate) limit: usize,
    /// The start of this PE's heap.
    pub(crate) start: usize,
    /// Its size in bytes. A value that the fast path reads or writes may begin at the last byte: enough bytes
    /// after the heap are never allocated.
    pub(crate) bytes: usize,
    /// Where the heap of each PE of the context is mapped, or null.
    pub(crate) parts: *const *mut u8,
    /// `bytes` if plain loads from this PE's heap see all data that arrive there; 0 if a check, or progress
    /// on the network, is necessary before a load.
    pub(crate) looked_at_bytes: usize,
}

// SAFETY: the fields are addresses of memory that is made to be shared, and of a table that is never changed.
unsafe impl Sync for Hot {}

impl Hot {
    /// The data of the default context.
    #[inline(always)]
    pub(crate) fn of_default() -> &'static Hot {
        let hot: *const Hot = &raw const HOT;
        // SAFETY: only initialisation and finalisation write it, and they run concurrently with no other
        // call.
        unsafe { &*hot }
    }

    /// No PE can be accessed.
    pub(crate) const CLOSED: Hot =
        Hot { limit: 0, start: 0, bytes: 0, parts: null(), looked_at_bytes: 0, far: Far::NONE };
}

/// The default context. `symmetric/statics/sections.rs` knows the section: where this library is linked into
/// the program, the section does not count as the program's variables.
#[unsafe(link_section = "pelago_state")]
pub(crate) static mut HOT: Hot = Hot::CLOSED;

/// The data that queries, fence and quiet of the default context read, and messages about mistakes.
#[repr(C)]
pub(crate) struct Job {
    /// Two words that are 0 while fence and quiet only have to order stores.
    pub(crate) outstanding: [*const u32; 2],
    /// The world, while a barrier of the library is just a barrier of the world; else null.
    pub(crate) plain: *const World,
    /// The number of this PE; negative while the library is not initialised.
    pub(crate) me: c_int,
    /// The number of PEs.
    pub(crate) n_pes: c_int,
    /// The world; null while the library is not initialised.
    pub(crate) world: *const World,
}

// SAFETY: the fields are numbers, addresses of words that are only accessed as atomics, and a world, which is
// `Sync`.
unsafe impl Sync for Job {}

impl Job {
    /// The state without a job.
    pub(crate) const NONE: Job =
        Job { outstanding: [&1, &1], plain: null(), me: -1, n_pes: -1, world: null() };

    /// The world, if the library is initialised. It is never inlined: generic code calls it, and a static
    /// that code of other crates may name is addressed through a table, which costs quiet and fence an
    /// instruction.
    #[inline(never)]
    pub(crate) fn world() -> Option<&'static World> {
        // SAFETY: only initialisation and finalisation write it, and they run concurrently with no other
        // call; in between the world lives.
        unsafe { JOB.world.as_ref() }
    }
}

/// The job of this process.
#[unsafe(link_section = "pelago_state")]
pub(crate) static mut JOB: Job = Job::NONE;

/// The data of `SHMEM_CTX_INVALID`.
static INVALID: Hot = Hot::CLOSED;

impl Ctx {
    /// The data that the fast path reads for a context.
    ///
    /// # Safety
    /// The handle is one that this library has handed out.
    #[inline(always)]
    pub(crate) unsafe fn hot(self) -> &'static Hot {
        match self {
            Ctx::DEFAULT => Hot::of_default(),
            Ctx::INVALID => &INVALID,
            // SAFETY: other handles are addresses of contexts, which begin with this struct and are never
            // freed.
            Ctx(address) => unsafe { &*(address as *const Hot) },
        }
    }
}

/// Translates a symmetric address of this PE to another PE, if the fast path may access it: the start of that
/// PE's heap, the offset in it, and the context's data; else the calling function returns `$cold`, or `$far`
/// if PE and address are valid and the PE is not mapped.
macro_rules! reach {
    ($ctx:expr, $address:expr, $pe:expr, else $cold:expr) => {
        reach!($ctx, $address, $pe, else $cold, far $cold)
    };
    ($ctx:expr, $address:expr, $pe:expr, else $cold:expr, far $far:expr) => {{
        let hot = $ctx.hot();
        let (offset, pe) = (($address as usize).wrapping_sub(hot.start), $pe as u32 as usize);
        // Three separate tests: joined to one, they cost more instructions.
        if pe >= hot.limit {
            return $cold;
        }
        if offset >= hot.bytes {
            return $cold;
        }
        // The table has an entry for each PE below the limit.
        let part = *hot.parts.add(pe);
        if part.is_null() {
            return $far;
        }
        (part, offset, hot)
    }};
}

/// The place of an object of at most 16 bytes on another PE.
macro_rules! word {
    ($ctx:expr, $address:expr, $pe:expr, else $cold:expr, far $far:expr) => {{
        let (part, offset, _) = reach!($ctx, $address, $pe, else $cold, far $far);
        part.add(offset)
    }};
}

/// The place of a run of `$count` elements of `$each` bytes (a constant): the start of the PE's heap, and the
/// offset in it.
macro_rules! run {
    ($ctx:expr, $address:expr, $count:expr, $each:expr, $pe:expr, else $cold:expr) => {
        run!($ctx, $address, $count, $each, $pe, else $cold, far $cold)
    };
    ($ctx:expr, $address:expr, $count:expr, $each:expr, $pe:expr, else $cold:expr, far $far:expr) => {{
        let (part, offset, hot) = reach!($ctx, $address, $pe, else $cold, far $far);
        if $count > (hot.bytes - offset) / $each {
            return $cold;
        }
        (part, offset)
    }};
}

/// The place of a word that is aligned as atomics require: the start of the PE's heap, and the word.
macro_rules! target {
    ($ctx:expr, $address:expr, $pe:expr, $type:ty, else $cold:expr) => {{
        let (part, offset, _) = reach!($ctx, $address, $pe, else $cold);
        if !($address as usize).is_multiple_of(align_of::<$type>()) {
            return $cold;
        }
        (part, part.add(offset).cast::<$type>())
    }};
}

pub(crate) use {reach, run, target, word};
