//! Collective operations on teams (OpenSHMEM 1.6, 9.10): barriers, and operations that move data. Reductions
//! and scans are in `reduce.rs`, operations over active sets in `active_set.rs`.
//!
//! Each family has one function for each size of elements; the functions for the types jump to it.

pub(crate) mod active_set;
pub(crate) mod reduce;

use crate::base::abi::{Ctx, TeamHandle, c_int, c_void, ptrdiff_t, size_t};
use crate::base::fault::{Call, Mark, OrFail, fail};
use crate::base::hot::JOB;
use crate::library::{self, Library};
use crate::symmetric::spans::{Operand, Stored, Unit};
use crate::team;
use pelago::{Collective, Team};

/// `shmem_barrier_all`: "completion of all previously issued memory stores and remote memory updates issued
/// via the default context", by all PEs.
#[inline(always)]
pub(crate) unsafe fn barrier_all(call: Call) {
    // SAFETY: only initialisation and finalisation write it, and they run concurrently with no other call.
    match unsafe { JOB.plain.as_ref() } {
        Some(world) => world.barrier(),
        None => barrier_slowly(call),
    }
}

#[cold]
#[inline(never)]
fn barrier_slowly(call: Call) {
    library::of(call).barrier(call);
}

/// `shmem_sync_all`: as `shmem_team_sync` on the world.
#[inline(always)]
pub(crate) unsafe fn sync_all(call: Call) {
    meet(call, &library::of(call).teams.world.team);
}

/// `shmem_team_sync`: stores are visible; no operation is completed.
#[inline(always)]
pub(crate) unsafe fn team_sync(call: Call, team: TeamHandle) -> c_int {
    meet(call, &team::find(call, team).team);
    0
}

/// Synchronises the members of a team.
#[inline(always)]
pub(crate) fn meet(call: Call, team: &Team<'_>) {
    if library::has_ended() {
        // Exit handlers of the program may come here after the exit of the process has finalised.
    } else if team.is_plain() {
        team.sync();
    } else {
        meet_slowly(call, team);
    }
}

#[cold]
#[inline(never)]
fn meet_slowly(call: Call, team: &Team<'_>) {
    let _mark = Mark::set(call);
    team.sync();
}

/// `shmem_<type>_broadcast`: "copies nelems data elements from the source on the root PE to dest on all PEs
/// of the team", the root among them.
#[inline(always)]
pub(crate) unsafe fn broadcast<T: Stored>(
    call: Call,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    nelems: size_t,
    pe_root: c_int,
) -> c_int {
    if broadcast_word(team, dest, source, nelems, pe_root) {
        return 0;
    }
    broadcast_units::<T::Unit>(team, dest.cast(), source.cast(), nelems, pe_root, call)
}

/// `shmem_broadcastmem`.
#[inline(always)]
pub(crate) unsafe fn broadcastmem(
    call: Call,
    team: TeamHandle,
    dest: *mut c_void,
    source: *const c_void,
    nelems: size_t,
    pe_root: c_int,
) -> c_int {
    broadcast_units::<u8>(team, dest.cast(), source.cast(), nelems, pe_root, call)
}

/// The fast path for one word in the heap, to all PEs. Returns whether it was taken.
#[inline(always)]
fn broadcast_word<T>(
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe_root: c_int,
) -> bool {
    if team != TeamHandle::WORLD || size_of::<T>() > WORD_BYTES || nelems != WORD_BYTES / size_of::<T>() {
        return false;
    }
    let world = || library::get().map(|library| &library.teams.world.team);
    broadcast_word_in(world, dest.cast(), source.cast(), pe_root)
}

