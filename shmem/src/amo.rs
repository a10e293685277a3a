//! Atomic memory operations (OpenSHMEM 1.6, 9.8).
//!
//! The fast path is that of a put: where the word is mapped, one processor instruction changes it, and then
//! one load tells whether its owner sleeps until the heap changes. All other cases - static data, the
//! network, counting, mistakes - go through one of the cold functions to the runtime's atomics. These use the
//! same instructions, on this PE or on the target, so that the atomics of all PEs on a word exclude each
//! other.
//!
//! Source of the fast path: `View`'s own atomics, `pelago/src/amo.rs`.

use crate::base::abi::{Ctx, c_int};
use crate::base::fault::{Call, OrFail, output};
use crate::base::hot::{reach, target};
use crate::library;
use pelago::binding::{WAITERS_BEFORE_BYTES, copy, fence_after_update};
use pelago::{AtomicElement, AtomicInteger, AtomicOp};
use std::mem::MaybeUninit;

// Operations by their index in `AtomicOp::ALL`, so that cold functions take one argument less: their
// arguments fit into registers, and the fast path needs no stack frame.
const FETCH: usize = AtomicOp::Fetch as usize;
const ADD: usize = AtomicOp::Add as usize;

/// Operations that return the old value: the blocking form, and the non-blocking form, whose result is valid
/// after the next quiet.
macro_rules! fetching {
    ($($name:ident $nbi:ident: $bound:ident, $op:ident;)+) => {$(
        #[doc = concat!("`shmem_<type>_atomic_", stringify!($name), "`.")]
        #[inline(always)]
        pub(crate) unsafe fn $name<T: $bound>(
            call: Call,
            ctx: Ctx,
            dest: *mut T,
            value: T,
            pe: c_int,
        ) -> T {
            // SAFETY: the caller's promises are the same.
            unsafe { fetch_op::<T, { AtomicOp::$op as usize }>(call, ctx, dest, value, pe) }
        }

        #[doc = concat!("`shmem_<type>_atomic_", stringify!($nbi), "`.")]
        #[inline(always)]
        pub(crate) unsafe fn $nbi<T: $bound>(
            call: Call,
            ctx: Ctx,
            fetch: *mut T,
            dest: *mut T,
            value: T,
            pe: c_int,
        ) {
            // SAFETY: the caller's promises are the same.
            unsafe { fetch_op_nbi::<T, { AtomicOp::$op as usize }>(call, ctx, fetch, dest, value, pe) }
        }
    )+};
}

fetching! {
    swap swap_nbi: AtomicElement, Set;
    fetch_add fetch_add_nbi: AtomicInteger, Add;
    fetch_and fetch_and_nbi: AtomicInteger, And;
    fetch_or fetch_or_nbi: AtomicInteger, Or;
    fetch_xor fetch_xor_nbi: AtomicInteger, Xor;
}

/// Operations without a result.
macro_rules! updating {
    ($($name:ident: $bound:ident, $op:ident;)+) => {$(
        #[doc = concat!("`shmem_<type>_atomic_", stringify!($name), "`.")]
        #[inline(always)]
        pub(crate) unsafe fn $name<T: $bound>(call: Call, ctx: Ctx, dest: *mut T, value: T, pe: c_int) {
            // SAFETY: the caller's promises are the same.
            unsafe { update_op::<T, { AtomicOp::$op as usize }>(call, ctx, dest, value, pe) }
        }
    )+};
}

updating! {
    set: AtomicElement, Set;
    add: AtomicInteger, Add;
    and: AtomicInteger, And;
    or: AtomicInteger, Or;
    xor: AtomicInteger, Xor;
}

/// `shmem_<type>_atomic_fetch_inc`.
#[inline(always)]
pub(crate) unsafe fn fetch_inc<T: AtomicInteger>(call: Call, ctx: Ctx, dest: *mut T, pe: c_int) -> T {
    // SAFETY: the caller's promises are the same.
    unsafe { fetch_op::<T, ADD>(call, ctx, dest, T::ONE, pe) }
}

