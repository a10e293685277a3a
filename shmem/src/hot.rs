//! What the fast path reads: one plain struct for each context, written before the context is handed out.
//!
//! Invariant: the *limit* is the number of PEs of the context. It is 0 before the library is initialised and
//! after it has ended, and while operations are counted or checked. The table has an entry for each PE below
//! the limit, which is null where operations on the PE go over the net. What the fast path does not let pass
//! falls into its operation's one cold function, which does all the rest.

use crate::abi::{Ctx, c_int};
use pelago::World;
use pelago::binding::Far;
use std::ptr::null;

/// Where the symmetric heap lies, for the PEs of one context.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Hot {
    /// How PEs that are not mapped are reached.
    pub(crate) far: Far,
    /// PEs that the fast path may look up in `parts`.
    pub(crate) limit: usize,
    /// The start of this PE's heap.
    pub(crate) start: usize,
    /// Its size in bytes. What the fast path reads or writes as one value may begin at the last of them: so
    /// many bytes more belong to nobody.
    pub(crate) bytes: usize,
    /// Where the heap of each PE of the context is mapped, or null.
    pub(crate) parts: *const *mut u8,
    /// `bytes` if plain loads from this PE's heap see whatever arrives there; 0 if a load needs a check, or
    /// progress over the net before it.
    pub(crate) looked_at_bytes: usize,
}

// SAFETY: addresses of memory that is made for being shared, and of a table that is never changed.
unsafe impl Sync for Hot {}

impl Hot {
    /// That of the default context.
    #[inline(always)]
    pub(crate) fn of_default() -> &'static Hot {
        let hot: *const Hot = &raw const HOT;
        // SAFETY: it is written by initialisation and finalisation only, which run beside no other call.
        unsafe { &*hot }
    }

    /// Nobody is reached.
    pub(crate) const CLOSED: Hot =
        Hot { limit: 0, start: 0, bytes: 0, parts: null(), looked_at_bytes: 0, far: Far::NONE };
}

/// The default context. The section is known to `statics/sections.rs`: where this library is linked into the
/// program, it is none of the program's variables.
#[unsafe(link_section = "pelago_state")]
pub(crate) static mut HOT: Hot = Hot::CLOSED;

/// What queries and orders of the default context read.
#[repr(C)]
pub(crate) struct Job {
    /// Two words that are 0 while fence and quiet have nothing to do but to order stores.
    pub(crate) outstanding: [*const u32; 2],
    /// The world, while a barrier of the library is nothing but one of the world; else null.
    pub(crate) plain: *const World,
    /// The number of this PE; negative while the library is not initialised.
    pub(crate) me: c_int,
    /// The number of PEs.
    pub(crate) n_pes: c_int,
}

// SAFETY: numbers, the addresses of words that are accessed as atomics only, and a world, which is `Sync`.
unsafe impl Sync for Job {}

impl Job {
    /// There is no job.
    pub(crate) const NONE: Job = Job { outstanding: [&1, &1], plain: null(), me: -1, n_pes: -1 };
}

/// The job of this process.
#[unsafe(link_section = "pelago_state")]
pub(crate) static mut JOB: Job = Job::NONE;

/// The context of those who name none.
static INVALID: Hot = Hot::CLOSED;

impl Ctx {
    /// What the fast path reads for a context.
    ///
    /// # Safety
    /// The handle is one that this library has handed out.
    #[inline(always)]
    pub(crate) unsafe fn hot(self) -> &'static Hot {
        match self {
            Ctx::DEFAULT => Hot::of_default(),
            Ctx::INVALID => &INVALID,
            // SAFETY: other handles are addresses of contexts, which begin so and are never freed.
            Ctx(address) => unsafe { &*(address as *const Hot) },
        }
    }
}

/// Where a symmetric address of this PE leads on another PE, if the fast path may go there: the start of that
/// PE's heap, the offset in it, and what else the context says; else the calling function returns `$cold`, or
/// `$far` if PE and address are right and the PE is not mapped.
macro_rules! reach {
    ($ctx:expr, $address:expr, $pe:expr, else $cold:expr) => {
        reach!($ctx, $address, $pe, else $cold, far $cold)
    };
    ($ctx:expr, $address:expr, $pe:expr, else $cold:expr, far $far:expr) => {{
        let hot = $ctx.hot();
        let (offset, pe) = (($address as usize).wrapping_sub(hot.start), $pe as u32 as usize);
        // Three tests, not one of all: joined, they cost more instructions.
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

/// Where an object of at most 16 bytes lies on another PE.
macro_rules! word {
    ($ctx:expr, $address:expr, $pe:expr, else $cold:expr, far $far:expr) => {{
        let (part, offset, _) = reach!($ctx, $address, $pe, else $cold, far $far);
        part.add(offset)
    }};
}

/// Where a run of `$count` elements of `$each` bytes (a constant) lies: the start of the PE's heap, and the
/// offset in it.
macro_rules! run {
    ($ctx:expr, $address:expr, $count:expr, $each:expr, $pe:expr, else $cold:expr) => {{
        let (part, offset, hot) = reach!($ctx, $address, $pe, else $cold);
        if $count > (hot.bytes - offset) / $each {
            return $cold;
        }
        (part, offset)
    }};
}

/// Where a word lies that is aligned as atomics need it: the start of the PE's heap, and the word.
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