/// The same for a team, whose handle is looked up last: this order takes the fewest instructions.
#[inline(always)]
fn broadcast_word_in(
    team: impl FnOnce() -> Option<&'static Team<'static>>,
    dest: *mut u64,
    source: *const u64,
    pe_root: c_int,
) -> bool {
    // SAFETY: the default context always has this entry.
    let hot = unsafe { Ctx::DEFAULT.hot() };
    let root = pe_root as u32 as usize;
    // The tests are written in the form that takes the fewest instructions.
    if !(dest as usize | source as usize).is_multiple_of(WORD_BYTES) {
        return false;
    }
    let [dest_at, source_at] = [dest as usize, source as usize].map(|at| at.wrapping_sub(hot.start));
    if dest_at.max(source_at) >= hot.bytes {
        return false;
    }
    let Some(team) = team() else { return false };
    if !team.is_plain() || root >= team.n_pes() {
        return false;
    }
    // SAFETY: both are aligned words of the heap; the tests above have checked this.
    unsafe { team.broadcast_word(root, dest, source) };
    true
}

const WORD_BYTES: usize = size_of::<u64>();

#[inline(never)]
fn broadcast_units<U: Unit>(
    team: TeamHandle,
    dest: *mut U,
    source: *const U,
    nelems: usize,
    pe_root: c_int,
    call: Call,
) -> c_int {
    let library = library::of(call);
    let team = &team::find(call, team).team;
    let is_word = nelems.wrapping_mul(size_of::<U>()) == WORD_BYTES && nelems <= WORD_BYTES;
    if is_word && broadcast_word_in(|| Some(team), dest.cast(), source.cast(), pe_root) {
        return 0;
    }
    let root = root(call, pe_root, team);
    let (target, source) = (
        library.span(call, Operand::Dest, dest, nelems),
        library.span(call, Operand::Source, source, nelems),
    );
    team.broadcast(root, target, source).or_fail(call);
    0
}

/// The root of a call, given as a PE number in the team.
#[inline(always)]
pub(crate) fn root(call: Call, pe_root: c_int, team: &Team<'_>) -> usize {
    let root = pe_root as u32 as usize;
    if root >= team.n_pes() {
        wrong_root(call, pe_root, team.n_pes());
    }
    root
}

#[cold]
#[inline(never)]
fn wrong_root(call: Call, pe_root: c_int, n: usize) -> ! {
    fail(call, format_args!("PE_root is {pe_root}, but there are {n} PEs, numbered 0 to {}", n - 1))
}

/// Declares a family of one form, for types and for bytes.
macro_rules! families {
    ($($(#[$doc:meta])* $typed:ident $bytes:ident $units:ident($($argument:ident: $type:ty),*);)+) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) unsafe fn $typed<T: Stored>(
            call: Call,
            team: TeamHandle,
            dest: *mut T,
            source: *const T,
            $($argument: $type,)*
            nelems: size_t,
        ) -> c_int {
            let team = team::find(call, team);
            $units::<T::Unit>(&team.team, dest.cast(), source.cast(), $($argument,)* nelems, call)
        }

        /// The same for bytes.
        #[inline(always)]
        pub(crate) unsafe fn $bytes(
            call: Call,
            team: TeamHandle,
            dest: *mut c_void,
            source: *const c_void,
            $($argument: $type,)*
            nelems: size_t,
        ) -> c_int {
            let team = team::find(call, team);
            $units::<u8>(&team.team, dest.cast(), source.cast(), $($argument,)* nelems, call)
        }
    )+};
}

families! {
    /// `shmem_<type>_fcollect`: blocks of the same length, concatenated in the order of the team.
    fcollect fcollectmem fcollect_units();
    /// `shmem_<type>_collect`: "nelems may vary from PE to PE".
    collect collectmem collect_units();
    /// `shmem_<type>_alltoall`: block j of PE i goes to block i of PE j.
    alltoall alltoallmem alltoall_units();
    /// `shmem_<type>_alltoalls`: the same with strides, "in elements", for target and source.
    alltoalls alltoallsmem alltoalls_units(dst: ptrdiff_t, sst: ptrdiff_t);
}

