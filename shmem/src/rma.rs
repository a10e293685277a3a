//! Remote memory access (OpenSHMEM 1.6, 9.6 and 9.7): put, get, p, g, and the non-blocking forms.
//!
//! Between PEs that map each other the non-blocking forms are complete at return, so they are the blocking
//! ones. A single element on a PE that is not mapped is put and got through the injection path, if it is
//! open. All other cases go to `put_cold` or `get_cold`.

use crate::base::abi::{Ctx, c_int, size_t};
use crate::base::fault::{Call, OrFail};
use crate::base::hot::{reach, run, word};
use crate::library;
use crate::symmetric::check::User;
use pelago::binding::copy;
use std::mem::MaybeUninit;
use std::slice;

/// Whether an operation waits until its local buffer is free, or has its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Blocking,
    Nonblocking,
}

/// `shmem_<type>_p`.
#[inline(always)]
pub(crate) unsafe fn p<T: Copy>(call: Call, ctx: Ctx, dest: *mut T, value: T, pe: c_int) {
    // SAFETY: the handle and the address are what the standard asks for; `word` checks PE and range.
    unsafe {
        let place = word!(
            ctx, dest, pe,
            else p_cold(dest, value, pe, call, ctx),
            far match ctx {
                Ctx::DEFAULT => p_far_default(dest, value, pe, call),
                _ => p_far_ctx(dest, value, pe, ctx, call),
            }
        );
        copy::store(place.cast(), value)
    }
}

/// A put of the default context to a PE that is not mapped; PE and address are valid.
#[cold]
#[inline(never)]
unsafe fn p_far_default<T: Copy>(dest: *mut T, value: T, pe: c_int, call: Call) {
    // SAFETY: the caller's promises are the same.
    unsafe { p_far(dest, value, pe, Ctx::DEFAULT, call) }
}

/// The same for any context.
#[cold]
#[inline(never)]
unsafe fn p_far_ctx<T: Copy>(dest: *mut T, value: T, pe: c_int, ctx: Ctx, call: Call) {
    // SAFETY: the caller's promises are the same.
    unsafe { p_far(dest, value, pe, ctx, call) }
}

#[inline(always)]
unsafe fn p_far<T: Copy>(dest: *mut T, value: T, pe: c_int, ctx: Ctx, call: Call) {
    // SAFETY: the handle is what the standard requires; the caller has compared PE and address with the
    // context's data.
    unsafe {
        let hot = ctx.hot();
        if !hot.far.put(pe as u32 as usize, dest as usize - hot.start, value) {
            p_cold(dest, value, pe, call, ctx);
        }
    }
}

/// The context comes last, so that the functions above need not move the other arguments.
#[cold]
#[inline(never)]
unsafe fn p_cold<T: Copy>(dest: *mut T, value: T, pe: c_int, call: Call, ctx: Ctx) {
    // SAFETY: the value is a local.
    unsafe { put_cold(dest.cast(), (&raw const value).cast(), size_of::<T>(), pe, ctx, call, Kind::Blocking) }
}

/// `shmem_<type>_g`.
#[inline(always)]
pub(crate) unsafe fn g<T: Copy>(call: Call, ctx: Ctx, source: *const T, pe: c_int) -> T {
    // SAFETY: the handle and the address are what the standard asks for; `word` checks PE and range.
    unsafe {
        let place = word!(
            ctx, source, pe,
            else g_cold(source, pe, call, ctx),
            far match ctx {
                Ctx::DEFAULT => g_far_default(source, pe, call),
                _ => g_far_ctx(source, pe, ctx, call),
            }
        );
        copy::load(place.cast())
    }
}

/// A get of the default context from a PE that is not mapped; PE and address are valid.
#[cold]
#[inline(never)]
unsafe fn g_far_default<T: Copy>(source: *const T, pe: c_int, call: Call) -> T {
    // SAFETY: the caller's promises are the same.
    unsafe { g_far(source, pe, Ctx::DEFAULT, call) }
}

