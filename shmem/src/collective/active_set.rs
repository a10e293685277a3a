//! Active sets (OpenSHMEM 1.6, 9.10, deprecated): collective operations of the PEs `start`, `start + 2^log`,
//! and so on; only these PEs make the call.
//!
//! Invariant: an active set has a team, which its members create at their first operation on the set, and
//! which they keep. So the program's `pSync` and `pWrk` are not needed: nothing is written to them.

use super::{alltoall_units, alltoalls_units, collect_units, fcollect_units, meet};
use crate::base::abi::{Ctx, SYNC_VALUE, c_int, c_long, ptrdiff_t, size_t};
use crate::base::fault::{Call, OrFail, fail};
use crate::base::say::say;
use crate::library::teams::Triplet;
use crate::library::{self, Library};
use crate::symmetric::spans::Unit;
use pelago::binding;
use pelago::sync::Ordering;
use pelago::{Pe, Team};
use std::sync::Arc;

/// The number of words of `pSync` for all operations, as in `include/shmem.h`.
const SYNC_SIZE: usize = 8;

/// The team of an active set that this PE is in.
pub(crate) fn find(call: Call, set: Triplet, psync: *const c_long) -> Arc<Team<'static>> {
    let library = library::of(call);
    if binding::compares_calls(library.world) {
        library.check_psync(call, psync);
    }
    let known = library.teams.active_sets.teams().get(&set).cloned();
    known.unwrap_or_else(|| library.found(call, set))
}

/// The same for a reduction; `None` if this PE is not in the set. The standard leaves this case undefined;
/// other libraries let such a PE continue, and programs rely on it. With `PELAGO_CHECK` the first such call
/// prints a message.
pub(crate) fn find_for_reduction(
    call: Call,
    set: Triplet,
    psync: *const c_long,
) -> Option<Arc<Team<'static>>> {
    let library = library::of(call);
    let known = library.teams.active_sets.teams().contains_key(&set);
    if known || library.pes(call, set).contains(&library.me()) {
        return Some(find(call, set, psync));
    }
    let is_told = &library.teams.active_sets.is_told;
    if library.checks.is_some() && !is_told.swap(true, Ordering::Relaxed) {
        let (me, (start, log_stride, size)) = (library.me(), set);
        say(&format!(
            "PE {me}: {call}: PE {me} is not in the active set of PE_start {start}, logPE_stride \
             {log_stride}, PE_size {size}, so the call does nothing: only the members make it"
        ));
    }
    None
}

/// A number of elements that a call passes as an `int`.
pub(crate) fn count(call: Call, what: &str, count: c_int) -> usize {
    usize::try_from(count).unwrap_or_else(|_| fail(call, format_args!("{what} is {count}: give 0 or more")))
}

