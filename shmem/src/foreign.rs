//! The functions that `foreign.c` calls: `long double` by address, as Rust cannot take it by value, and the
//! level of profiling, as Rust cannot define variadic functions.
//!
//! Only that file can refer to these symbols: the version script and objcopy hide them (`xtask/src/install`).

use crate::base::abi::{Ctx, LongDouble, c_int};
use crate::rma;
use pelago::sync::{AtomicI32, Ordering};

/// The last level of `shmem_pcontrol`; at first profiling is on, at its default detail.
static LEVEL: AtomicI32 = AtomicI32::new(1);

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pelago_shmem_p(dest: *mut LongDouble, value: *const LongDouble, pe: c_int) {
    // SAFETY: the caller of the C function keeps the promises that the standard requires; `value` is a local
    // of `foreign.c`.
    unsafe { rma::p("shmem_longdouble_p", Ctx::DEFAULT, dest, *value, pe) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pelago_shmem_ctx_p(
    ctx: Ctx,
    dest: *mut LongDouble,
    value: *const LongDouble,
    pe: c_int,
) {
    // SAFETY: as in `pelago_shmem_p`, by the caller of the C function.
    unsafe { rma::p("shmem_ctx_longdouble_p", ctx, dest, *value, pe) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pelago_shmem_g(value: *mut LongDouble, source: *const LongDouble, pe: c_int) {
    // SAFETY: as in `pelago_shmem_p`, by the caller of the C function.
    unsafe { value.write(rma::g("shmem_longdouble_g", Ctx::DEFAULT, source, pe)) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pelago_shmem_ctx_g(
    ctx: Ctx,
    value: *mut LongDouble,
    source: *const LongDouble,
    pe: c_int,
) {
    // SAFETY: as in `pelago_shmem_p`, by the caller of the C function.
    unsafe { value.write(rma::g("shmem_ctx_longdouble_g", ctx, source, pe)) }
}

/// `shmem_pcontrol`: 0 and less is off, 1 is on, 2 is on and writes out the data so far; tools define higher
/// levels.
/// This library collects no profile; it stores the level.
#[unsafe(no_mangle)]
extern "C-unwind" fn pelago_shmem_pcontrol(level: c_int) {
    LEVEL.store(level, Ordering::Relaxed);
}
