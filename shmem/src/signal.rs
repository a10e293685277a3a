//! Signalling operations (OpenSHMEM 1.6, 9.9): puts that update a word of the target after their data have
//! arrived, and such updates without data.
//!
//! Invariant: a PE that sees a signal sees the data that were put with it; a signal gives no information
//! about other puts. Where data and word are mapped, the atomic that signals follows the stores and releases
//! them, and the non-blocking form is complete at return; all other cases use the runtime's `put_signal`.

use crate::amo::{has_sleepers, wake};
use crate::base::abi::{Ctx, SIGNAL_ADD, SIGNAL_SET, c_int, size_t};
use crate::base::fault::{Call, OrFail, fail};
use crate::base::hot::{reach, run, target};
use crate::library;
use crate::p2p;
use crate::rma::Kind;
use crate::symmetric::check::User;
use pelago::binding::copy;
use pelago::sync::{Ordering, fence};
use pelago::{AtomicElement, AtomicOp, SignalOp};
use std::slice;

/// `shmem_<type>_put_signal`, `shmem_put<bits>_signal` and `shmem_putmem_signal`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "those of the C function")]
pub(crate) unsafe fn put<T>(
    call: Call,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: size_t,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
    pe: c_int,
) {
    let data = (dest.cast(), source.cast(), nelems);
    // SAFETY: the caller's promises are the same.
    unsafe { put_elements(call, size_of::<T>(), ctx, data, (sig_addr, signal, sig_op), pe, Kind::Blocking) }
}

/// `shmem_<type>_put_signal_nbi`, `shmem_put<bits>_signal_nbi` and `shmem_putmem_signal_nbi`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "those of the C function")]
pub(crate) unsafe fn put_nbi<T>(
    call: Call,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: size_t,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
    pe: c_int,
) {
    let data = (dest.cast(), source.cast(), nelems);
    // SAFETY: the caller's promises are the same.
    unsafe {
        put_elements(call, size_of::<T>(), ctx, data, (sig_addr, signal, sig_op), pe, Kind::Nonblocking)
    }
}

/// `shmem_signal_add`.
#[inline(always)]
pub(crate) unsafe fn add(call: Call, ctx: Ctx, sig_addr: *mut u64, signal: u64, pe: c_int) {
    // SAFETY: the handle and the address are what the standard asks for; `target` checks the rest.
    unsafe {
        let (part, word) =
            target!(ctx, sig_addr, pe, u64, else signal_cold::<SIGNAL_ADD>(sig_addr, signal, pe, ctx, call));
        u64::execute(word, AtomicOp::Add, signal);
        if has_sleepers(part) {
            wake((), pe, ctx, call);
        }
    }
}

/// `shmem_signal_set`.
#[inline(always)]
pub(crate) unsafe fn set(call: Call, ctx: Ctx, sig_addr: *mut u64, signal: u64, pe: c_int) {
    // SAFETY: the handle and the address are what the standard asks for; `target` checks the rest.
    unsafe {
        let (part, word) =
            target!(ctx, sig_addr, pe, u64, else signal_cold::<SIGNAL_SET>(sig_addr, signal, pe, ctx, call));
        u64::execute(word, AtomicOp::Set, signal);
        if has_sleepers(part) {
            wake((), pe, ctx, call);
        }
    }
}

/// `shmem_signal_fetch`: reads a signal of this PE.
#[inline(always)]
pub(crate) unsafe fn fetch(call: Call, sig_addr: *const u64) -> u64 {
    // SAFETY: initialisation and finalisation, which write it, run concurrently with no other call.
    let hot = unsafe { Ctx::DEFAULT.hot() };
    let is_plain = (sig_addr as usize).wrapping_sub(hot.start) < hot.looked_at_bytes;
    if !is_plain || !sig_addr.is_aligned() {
        return fetch_cold(call, sig_addr);
    }
    // SAFETY: the word lies in this PE's heap.
    let signal = unsafe { copy::load(sig_addr) };
    // SYNC POINT signal: acquires the data that were put with the signal.
    fence(Ordering::Acquire);
    signal
}

/// A caller that polls for a signal from the network needs progress.
#[cold]
#[inline(never)]
fn fetch_cold(call: Call, sig_addr: *const u64) -> u64 {
    let library = library::of(call);
    library.words(call, "sig_addr", sig_addr, 1);
    library.world.progress();
    // SAFETY: the word was checked to be in this PE's symmetric memory.
    let signal = unsafe { copy::load(sig_addr) };
    // SYNC POINT signal: acquires the data that were put with the signal.
    fence(Ordering::Acquire);
    signal
}

/// `shmem_signal_wait_until`: returns the signal that satisfies the comparison.
pub(crate) unsafe fn wait_until(call: Call, sig_addr: *mut u64, cmp: c_int, cmp_value: u64) -> u64 {
    // SAFETY: the caller's promises are the same.
    unsafe { p2p::wait(call, "sig_addr", sig_addr, cmp, cmp_value) }
}

