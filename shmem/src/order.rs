//! Memory ordering (OpenSHMEM 1.6, 9.12): fence and quiet.

use crate::base::abi::{Ctx, c_int, size_t};
use crate::base::fault::{Call, Mark, fail};
use crate::base::hot::JOB;
use crate::handles::context;
use crate::library;
use pelago::sync::{Ordering, fence as atomic_fence};

/// `shmem_fence`: "ordering of delivery of operations on symmetric data objects", of one context.
#[inline(always)]
pub(crate) unsafe fn fence(call: Call, ctx: Ctx) {
    match ctx {
        Ctx::DEFAULT => {
            // SYNC POINT put-order: as in `World::fence`; this load of the outstanding flags is the same as
            // there.
            atomic_fence(Ordering::Release);
            if is_needed() {
                fence_of(call, ctx);
            }
        }
        _ => fence_of(call, ctx),
    }
}

/// `shmem_quiet`: "completion of all operations on symmetric data objects issued by the calling PE", of one
/// context.
#[inline(always)]
pub(crate) unsafe fn quiet(call: Call, ctx: Ctx) {
    match ctx {
        Ctx::DEFAULT => {
            // SYNC POINT put-order: as in `World::quiet`; this load of the outstanding flags is the same as
            // there.
            atomic_fence(Ordering::SeqCst);
            if is_needed() {
                complete(call, ctx);
            }
        }
        _ => complete(call, ctx),
    }
}

/// Whether fence and quiet of the default context must do more than order stores.
#[inline(always)]
fn is_needed() -> bool {
    // SAFETY: they point to words that are only accessed as atomics.
    let outstanding = unsafe { JOB.outstanding.map(|word| pelago::binding::copy::load(word)) };
    // SYNC POINT outstanding: acquires the completions that another thread saw when it found everything
    // quiet.
    atomic_fence(Ordering::Acquire);
    outstanding[0] | outstanding[1] != 0
}

/// `shmem_pe_quiet`: quiet for the operations on the listed PEs; "a full quiet is legal".
#[inline(always)]
pub(crate) unsafe fn pe_quiet(call: Call, ctx: Ctx, target_pes: *const c_int, npes: size_t) {
    if npes == 0 {
        return;
    }
    let library = library::of(call);
    if target_pes.is_null() {
        fail(call, "target_pes is null: give the numbers of the PEs");
    }
    if ctx != Ctx::INVALID {
        // SAFETY: the caller names `npes` PEs.
        let targets = unsafe { std::slice::from_raw_parts(target_pes, npes) };
        for &pe in targets {
            library.pe(call, ctx, pe);
        }
    }
    // SAFETY: the caller's promises are the same.
    unsafe { quiet(call, ctx) };
}

/// "If ctx has the value SHMEM_CTX_INVALID, no operation is performed."
#[cold]
#[inline(never)]
fn fence_of(call: Call, ctx: Ctx) {
    if library::has_ended() {
        return;
    }
    let world = library::of(call).world;
    let _mark = Mark::set(call);
    if ctx != Ctx::INVALID {
        match context::stream(call, ctx) {
            Some(stream) => stream.fence(),
            None => world.fence(),
        }
    }
}

/// A quiet by the slow path.
#[cold]
#[inline(never)]
fn complete(call: Call, ctx: Ctx) {
    if library::has_ended() {
        return;
    }
    library::of(call).complete(call, ctx);
}