/// `shmem_<type>_atomic_fetch_inc_nbi`.
#[inline(always)]
pub(crate) unsafe fn fetch_inc_nbi<T: AtomicInteger>(
    call: Call,
    ctx: Ctx,
    fetch: *mut T,
    dest: *mut T,
    pe: c_int,
) {
    // SAFETY: the caller's promises are the same.
    unsafe { fetch_op_nbi::<T, ADD>(call, ctx, fetch, dest, T::ONE, pe) }
}

/// `shmem_<type>_atomic_inc`.
#[inline(always)]
pub(crate) unsafe fn inc<T: AtomicInteger>(call: Call, ctx: Ctx, dest: *mut T, pe: c_int) {
    // SAFETY: the caller's promises are the same.
    unsafe { update_op::<T, ADD>(call, ctx, dest, T::ONE, pe) }
}

/// `shmem_<type>_atomic_fetch`.
#[inline(always)]
pub(crate) unsafe fn fetch<T: AtomicElement>(call: Call, ctx: Ctx, source: *const T, pe: c_int) -> T {
    let (source, nothing) = (source.cast_mut(), T::from_word(0));
    // SAFETY: the handle and the address are what the standard asks for; `target` checks the rest.
    unsafe {
        let (_, word) =
            target!(ctx, source, pe, T, else fetch_cold::<T, FETCH>(source, nothing, pe, ctx, call));
        T::execute(word, AtomicOp::Fetch, nothing)
    }
}

/// `shmem_<type>_atomic_fetch_nbi`.
#[inline(always)]
pub(crate) unsafe fn fetch_nbi<T: AtomicElement>(
    call: Call,
    ctx: Ctx,
    fetch: *mut T,
    source: *const T,
    pe: c_int,
) {
    let (source, nothing) = (source.cast_mut(), T::from_word(0));
    // SAFETY: the handle and the addresses are what the standard asks for; `target` checks the rest.
    unsafe {
        let (_, word) =
            target!(ctx, source, pe, T, else nbi_cold::<T, FETCH>(fetch, source, nothing, pe, ctx, call));
        copy::store(fetch, T::execute(word, AtomicOp::Fetch, nothing));
    }
}

/// `shmem_<type>_atomic_compare_swap`.
#[inline(always)]
pub(crate) unsafe fn compare_swap<T: AtomicElement>(
    call: Call,
    ctx: Ctx,
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
) -> T {
    // SAFETY: the handle and the address are what the standard asks for; `target` checks the rest.
    unsafe {
        let (part, word) = target!(ctx, dest, pe, T, else compare_slow(call, ctx, dest, cond, value, pe));
        let old = T::compare_swap(word, cond, value);
        if has_sleepers(part) {
            return wake(old, pe, ctx, call);
        }
        old
    }
}

/// `shmem_<type>_atomic_compare_swap_nbi`.
#[inline(always)]
pub(crate) unsafe fn compare_swap_nbi<T: AtomicElement>(
    call: Call,
    ctx: Ctx,
    fetch: *mut T,
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
) {
    // SAFETY: the handle and the addresses are what the standard asks for; `target` checks the rest.
    unsafe {
        let (part, word) =
            target!(ctx, dest, pe, T, else compare_nbi_cold(fetch, dest, cond, value, pe, ctx, call));
        copy::store(fetch, T::compare_swap(word, cond, value));
        if has_sleepers(part) {
            wake((), pe, ctx, call);
        }
    }
}

/// The operations with names from before contexts were introduced.
macro_rules! of_the_default_context {
    ($($name:ident: $of:ident, $bound:ident, ($($argument:ident: $type:ty),+) $(-> $old:ty)?;)+) => {$(
        #[doc = concat!("`", stringify!($of), "` of the default context.")]
        #[inline(always)]
        pub(crate) unsafe fn $name<T: $bound>(call: Call, $($argument: $type),+) $(-> $old)? {
            // SAFETY: the caller's promises are the same.
            unsafe { $of(call, Ctx::DEFAULT, $($argument),+) }
        }
    )+};
}

