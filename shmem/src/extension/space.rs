//! Spaces: symmetric memory of the members of one team. Source of the request: OpenSHMEM specification, issue
//! 195 and pull request 567.
//!
//! A space is a block of the symmetric heap of each member, at the same offset, and its blocks lie inside it;
//! so their addresses are symmetric like any other, and every operation accepts them. Other PEs do not take
//! part in these calls, and may use the same offsets for other blocks.
//!
//! Invariant: the members make the same calls, so a block lies at the same offset in the space of each; every
//! call compares the arguments of the members, in the exchange that is its barrier.

use crate::base::abi::{Ctx, SpaceHandle, TeamHandle, c_int, c_void, size_t};
use crate::base::fault::{Call, Mark, OrFail, fail};
use crate::base::hot::Hot;
use crate::collective::meet;
use crate::handles::Handles;
use crate::handles::team::Team;
use crate::library;
use crate::symmetric::blocks::ANY_ALIGN_BYTES;
use crate::team;
use pelago::binding::{GRANULE_BYTES, HEADER_BYTES, Heap};
use pelago::sync::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// The spaces of this PE.
static SPACES: Handles<Space> = Handles::new();

/// A member's part of a space.
struct Space {
    team: &'static Team,
    handle: TeamHandle,
    /// Its offset in the heap.
    offset: usize,
    bytes: usize,
    /// The blocks in use, by offsets in the heap.
    blocks: Mutex<Heap>,
}

/// The spaces by their start offsets in the heap.
static STARTS: RwLock<BTreeMap<usize, SpaceHandle>> = RwLock::new(BTreeMap::new());

/// The calls that members compare.
const CALLS: [Call; 6] = [
    "shmemx_space_create",
    "shmemx_space_destroy",
    "shmemx_space_malloc",
    "shmemx_space_calloc",
    "shmemx_space_align",
    "shmemx_space_free",
];

/// A member's description of its call.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Notice {
    call: Call,
    /// The offset of the space in the heap, or a possible offset; 0 if there is none.
    space: usize,
    /// A power of two.
    align_bytes: usize,
    /// The requested size, or the offset of the block in the heap.
    number: usize,
}

/// Removes all spaces from the tables. Called before the library is closed.
pub(crate) fn forget_all() {
    STARTS.write().unwrap_or_else(PoisonError::into_inner).clear();
    SPACES.clear();
}

/// `shmemx_space_create`: collective; 0, or nonzero and `SHMEMX_SPACE_INVALID` for an invalid team or if
/// there is not enough memory.
pub(crate) unsafe fn create(call: Call, team: TeamHandle, bytes: size_t, space: *mut SpaceHandle) -> c_int {
    let library = library::of(call);
    if space.is_null() {
        fail(call, "space is null: give the place of a handle");
    }
    // SAFETY: the caller's pointer is valid for one handle.
    unsafe { space.write(SpaceHandle::INVALID) };
    let Some(members) = team::find_if_valid(call, "team", team) else { return 1 };
    // One block may fill it.
    let size = bytes.max(1).saturating_add(GRANULE_BYTES - 1) / GRANULE_BYTES * GRANULE_BYTES;
    let size = size.saturating_add(HEADER_BYTES);
    library.complete(call, Ctx::DEFAULT);
    let place = library.hold_at_all((size, GRANULE_BYTES), |place| {
        let notice = Notice { call, space: place.unwrap_or(0), align_bytes: 1, number: bytes };
        let told = exchange(call, members, notice, |theirs| Notice { space: theirs.space, ..notice });
        told.into_iter().map(|theirs| (theirs.space != 0).then_some(theirs.space)).collect()
    });
    let Some(offset) = place else { return 1 };
    members.spaces.fetch_add(1, Ordering::Relaxed);
    let blocks = Mutex::new(Heap::new(offset, offset + size));
    let made = Space { team: members, handle: team, offset, bytes: size, blocks };
    let Some(handle) = SPACES.insert(Hot::CLOSED, made) else {
        fail(call, "there are too many spaces; destroy those that are not needed any more")
    };
    STARTS.write().unwrap_or_else(PoisonError::into_inner).insert(offset, SpaceHandle(handle));
    // SAFETY: the caller's pointer is valid for one handle.
    unsafe { space.write(SpaceHandle(handle)) };
    0
}

