//! Strided remote memory access (OpenSHMEM 1.6, 9.6 and 9.7): iput, iget and, since 1.6, ibput and ibget,
//! whose blocks have several elements.
//!
//! Invariant: strides count elements and are not smaller than a block, so blocks do not overlap. Where the PE
//! is mapped, one loop over the blocks moves them; it is the same for all types of a size, and is called, not
//! inlined, as it takes longer than the call. Otherwise the runtime's `put_strided` and `get_strided` move
//! the blocks as runs of bytes.

use crate::base::abi::{Ctx, c_int, ptrdiff_t, size_t};
use crate::base::fault::{Call, OrFail, fail};
use crate::base::hot::{reach, run};
use crate::library;
use pelago::Strided;
use pelago::binding::copy;
use std::slice;

/// The calls on single elements and on blocks of them.
macro_rules! calls {
    ($($name:ident $blocks:ident: $of:ident;)+) => {$(
        #[inline(always)]
        #[expect(clippy::too_many_arguments, reason = "those of the C function")]
        pub(crate) unsafe fn $name<T>(
            call: Call,
            ctx: Ctx,
            dest: *mut T,
            source: *const T,
            dst: ptrdiff_t,
            sst: ptrdiff_t,
            nelems: size_t,
            pe: c_int,
        ) {
            // SAFETY: the caller's promises are the same.
            unsafe { $blocks(call, ctx, dest, source, dst, sst, 1, nelems, pe) }
        }

        #[inline(always)]
        #[expect(clippy::too_many_arguments, reason = "those of the C function")]
        pub(crate) unsafe fn $blocks<T>(
            call: Call,
            ctx: Ctx,
            dest: *mut T,
            source: *const T,
            dst: ptrdiff_t,
            sst: ptrdiff_t,
            bsize: size_t,
            nblocks: size_t,
            pe: c_int,
        ) {
            let pattern = Pattern { each: size_of::<T>(), block: bsize, count: nblocks, dst, sst };
            // SAFETY: the caller's promises are the same.
            unsafe { $of(call, ctx, dest.cast(), source.cast(), &pattern, pe) }
        }
    )+};
}

calls! {
    iput ibput: put;
    iget ibget: get;
}

/// The elements that move: `count` blocks of `block` elements of `each` bytes. Strides are in elements, from
/// the start of one block to the start of the next.
struct Pattern {
    each: usize,
    block: usize,
    count: usize,
    dst: ptrdiff_t,
    sst: ptrdiff_t,
}

impl Pattern {
    /// Whether the transfer moves 0 bytes.
    fn is_empty(&self) -> bool {
        self.count == 0 || self.block == 0
    }

    /// Whether it moves at least one byte, its blocks do not overlap, and its local buffer, which has the
    /// `local` stride, fits in an address space.
    fn is_sound(&self, local: ptrdiff_t) -> bool {
        let Ok(block) = isize::try_from(self.block) else { return false };
        !self.is_empty() && self.dst >= block && self.sst >= block && self.span(local) <= isize::MAX as usize
    }

    /// Bytes from the start of the first block to the end of the last; the maximum of the type if there are
    /// more.
    fn span(&self, stride: ptrdiff_t) -> usize {
        let elements = (self.count - 1).saturating_mul(stride as usize).saturating_add(self.block);
        elements.saturating_mul(self.each)
    }

    /// Ends the job with a message if a pattern is not sound.
    fn check(&self, call: Call, what: &str, local: ptrdiff_t) {
        let block = self.block;
        for (name, stride) in [("dst", self.dst), ("sst", self.sst)] {
            if usize::try_from(stride).map_or(true, |stride| stride < block) {
                let what = format!(
                    "{name} is {stride}: strides count elements from the start of a block to that of the \
                     next, and a block has {block}; give {block} or more"
                );
                fail(call, what);
            }
        }
        if !self.is_sound(local) {
            fail(
                call,
                format_args!("{what} would reach beyond the address space: too many blocks or strides"),
            );
        }
    }

    /// The pattern in the form of the runtime, in bytes.
    fn bytes(&self, array_stride: ptrdiff_t, slice_stride: ptrdiff_t) -> Strided {
        let bytes = |elements: usize| elements.saturating_mul(self.each);
        Strided {
            count: self.count,
            block: bytes(self.block),
            array_stride: bytes(array_stride as usize),
            slice_stride: bytes(slice_stride as usize),
        }
    }
}

/// # Safety
/// The source is valid for the reads of the pattern, and the handle is one of this library's.
#[inline(never)]
unsafe fn put(call: Call, ctx: Ctx, dest: *mut u8, source: *const u8, pattern: &Pattern, pe: c_int) {
    // SAFETY: the caller guarantees handle and source; `run` checks PE and range.
    unsafe {
        if !pattern.is_sound(pattern.sst) {
            return put_cold(call, ctx, dest, source, pattern, pe);
        }
        let span = pattern.span(pattern.dst);
        let (part, offset) =
            run!(ctx, dest, span, 1, pe, else put_cold(call, ctx, dest, source, pattern, pe));
        move_blocks(part.add(offset), source, pattern);
    }
}

/// # Safety
/// The destination is valid for the writes of the pattern, and the handle is one of this library's.
#[inline(never)]
unsafe fn get(call: Call, ctx: Ctx, dest: *mut u8, source: *const u8, pattern: &Pattern, pe: c_int) {
    // SAFETY: the caller guarantees handle and destination; `run` checks PE and range.
    unsafe {
        if !pattern.is_sound(pattern.dst) {
            return get_cold(call, ctx, dest, source, pattern, pe);
        }
        let span = pattern.span(pattern.sst);
        let (part, offset) =
            run!(ctx, source, span, 1, pe, else get_cold(call, ctx, dest, source, pattern, pe));
        move_blocks(dest, part.add(offset), pattern);
    }
}