impl Library {
    /// Creates the team, collectively over its members. Other threads may create other teams at the same
    /// time.
    #[cold]
    fn found(&'static self, call: Call, set: Triplet) -> Arc<Team<'static>> {
        let pes = self.members(call, set);
        let (start, log_stride, size) = set;
        let key = (start as u64) << 36 | (log_stride as u64) << 30 | size as u64;
        let team = Arc::new(self.teams.active_sets.foundry.found(&pes, key).or_fail(call));
        self.teams.active_sets.teams().insert(set, Arc::clone(&team));
        team
    }

    /// The PEs of an active set.
    fn pes(&'static self, call: Call, (start, log_stride, size): Triplet) -> Vec<Pe> {
        let n_pes = self.world.n_pes();
        let pes = || {
            let (start, size) = (usize::try_from(start).ok()?, usize::try_from(size).ok()?);
            let stride = 1usize.checked_shl(u32::try_from(log_stride).ok()?)?;
            let last = start.checked_add(size.checked_sub(1)?.checked_mul(stride)?)?;
            (last < n_pes).then(|| (0..size).map(|i| start + i * stride).collect::<Vec<Pe>>())
        };
        pes().unwrap_or_else(|| {
            fail(
                call,
                format_args!(
                    "PE_start {start}, logPE_stride {log_stride}, PE_size {size} name no set of PEs: give at \
                     least one PE, of 0 to {}",
                    n_pes - 1
                ),
            )
        })
    }

    /// The PEs of an active set that includes this PE.
    fn members(&'static self, call: Call, set: Triplet) -> Vec<Pe> {
        let (me, pes, (start, log_stride, size)) = (self.me(), self.pes(call, set), set);
        if !pes.contains(&me) {
            fail(
                call,
                format_args!(
                    "PE {me} is not in the active set of PE_start {start}, logPE_stride {log_stride}, \
                     PE_size {size}: only its members make the call"
                ),
            );
        }
        pes
    }

    /// Checks that `pSync` has the contents that the standard requires.
    #[cold]
    fn check_psync(&'static self, call: Call, psync: *const c_long) {
        self.locate(call, "pSync", psync as usize, SYNC_SIZE * size_of::<c_long>());
        // SAFETY: these words were found to be symmetric memory of this PE; they need no alignment there.
        let word = |i: &usize| unsafe { psync.add(*i).read_unaligned() };
        if let Some(i) = (0..SYNC_SIZE).find(|i| word(i) != SYNC_VALUE) {
            let value = word(&i);
            fail(
                call,
                format_args!(
                    "pSync[{i}] is {value}: set all elements to SHMEM_SYNC_VALUE ({SYNC_VALUE}) on all PEs \
                     before the first use"
                ),
            );
        }
    }
}

/// `shmem_barrier`: completes the operations that were issued through the default context.
pub(crate) unsafe fn barrier(
    call: Call,
    pe_start: c_int,
    log_pe_stride: c_int,
    pe_size: c_int,
    psync: *mut c_long,
) {
    let team = find(call, (pe_start, log_pe_stride, pe_size), psync);
    library::of(call).complete(call, Ctx::DEFAULT);
    meet(call, &team);
}

/// `shmem_sync`.
pub(crate) unsafe fn sync(
    call: Call,
    pe_start: c_int,
    log_pe_stride: c_int,
    pe_size: c_int,
    psync: *mut c_long,
) {
    meet(call, &find(call, (pe_start, log_pe_stride, pe_size), psync));
}

/// `shmem_broadcast<bits>`: "the data are not copied to dest on the root".
#[expect(clippy::too_many_arguments, reason = "those of the C function")]
pub(crate) unsafe fn broadcast<T: Unit>(
    call: Call,
    dest: *mut T,
    source: *const T,
    nelems: size_t,
    pe_root: c_int,
    pe_start: c_int,
    log_pe_stride: c_int,
    pe_size: c_int,
    psync: *mut c_long,
) {
    let team = find(call, (pe_start, log_pe_stride, pe_size), psync);
    let (library, root) = (library::of(call), super::root(call, pe_root, &team));
    library.broadcast_to_others(call, &team, (dest, source), nelems, root);
}

/// Declares a family that is implemented by the functions of teams.
macro_rules! families {
    ($($(#[$doc:meta])* $name:ident $units:ident($($argument:ident: $type:ty),*);)+) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "those of the C function")]
        pub(crate) unsafe fn $name<T: Unit>(
            call: Call,
            dest: *mut T,
            source: *const T,
            $($argument: $type,)*
            nelems: size_t,
            pe_start: c_int,
            log_pe_stride: c_int,
            pe_size: c_int,
            psync: *mut c_long,
        ) {
            let team = find(call, (pe_start, log_pe_stride, pe_size), psync);
            $units(&team, dest, source, $($argument,)* nelems, call);
        }
    )+};
}

families! {
    /// `shmem_collect<bits>`.
    collect collect_units();
    /// `shmem_fcollect<bits>`.
    fcollect fcollect_units();
    /// `shmem_alltoall<bits>`.
    alltoall alltoall_units();
    /// `shmem_alltoalls<bits>`.
    alltoalls alltoalls_units(dst: ptrdiff_t, sst: ptrdiff_t);
}