/// `shmemx_space_destroy`: collective; it begins with a barrier of the team, and frees the whole space. No
/// effect for `SHMEMX_SPACE_INVALID`.
pub(crate) unsafe fn destroy(call: Call, space: SpaceHandle) {
    if library::has_ended() || space == SpaceHandle::INVALID {
        return;
    }
    let library = library::of(call);
    find(call, space).agree(call, 1, 0);
    let space = SPACES.remove(space.0).unwrap_or_else(|why| stale(call, space, why));
    library.heap.forget_locks(space.offset..space.offset + space.bytes);
    for offset in space.blocks().offsets() {
        library.forget_block(call, library.address(offset) as usize);
    }
    space.team.spaces.fetch_sub(1, Ordering::Relaxed);
    STARTS.write().unwrap_or_else(PoisonError::into_inner).remove(&space.offset);
    library.blocks().own.free(space.offset);
}

/// `shmemx_space_malloc`: collective, a barrier of the team; null on all members if there is not enough
/// memory, or if the size is 0.
pub(crate) unsafe fn malloc(call: Call, space: SpaceHandle, size: size_t) -> *mut c_void {
    find(call, space).alloc(call, size, ANY_ALIGN_BYTES)
}

/// `shmemx_space_calloc`: the block is zero at every member.
pub(crate) unsafe fn calloc(call: Call, space: SpaceHandle, count: size_t, size: size_t) -> *mut c_void {
    let space = find(call, space);
    // If the product overflows, the allocation fails.
    let bytes = count.saturating_mul(size);
    let block = space.alloc(call, bytes, ANY_ALIGN_BYTES);
    if !block.is_null() {
        // SAFETY: the block has `bytes` bytes, and no member uses it before the barrier below.
        unsafe { block.cast::<u8>().write_bytes(0, bytes) };
        meet(call, &space.team.team);
    }
    block
}

/// `shmemx_space_align`: as `shmem_align`.
pub(crate) unsafe fn align(call: Call, space: SpaceHandle, alignment: size_t, size: size_t) -> *mut c_void {
    let space = find(call, space);
    if !alignment.is_power_of_two() {
        fail(call, format_args!("alignment is {alignment}: give a power of two that is a multiple of 8"));
    }
    space.alloc(call, size, alignment)
}

/// `shmemx_space_free`: no effect for null; else it begins with a barrier of the team.
pub(crate) unsafe fn free(call: Call, space: SpaceHandle, ptr: *mut c_void) {
    if library::has_ended() || ptr.is_null() {
        return;
    }
    let (library, handle, space) = (library::of(call), space, find(call, space));
    let offset = library.offset(ptr);
    let Some(bytes) = space.blocks().block_bytes(offset) else {
        fail(
            call,
            format_args!(
                "ptr is {ptr:p}, where no block of the space {:#x} begins: it was freed, or not allocated by \
                 shmemx_space_malloc and its like in this space",
                handle.0
            ),
        )
    };
    space.agree(call, 1, offset);
    library.heap.forget_locks(offset..offset + bytes);
    library.forget_block(call, ptr as usize);
    space.blocks().free(offset);
}

/// `shmemx_space_available`: bytes in free blocks of the space, their headers included.
pub(crate) unsafe fn available(call: Call, space: SpaceHandle) -> size_t {
    find(call, space).blocks().free_bytes()
}

/// `shmemx_space_team`: the team that the space was created on.
pub(crate) unsafe fn team(call: Call, space: SpaceHandle) -> TeamHandle {
    find(call, space).handle
}