/// Moves the blocks between buffers that are both mapped here.
///
/// # Safety
/// The pattern is sound, and both buffers are valid for it.
unsafe fn move_blocks(target: *mut u8, source: *const u8, pattern: &Pattern) {
    let Pattern { each, block, count, dst, sst } = *pattern;
    let (dst, sst, ends) = (dst as usize, sst as usize, target as usize | source as usize);
    // SAFETY: the caller guarantees the blocks; they are moved as words where both ends are aligned for them.
    unsafe {
        match each {
            2 if ends.is_multiple_of(2) => words::<u16>(target, dst, source, sst, block, count),
            4 if ends.is_multiple_of(4) => words::<u32>(target, dst, source, sst, block, count),
            8 if ends.is_multiple_of(8) => words::<u64>(target, dst, source, sst, block, count),
            16 if ends.is_multiple_of(8) => {
                // The stride of a single block has no effect, however large it is.
                let (dst, sst) = (dst.wrapping_mul(2), sst.wrapping_mul(2));
                words::<u64>(target, dst, source, sst, 2 * block, count);
            }
            _ => {
                let (dst, sst) = (dst.wrapping_mul(each), sst.wrapping_mul(each));
                words::<u8>(target, dst, source, sst, each * block, count);
            }
        }
    }
}

/// The largest block that is moved word by word; larger ones are copied.
const WORDWISE_BYTES: usize = 32;

/// Moves blocks of words; strides count words.
///
/// # Safety
/// As `move_blocks`; both ends are aligned for the words.
#[inline(always)]
unsafe fn words<T: Copy>(
    target: *mut u8,
    target_stride: usize,
    source: *const u8,
    source_stride: usize,
    block: usize,
    count: usize,
) {
    let (mut target, mut source) = (target.cast::<T>(), source.cast::<T>());
    // SAFETY: the caller guarantees all blocks; no byte after the last one is read or written.
    unsafe {
        for _ in 0..count {
            match block {
                1 => copy::store(target, copy::load(source)),
                2 => {
                    let pair = (copy::load(source), copy::load(source.add(1)));
                    copy::store(target, pair.0);
                    copy::store(target.add(1), pair.1);
                }
                _ if block * size_of::<T>() <= WORDWISE_BYTES => {
                    for i in 0..block {
                        copy::store(target.add(i), copy::load(source.add(i)));
                    }
                }
                _ => copy::copy(target.cast(), source.cast(), block * size_of::<T>()),
            }
            target = target.wrapping_add(target_stride);
            source = source.wrapping_add(source_stride);
        }
    }
}

/// A put with all checks, by any route.
///
/// # Safety
/// As `put`.
#[cold]
#[inline(never)]
unsafe fn put_cold(call: Call, ctx: Ctx, dest: *mut u8, source: *const u8, pattern: &Pattern, pe: c_int) {
    let library = library::of(call);
    let pe = library.pe(call, ctx, pe);
    // Null pointers are allowed if the length is 0.
    if pattern.is_empty() {
        return;
    }
    pattern.check(call, "source", pattern.sst);
    let remote = library.locate(call, "dest", dest as usize, pattern.span(pattern.dst));
    library.check_buffer(call, "source", source as usize, pattern.span(pattern.sst));
    let outcome = library.through(call, ctx, remote.array, |array| {
        // SAFETY: the caller guarantees that the source is valid.
        let source = unsafe { slice::from_raw_parts(source, pattern.span(pattern.sst)) };
        array.put_strided(pe, remote.offset, source, &pattern.bytes(pattern.dst, pattern.sst))
    });
    outcome.or_fail(call);
}

/// A get with all checks, by any route.
///
/// # Safety
/// As `get`.
#[cold]
#[inline(never)]
unsafe fn get_cold(call: Call, ctx: Ctx, dest: *mut u8, source: *const u8, pattern: &Pattern, pe: c_int) {
    let library = library::of(call);
    let pe = library.pe(call, ctx, pe);
    if pattern.is_empty() {
        return;
    }
    pattern.check(call, "dest", pattern.dst);
    if library.are_constant(source as usize, pattern.span(pattern.sst)) {
        library.check_buffer(call, "dest", dest as usize, pattern.span(pattern.dst));
        let (block, to, from) = (pattern.block, pattern.dst as usize, pattern.sst as usize);
        for i in 0..pattern.count {
            let [to, from] = [to, from].map(|stride| i * stride * pattern.each);
            // SAFETY: the caller guarantees that the destination is valid; the source is the program's.
            unsafe { dest.wrapping_add(to).copy_from(source.wrapping_add(from), block * pattern.each) };
        }
        return;
    }
    let remote = library.locate(call, "source", source as usize, pattern.span(pattern.sst));
    library.check_buffer(call, "dest", dest as usize, pattern.span(pattern.dst));
    let outcome = library.through(call, ctx, remote.array, |array| {
        // SAFETY: the caller guarantees that the destination is valid.
        let dest = unsafe { slice::from_raw_parts_mut(dest, pattern.span(pattern.dst)) };
        array.get_strided(pe, remote.offset, dest, &pattern.bytes(pattern.sst, pattern.dst))
    });
    outcome.or_fail(call);
}