/// The same for any context.
#[cold]
#[inline(never)]
unsafe fn g_far_ctx<T: Copy>(source: *const T, pe: c_int, ctx: Ctx, call: Call) -> T {
    // SAFETY: the caller's promises are the same.
    unsafe { g_far(source, pe, ctx, call) }
}

#[inline(always)]
unsafe fn g_far<T: Copy>(source: *const T, pe: c_int, ctx: Ctx, call: Call) -> T {
    // SAFETY: the handle is what the standard requires; the caller has compared PE and address with the
    // context's data.
    unsafe {
        let hot = ctx.hot();
        match hot.far.get(pe as u32 as usize, source as usize - hot.start) {
            Some(value) => value,
            None => g_cold(source, pe, call, ctx),
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn g_cold<T: Copy>(source: *const T, pe: c_int, call: Call, ctx: Ctx) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the value is a local, which a blocking get fills.
    unsafe {
        get_cold(value.as_mut_ptr().cast(), source.cast(), size_of::<T>(), pe, ctx, call, Kind::Blocking);
        value.assume_init()
    }
}

/// `shmem_<type>_put`, `shmem_put<bits>` and, of elements of one byte, `shmem_putmem`.
#[inline(always)]
pub(crate) unsafe fn put<T>(call: Call, ctx: Ctx, dest: *mut T, source: *const T, nelems: size_t, pe: c_int) {
    let (each, bytes) = (size_of::<T>(), nelems.saturating_mul(size_of::<T>()));
    // SAFETY: the handle and the addresses are what the standard asks for; `run` checks PE and range.
    unsafe {
        let (part, offset) = run!(ctx, dest, nelems, each, pe, else {
            put_cold(dest.cast(), source.cast(), bytes, pe, ctx, call, Kind::Blocking)
        });
        put_run(part, offset, source.cast(), bytes)
    }
}

/// `shmem_<type>_put_nbi`, `shmem_put<bits>_nbi` and `shmem_putmem_nbi`.
#[inline(always)]
pub(crate) unsafe fn put_nbi<T>(
    call: Call,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: size_t,
    pe: c_int,
) {
    let (each, bytes) = (size_of::<T>(), nelems.saturating_mul(size_of::<T>()));
    // SAFETY: the handle and the addresses are what the standard asks for; `run` checks PE and range.
    unsafe {
        let (part, offset) = run!(ctx, dest, nelems, each, pe, else {
            put_cold(dest.cast(), source.cast(), bytes, pe, ctx, call, Kind::Nonblocking)
        });
        put_run(part, offset, source.cast(), bytes)
    }
}

/// `shmem_<type>_get`, `shmem_get<bits>` and `shmem_getmem`.
#[inline(always)]
pub(crate) unsafe fn get<T>(call: Call, ctx: Ctx, dest: *mut T, source: *const T, nelems: size_t, pe: c_int) {
    let (each, bytes) = (size_of::<T>(), nelems.saturating_mul(size_of::<T>()));
    // SAFETY: the handle and the addresses are what the standard asks for; `run` checks PE and range.
    unsafe {
        let (part, offset) = run!(ctx, source, nelems, each, pe, else {
            get_cold(dest.cast(), source.cast(), bytes, pe, ctx, call, Kind::Blocking)
        });
        get_run(dest.cast(), part, offset, bytes)
    }
}

/// `shmem_<type>_get_nbi`, `shmem_get<bits>_nbi` and `shmem_getmem_nbi`.
#[inline(always)]
pub(crate) unsafe fn get_nbi<T>(
    call: Call,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: size_t,
    pe: c_int,
) {
    let (each, bytes) = (size_of::<T>(), nelems.saturating_mul(size_of::<T>()));
    // SAFETY: the handle and the addresses are what the standard asks for; `run` checks PE and range.
    unsafe {
        let (part, offset) = run!(ctx, source, nelems, each, pe, else {
            get_cold(dest.cast(), source.cast(), bytes, pe, ctx, call, Kind::Nonblocking)
        });
        get_run(dest.cast(), part, offset, bytes)
    }
}

/// Puts a run; the most frequent length is one word. A part begins at a multiple of a page, so the offset
/// determines the alignment.
///
/// # Safety
/// The source is valid for reads of `bytes` bytes, and the place for writes, as shared memory is.
#[inline(always)]
unsafe fn put_run(part: *mut u8, offset: usize, source: *const u8, bytes: usize) {
    // SAFETY: the caller has promised that both runs are valid.
    unsafe {
        if bytes == 8 && (offset | source as usize).is_multiple_of(8) {
            return copy::store(part.add(offset).cast(), copy::load(source.cast::<u64>()));
        }
        copy::transfer(part.add(offset), source, bytes);
    }
}

/// The same in the other direction.
///
/// # Safety
/// The target is valid for writes of `bytes` bytes, and the place for reads, as shared memory is.
#[inline(always)]
unsafe fn get_run(target: *mut u8, part: *const u8, offset: usize, bytes: usize) {
    // SAFETY: the caller has promised that both runs are valid.
    unsafe {
        if bytes == 8 && (offset | target as usize).is_multiple_of(8) {
            return copy::store(target.cast(), copy::load(part.add(offset).cast::<u64>()));
        }
        copy::transfer(target, part.add(offset), bytes);
    }
}

/// A put with all checks, by any route.
///
/// # Safety
/// The source is valid for reads of `bytes` bytes, until the next quiet if it is non-blocking.
#[cold]
#[inline(never)]
pub(crate) unsafe fn put_cold(
    dest: *mut u8,
    source: *const u8,
    bytes: usize,
    pe: c_int,
    ctx: Ctx,
    call: Call,
    kind: Kind,
) {
    let library = library::of(call);
    let pe = library.pe(call, ctx, pe);
    // A null pointer is allowed if its length is 0.
    if bytes == 0 {
        return;
    }
    let remote = library.locate(call, "dest", dest as usize, bytes);
    library.check_buffer(call, "source", source as usize, bytes);
    let outcome = library.through(call, ctx, remote.array, |array| {
        // SAFETY: the caller guarantees that the source is valid.
        unsafe {
            let source = slice::from_raw_parts(source, bytes);
            match kind {
                Kind::Blocking => array.put(pe, remote.offset, source),
                Kind::Nonblocking => array.put_nbi(pe, remote.offset, source),
            }
        }
    });
    outcome.or_fail(call);
    if kind == Kind::Nonblocking {
        // SAFETY: the caller guarantees that the source is valid.
        unsafe { library.watch_source(call, User::Context(ctx), source, bytes) };
    }
}

/// A get with all checks, by any route.
///
/// # Safety
/// The destination is valid for writes of `bytes` bytes, until the next quiet if it is non-blocking.
#[cold]
#[inline(never)]
pub(crate) unsafe fn get_cold(
    dest: *mut u8,
    source: *const u8,
    bytes: usize,
    pe: c_int,
    ctx: Ctx,
    call: Call,
    kind: Kind,
) {
    let library = library::of(call);
    let pe = library.pe(call, ctx, pe);
    if bytes == 0 {
        return;
    }
    if library.are_constant(source as usize, bytes) {
        library.check_buffer(call, "dest", dest as usize, bytes);
        // SAFETY: the caller guarantees that the destination is valid; the source is the program's.
        return unsafe { dest.copy_from(source, bytes) };
    }
    let remote = library.locate(call, "source", source as usize, bytes);
    library.check_buffer(call, "dest", dest as usize, bytes);
    let outcome = library.through(call, ctx, remote.array, |array| {
        // SAFETY: the caller guarantees that the destination is valid.
        unsafe {
            let dest = slice::from_raw_parts_mut(dest, bytes);
            match kind {
                Kind::Blocking => array.get(pe, remote.offset, dest),
                Kind::Nonblocking => array.get_nbi(pe, remote.offset, dest),
            }
        }
    });
    outcome.or_fail(call);
}