/// The team of the space that contains an offset of this PE's heap, if there is one.
pub(crate) fn team_around(offset: usize) -> Option<&'static pelago::Team<'static>> {
    let starts = STARTS.read().unwrap_or_else(PoisonError::into_inner);
    let (_, handle) = starts.range(..=offset).next_back()?;
    let space = SPACES.get(handle.0).ok()?;
    (offset < space.offset + space.bytes).then_some(&space.team.team)
}

fn find(call: Call, space: SpaceHandle) -> &'static Space {
    library::of(call);
    if space == SpaceHandle::INVALID {
        fail(call, "space is SHMEMX_SPACE_INVALID");
    }
    SPACES.get(space.0).unwrap_or_else(|why| stale(call, space, why))
}

fn stale(call: Call, space: SpaceHandle, why: crate::handles::Stale) -> ! {
    fail(call, format_args!("space is {:#x}, a space that {why}", space.0))
}

impl Space {
    fn blocks(&self) -> MutexGuard<'_, Heap> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that all members make the same call. A barrier of the team.
    fn agree(&self, call: Call, align_bytes: usize, number: usize) {
        library::of(call).complete(call, Ctx::DEFAULT);
        let notice = Notice { call, space: self.offset, align_bytes, number };
        exchange(call, self.team, notice, |_| notice);
    }

    fn alloc(&self, call: Call, bytes: usize, align_bytes: usize) -> *mut c_void {
        let library = library::of(call);
        if bytes == 0 {
            return null_mut();
        }
        self.agree(call, align_bytes, bytes);
        let has_sense = align_bytes <= library.align_bytes;
        let block = has_sense.then(|| self.blocks().alloc(bytes, align_bytes)).flatten();
        let Some(offset) = block else { return null_mut() };
        let block = library.address(offset);
        library.note_block(call, block as usize, bytes);
        block
    }
}

/// The descriptions of all members, by rank. Ends the job unless each is equal to what `expected` makes of
/// it. Collective on the team; it synchronises the members.
fn exchange(call: Call, team: &Team, notice: Notice, expected: impl Fn(Notice) -> Notice) -> Vec<Notice> {
    let _mark = Mark::set(call);
    let told = team.team.exchange_words("space", notice.words()).or_fail(call);
    let member = |(rank, words): (usize, &[u64; 2])| {
        let theirs = Notice::from_words(*words);
        if let Some(theirs) = theirs.filter(|&theirs| theirs == expected(theirs)) {
            return theirs;
        }
        let theirs = theirs.map_or_else(|| "something else".to_owned(), |theirs| theirs.to_string());
        let (me, pe) = (team.team.my_rank(), team.team.pe(rank));
        fail(
            call,
            format_args!(
                "PE {pe} calls {theirs}, and PE {} {notice}. All members of the team must make the same \
                 calls with the same arguments in the same order",
                team.team.pe(me)
            ),
        )
    };
    told.iter().enumerate().map(member).collect()
}

impl Notice {
    fn words(self) -> [u64; 2] {
        let call = CALLS.iter().position(|&name| name == self.call).expect("every call is in the list") + 1;
        let space = self.space / GRANULE_BYTES;
        let first = call as u64 | u64::from(self.align_bytes.ilog2()) << 8 | (space as u64) << 16;
        [first, self.number as u64]
    }

    fn from_words([first, number]: [u64; 2]) -> Option<Notice> {
        let call = CALLS.get((first as usize & 0xff).checked_sub(1)?)?;
        let align_bytes = 1usize.checked_shl((first >> 8) as u32 & 0xff)?;
        let space = (first >> 16) as usize * GRANULE_BYTES;
        Some(Notice { call, space, align_bytes, number: number as usize })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Notice { call, space, align_bytes, number } = *self;
        match call {
            "shmemx_space_create" => write!(f, "{call} of {number} bytes"),
            "shmemx_space_destroy" => write!(f, "{call} of the space at heap offset {space}"),
            "shmemx_space_free" => write!(f, "{call} of the block at heap offset {number}"),
            _ => write!(
                f,
                "{call} of {number} bytes, aligned to {align_bytes}, in the space at heap offset {space}"
            ),
        }
    }
}