of_the_default_context! {
    fetch_default: fetch, AtomicElement, (source: *const T, pe: c_int) -> T;
    set_default: set, AtomicElement, (dest: *mut T, value: T, pe: c_int);
    swap_default: swap, AtomicElement, (dest: *mut T, value: T, pe: c_int) -> T;
    compare_swap_default: compare_swap, AtomicInteger, (dest: *mut T, cond: T, value: T, pe: c_int) -> T;
    fetch_inc_default: fetch_inc, AtomicInteger, (dest: *mut T, pe: c_int) -> T;
    inc_default: inc, AtomicInteger, (dest: *mut T, pe: c_int);
    fetch_add_default: fetch_add, AtomicInteger, (dest: *mut T, value: T, pe: c_int) -> T;
    add_default: add, AtomicInteger, (dest: *mut T, value: T, pe: c_int);
}

#[inline(always)]
unsafe fn fetch_op<T: AtomicElement, const OP: usize>(
    call: Call,
    ctx: Ctx,
    dest: *mut T,
    operand: T,
    pe: c_int,
) -> T {
    // SAFETY: the handle and the address are what the standard asks for; `target` checks the rest.
    unsafe {
        let (part, word) = target!(ctx, dest, pe, T, else fetch_cold::<T, OP>(dest, operand, pe, ctx, call));
        let old = T::execute(word, AtomicOp::ALL[OP], operand);
        if has_sleepers(part) {
            return wake(old, pe, ctx, call);
        }
        old
    }
}

#[inline(always)]
unsafe fn fetch_op_nbi<T: AtomicElement, const OP: usize>(
    call: Call,
    ctx: Ctx,
    fetch: *mut T,
    dest: *mut T,
    operand: T,
    pe: c_int,
) {
    // SAFETY: the handle and the addresses are what the standard asks for; `target` checks the rest.
    unsafe {
        let (part, word) =
            target!(ctx, dest, pe, T, else nbi_cold::<T, OP>(fetch, dest, operand, pe, ctx, call));
        copy::store(fetch, T::execute(word, AtomicOp::ALL[OP], operand));
        if has_sleepers(part) {
            wake((), pe, ctx, call);
        }
    }
}

#[inline(always)]
unsafe fn update_op<T: AtomicElement, const OP: usize>(
    call: Call,
    ctx: Ctx,
    dest: *mut T,
    operand: T,
    pe: c_int,
) {
    // SAFETY: the handle and the address are what the standard asks for; `target` checks the rest.
    unsafe {
        let (part, word) = target!(ctx, dest, pe, T, else update_cold::<T, OP>(dest, operand, pe, ctx, call));
        T::execute(word, AtomicOp::ALL[OP], operand);
        if has_sleepers(part) {
            wake((), pe, ctx, call);
        }
    }
}

/// Whether the owner of a part sleeps until it changes; after an atomic that has changed it.
///
/// # Safety
/// A part of the heap begins there.
#[inline(always)]
pub(crate) unsafe fn has_sleepers(part: *const u8) -> bool {
    // SYNC POINT doorbell: orders the change before the load of the number of sleepers.
    fence_after_update();
    // SAFETY: at this distance before each part lies a word that is only accessed as an atomic; the caller
    // guarantees that a part begins at `part`.
    unsafe { copy::load(part.sub(WAITERS_BEFORE_BYTES).cast::<u32>()) != 0 }
}

/// Wakes a PE that sleeps until the heap changes. Returns `answer`, the result of the calling function.
#[cold]
#[inline(never)]
pub(crate) fn wake<R>(answer: R, pe: c_int, ctx: Ctx, call: Call) -> R {
    let library = library::of(call);
    library.heap.wake(library.pe(call, ctx, pe));
    answer
}