/// A put of elements of `each` bytes and its signal.
#[inline(always)]
unsafe fn put_elements(
    call: Call,
    each: usize,
    ctx: Ctx,
    (dest, source, nelems): (*mut u8, *const u8, usize),
    signal: (*mut u64, u64, c_int),
    pe: c_int,
    kind: Kind,
) {
    let all = (dest, source, nelems.saturating_mul(each));
    let (sig_addr, value, sig_op) = signal;
    // SAFETY: the handle and the addresses are what the standard asks for; `run` and `target` check PE and
    // ranges, before anything is written.
    unsafe {
        let (start, offset) = run!(
            ctx, dest, nelems, each, pe,
            else put_cold(all, signal, pe, ctx, call, kind),
            far put_far(all, signal, pe, ctx, call, kind)
        );
        let (part, word) = target!(ctx, sig_addr, pe, u64, else put_cold(all, signal, pe, ctx, call, kind));
        if sig_op != SIGNAL_SET && sig_op != SIGNAL_ADD {
            return put_cold(all, signal, pe, ctx, call, kind);
        }
        copy::transfer(start.add(offset), source, nelems * each);
        // SYNC POINT signal: the atomic releases the data that were written before.
        match sig_op {
            SIGNAL_SET => u64::execute(word, AtomicOp::Set, value),
            _ => u64::execute(word, AtomicOp::Add, value),
        };
        if has_sleepers(part) {
            wake((), pe, ctx, call);
        }
    }
}

/// A put and its signal to a PE that is not mapped; PE and the start of the target are valid.
#[cold]
#[inline(never)]
unsafe fn put_far(
    all: (*mut u8, *const u8, usize),
    signal: (*mut u64, u64, c_int),
    pe: c_int,
    ctx: Ctx,
    call: Call,
    kind: Kind,
) {
    let ((dest, source, bytes), (sig_addr, value, sig_op)) = (all, signal);
    // SAFETY: the handle is what the standard asks for; the caller has compared PE and target with the
    // context's data, and the rest is checked here.
    unsafe {
        let hot = ctx.hot();
        let (offset, word) = (dest as usize - hot.start, (sig_addr as usize).wrapping_sub(hot.start));
        let is_inside = bytes <= hot.bytes - offset && word < hot.bytes && sig_addr.is_aligned();
        let op = match sig_op {
            SIGNAL_SET => SignalOp::Set(value),
            SIGNAL_ADD => SignalOp::Add(value),
            _ => return put_cold(all, signal, pe, ctx, call, kind),
        };
        let may_inject = is_inside && bytes > 0;
        if !may_inject || !hot.far.put_signal(pe as u32 as usize, (offset, source, bytes), (word, op)) {
            put_cold(all, signal, pe, ctx, call, kind);
        }
    }
}

/// A put and its signal with all checks, by any route. A put of 0 bytes sends only the signal.
#[cold]
#[inline(never)]
unsafe fn put_cold(
    (dest, source, bytes): (*mut u8, *const u8, usize),
    (sig_addr, signal, sig_op): (*mut u64, u64, c_int),
    pe: c_int,
    ctx: Ctx,
    call: Call,
    kind: Kind,
) {
    let library = library::of(call);
    let op = operation(call, sig_op, signal);
    if bytes == 0 {
        return send(sig_addr, op, pe, ctx, call);
    }
    let pe = library.pe(call, ctx, pe);
    let data = library.locate(call, "dest", dest as usize, bytes);
    library.check_buffer(call, "source", source as usize, bytes);
    let (remote, index) = library.word(call, "sig_addr", sig_addr);
    // SAFETY: both arrays of the library live longer than a call, and have no exclusive phases.
    let signals = unsafe { remote.array.cast::<u64>() };
    let outcome = library.through(call, ctx, data.array, |array| {
        // SAFETY: the caller guarantees that the source is valid, until the next quiet if the put is
        // non-blocking.
        unsafe {
            let source = slice::from_raw_parts(source, bytes);
            match kind {
                Kind::Blocking => array.put_signal(pe, data.offset, source, &signals, index, op),
                Kind::Nonblocking => array.put_signal_nbi(pe, data.offset, source, &signals, index, op),
            }
        }
    });
    outcome.or_fail(call);
    if kind == Kind::Nonblocking {
        // SAFETY: the caller guarantees that the source is valid.
        unsafe { library.watch_source(call, User::Context(ctx), source, bytes) };
    }
}

/// The operator is a constant, so that the arguments fit into registers, and the fast path needs no stack
/// frame.
#[cold]
#[inline(never)]
fn signal_cold<const SIG_OP: c_int>(sig_addr: *mut u64, signal: u64, pe: c_int, ctx: Ctx, call: Call) {
    send(sig_addr, operation(call, SIG_OP, signal), pe, ctx, call);
}

/// A signal without data, by any route.
fn send(sig_addr: *mut u64, op: SignalOp, pe: c_int, ctx: Ctx, call: Call) {
    let library = library::of(call);
    let pe = library.pe(call, ctx, pe);
    let (remote, index) = library.word(call, "sig_addr", sig_addr);
    library.through_words(call, ctx, remote, |words| words.signal(pe, index, op)).or_fail(call);
}

fn operation(call: Call, sig_op: c_int, signal: u64) -> SignalOp {
    match sig_op {
        SIGNAL_SET => SignalOp::Set(signal),
        SIGNAL_ADD => SignalOp::Add(signal),
        _ => fail(call, format_args!("sig_op is {sig_op}: give SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD")),
    }
}