#[inline(never)]
pub(crate) fn fcollect_units<U: Unit>(
    team: &Team<'_>,
    dest: *mut U,
    source: *const U,
    nelems: usize,
    call: Call,
) -> c_int {
    let library = library::of(call);
    let target = library.span(call, Operand::Dest, dest, product(nelems, team.n_pes()));
    team.all_gather(target, library.span(call, Operand::Source, source, nelems)).or_fail(call);
    0
}

/// First the members exchange their lengths, which are often equal.
#[inline(never)]
pub(crate) fn collect_units<U: Unit>(
    team: &Team<'_>,
    dest: *mut U,
    source: *const U,
    nelems: usize,
    call: Call,
) -> c_int {
    let library = library::of(call);
    let told = team.exchange_words("collect", [nelems as u64, size_of::<U>() as u64]).or_fail(call);
    if let Some(rank) = told.iter().position(|theirs| theirs[1] != size_of::<U>() as u64) {
        let (pe, theirs, mine) = (team.pe(rank), told[rank][1], size_of::<U>());
        fail(call, format_args!("PE {pe} calls it with elements of {theirs} bytes, this PE of {mine} bytes"));
    }
    let counts: Vec<usize> = told.iter().map(|words| words[0] as usize).collect();
    let all = counts.iter().fold(0, |sum: usize, &count| sum.saturating_add(count));
    let target = library.span(call, Operand::Dest, dest, all);
    let source = library.span(call, Operand::Source, source, nelems);
    match counts.iter().all(|&count| count == nelems) {
        true => team.all_gather(target, source),
        false => team.all_gather_varying(target, source, &counts),
    }
    .or_fail(call);
    0
}

#[inline(never)]
pub(crate) fn alltoall_units<U: Unit>(
    team: &Team<'_>,
    dest: *mut U,
    source: *const U,
    nelems: usize,
    call: Call,
) -> c_int {
    let library = library::of(call);
    let all = product(nelems, team.n_pes());
    let target = library.span(call, Operand::Dest, dest, all);
    team.all_to_all(target, library.span(call, Operand::Source, source, all)).or_fail(call);
    0
}

#[inline(never)]
pub(crate) fn alltoalls_units<U: Unit>(
    team: &Team<'_>,
    dest: *mut U,
    source: *const U,
    dst: ptrdiff_t,
    sst: ptrdiff_t,
    nelems: usize,
    call: Call,
) -> c_int {
    let library = library::of(call);
    let stride = |name: &str, stride: ptrdiff_t| match usize::try_from(stride) {
        Ok(stride) if stride >= 1 => stride,
        _ => fail(call, format_args!("{name} is {stride}: a stride is at least 1 element")),
    };
    let (dst, sst) = (stride("dst", dst), stride("sst", sst));
    let all = product(nelems, team.n_pes());
    let extent = |stride: usize| if all == 0 { 0 } else { product(all - 1, stride).saturating_add(1) };
    let target = library.span(call, Operand::Dest, dest, extent(dst));
    let source = library.span(call, Operand::Source, source, extent(sst));
    team.all_to_all_strided(target, source, nelems, (dst, sst)).or_fail(call);
    0
}

/// The product, or if it is too large, a number of elements that no array has.
fn product(count: usize, times: usize) -> usize {
    count.saturating_mul(times)
}

impl Library {
    /// A broadcast that does not write the root's own target.
    pub(crate) fn broadcast_to_others<U: Unit>(
        &'static self,
        call: Call,
        team: &Team<'static>,
        (dest, source): (*mut U, *const U),
        nelems: usize,
        root: usize,
    ) {
        let source = self.span(call, Operand::Source, source, nelems);
        let (is_root, is_plain) = (team.my_rank() == root, team.is_plain());
        // The direct forms write only the target at the root, which is its source here.
        let target = if is_root && is_plain { source } else { self.span(call, Operand::Dest, dest, nelems) };
        match is_plain {
            true => team.broadcast(root, target, source),
            false => team.broadcast_to_others(root, target, source),
        }
        .or_fail(call);
    }
}