#[cold]
#[inline(never)]
unsafe fn fetch_cold<T: AtomicElement, const OP: usize>(
    dest: *mut T,
    operand: T,
    pe: c_int,
    ctx: Ctx,
    call: Call,
) -> T {
    let library = library::of(call);
    let pe = library.pe(call, ctx, pe);
    let (remote, index) = library.word(call, name_of(OP), dest);
    library
        .through_words(call, ctx, remote, |words| words.fetch_amo(pe, index, AtomicOp::ALL[OP], operand))
        .or_fail(call)
        .unwrap_or_else(|| T::from_word(0))
}

#[cold]
#[inline(never)]
unsafe fn nbi_cold<T: AtomicElement, const OP: usize>(
    fetch: *mut T,
    dest: *mut T,
    operand: T,
    pe: c_int,
    ctx: Ctx,
    call: Call,
) {
    let library = library::of(call);
    let pe = library.pe(call, ctx, pe);
    let (remote, index) = library.word(call, name_of(OP), dest);
    let fetch = output(call, "fetch", fetch);
    let outcome = library.through_words(call, ctx, remote, |words| {
        // SAFETY: the caller does not access the place of the old value until the next quiet.
        unsafe {
            words.fetch_amo_nbi(pe, index, AtomicOp::ALL[OP], operand, &mut *fetch.cast::<MaybeUninit<T>>())
        }
    });
    outcome.or_fail(call);
}

#[cold]
#[inline(never)]
unsafe fn update_cold<T: AtomicElement, const OP: usize>(
    dest: *mut T,
    operand: T,
    pe: c_int,
    ctx: Ctx,
    call: Call,
) {
    let library = library::of(call);
    let pe = library.pe(call, ctx, pe);
    let (remote, index) = library.word(call, "dest", dest);
    library
        .through_words(call, ctx, remote, |words| words.amo(pe, index, AtomicOp::ALL[OP], operand))
        .or_fail(call);
}

/// The two cold forms of compare-and-swap: the arguments of the form for the default context fit into
/// registers.
#[inline(always)]
unsafe fn compare_slow<T: AtomicElement>(
    call: Call,
    ctx: Ctx,
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
) -> T {
    // SAFETY: the caller's promises are the same.
    unsafe {
        match ctx {
            Ctx::DEFAULT => compare_default_cold(dest, cond, value, pe, call),
            _ => compare_cold(dest, cond, value, pe, ctx, call),
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn compare_default_cold<T: AtomicElement>(
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
    call: Call,
) -> T {
    // SAFETY: the caller's promises are the same.
    unsafe { compare_cold(dest, cond, value, pe, Ctx::DEFAULT, call) }
}

#[cold]
#[inline(never)]
unsafe fn compare_cold<T: AtomicElement>(
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
    ctx: Ctx,
    call: Call,
) -> T {
    let library = library::of(call);
    let pe = library.pe(call, ctx, pe);
    let (remote, index) = library.word(call, "dest", dest);
    library
        .through_words(call, ctx, remote, |words| words.compare_swap(pe, index, cond, value))
        .or_fail(call)
        .unwrap_or_else(|| T::from_word(0))
}

#[cold]
#[inline(never)]
unsafe fn compare_nbi_cold<T: AtomicElement>(
    fetch: *mut T,
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
    ctx: Ctx,
    call: Call,
) {
    let library = library::of(call);
    let pe = library.pe(call, ctx, pe);
    let (remote, index) = library.word(call, "dest", dest);
    let fetch = output(call, "fetch", fetch);
    let outcome = library.through_words(call, ctx, remote, |words| {
        // SAFETY: the caller does not access the place of the old value until the next quiet.
        unsafe { words.compare_swap_nbi(pe, index, cond, value, &mut *fetch.cast::<MaybeUninit<T>>()) }
    });
    outcome.or_fail(call);
}

/// The standard's name for the word of an operation.
fn name_of(op: usize) -> &'static str {
    if op == FETCH { "source" } else { "dest" }
}
