//! Copies into and out of memory that other PEs may access at the same moment.
//!
//! Invariant: the compiler never sees a plain load or store of such memory. One word of 1, 2, 4 or 8 bytes
//! moves as a relaxed atomic; longer data go through an opaque call of the C library's `memcpy`, or loops
//! in `asm!`, which are foreign machine code to the compiler (docs/decisions/0003-opaque-copy.md).

use crate::sync::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::mem::{MaybeUninit, align_of, size_of, transmute_copy};

/// Fences order the words. ThreadSanitizer does not know fences, so under it (`cargo xtask tsan`) the
/// accesses to words are ordered themselves.
const STORE: Ordering = if cfg!(tsan) { Ordering::Release } else { Ordering::Relaxed };
const LOAD: Ordering = if cfg!(tsan) { Ordering::Acquire } else { Ordering::Relaxed };

/// Whether a `T` moves as one word: its size is that of an atomic and its alignment is not less.
const fn is_word<T>() -> bool {
    matches!(size_of::<T>(), 1 | 2 | 4 | 8) && align_of::<T>() == size_of::<T>()
}

/// Stores one value that other PEs may be reading: in one piece if it is a word.
///
/// # Safety
/// `target` is valid for writes of a `T`, aligned for it, and accessed by others only through this module,
/// atomics or other processes. `T` has no padding.
#[inline(always)]
pub unsafe fn store<T: Copy>(target: *mut T, value: T) {
    if !is_word::<T>() {
        // SAFETY: the caller guarantees `target`; `value` is a local variable of the same size.
        return unsafe { copy(target.cast(), (&raw const value).cast(), size_of::<T>()) };
    }
    // SAFETY: `is_word` gives size and alignment of the atomic that is chosen by size, so `transmute_copy`
    // reads just the value and `target` is aligned for it; the caller guarantees that it is valid.
    unsafe {
        match size_of::<T>() {
            1 => AtomicU8::from_ptr(target.cast()).store(transmute_copy(&value), STORE),
            2 => AtomicU16::from_ptr(target.cast()).store(transmute_copy(&value), STORE),
            4 => AtomicU32::from_ptr(target.cast()).store(transmute_copy(&value), STORE),
            _ => AtomicU64::from_ptr(target.cast()).store(transmute_copy(&value), STORE),
        }
    }
}

/// Loads one value that other PEs may be writing: in one piece if it is a word.
///
/// # Safety
/// `source` is valid for reads of a `T`, aligned for it, written by others only through this module, atomics
/// or other processes, and every bit pattern is a valid `T`.
#[inline(always)]
pub unsafe fn load<T: Copy>(source: *const T) -> T {
    if !is_word::<T>() {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: the caller guarantees `source`; `value` has room for a `T`, and any bit pattern is valid.
        return unsafe {
            copy(value.as_mut_ptr().cast(), source.cast(), size_of::<T>());
            value.assume_init()
        };
    }
    // SAFETY: as in `store`; every bit pattern is a valid `T`.
    unsafe {
        match size_of::<T>() {
            1 => transmute_copy(&AtomicU8::from_ptr(source.cast_mut().cast()).load(LOAD)),
            2 => transmute_copy(&AtomicU16::from_ptr(source.cast_mut().cast()).load(LOAD)),
            4 => transmute_copy(&AtomicU32::from_ptr(source.cast_mut().cast()).load(LOAD)),
            _ => transmute_copy(&AtomicU64::from_ptr(source.cast_mut().cast()).load(LOAD)),
        }
    }
}

/// Copies a run of bytes as `copy` does; a run of 1, 2, 4 or 8 bytes moves in one piece if its place in
/// shared memory is aligned.
///
/// # Safety
/// As `copy`.
pub unsafe fn transfer(target: *mut u8, source: *const u8, bytes: usize) {
    macro_rules! word {
        ($word:ty) => {{
            let is_aligned = |address: usize| address.is_multiple_of(size_of::<$word>());
            let mut word = MaybeUninit::<$word>::uninit();
            let at_word: *mut u8 = word.as_mut_ptr().cast();
            // SAFETY: the caller guarantees both ends, whose alignment is checked; the word is a local
            // variable.
            unsafe {
                match is_aligned(source as usize) {
                    true => drop(word.write(load(source.cast::<$word>()))),
                    false => copy(at_word, source, bytes),
                }
                match is_aligned(target as usize) {
                    true => store(target.cast::<$word>(), word.assume_init()),
                    false => copy(target, at_word, bytes),
                }
            }
        }};
    }
    match bytes {
        1 => word!(u8),
        2 => word!(u16),
        4 => word!(u32),
        8 => word!(u64),
        // SAFETY: the caller guarantees both ends.
        _ => unsafe { copy(target, source, bytes) },
    }
}

/// Copies a run of bytes when either end may be accessed by other PEs. The order and the size of the pieces
/// are not specified.
///
/// # Safety
/// `source` is valid for reads and `target` for writes of `bytes` bytes, and they do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub unsafe fn copy(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller guarantees what both require.
    unsafe {
        match bytes < STRING_BYTES {
            true => memcpy(target, source, bytes),
            false => copy_long(target, source, bytes),
        }
    }
}

/// From this length on the C library may copy by the processor's string instruction (`rep movsb`).
#[cfg(all(target_arch = "x86_64", not(miri)))]
const STRING_BYTES: usize = 2048;
/// A shorter piece, which it copies by vectors: for processors without AVX.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const PIECE_BYTES: usize = 1920;

/// Whether the string instruction is slow: the target is 1 to 31 bytes behind the source, modulo the size of
/// a page. AMD's processors then take up to 28 times as long (docs/decisions/0003-opaque-copy.md). Never on
/// other architectures.
pub const fn is_slow_distance(target: usize, source: usize) -> bool {
    const PAGE_BYTES: usize = 4096;
    cfg!(target_arch = "x86_64") && (target.wrapping_sub(source).wrapping_sub(1) & (PAGE_BYTES - 1)) < 31
}

/// Copies a long run of bytes, by vectors where the string instruction is slow.
///
/// # Safety
/// As `copy`; there are at least `STRING_BYTES`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(never)]
unsafe fn copy_long(target: *mut u8, source: *const u8, bytes: usize) {
    let is_slow = is_slow_distance(target as usize, source as usize);
    if is_slow && cfg!(not(tsan)) && is_x86_feature_detected!("avx") {
        // SAFETY: the caller guarantees both ranges, and the processor has the instructions.
        return unsafe { copy_by_vectors(target, source, bytes) };
    }
    let piece = if is_slow { PIECE_BYTES } else { bytes };
    for start in (0..bytes).step_by(piece) {
        // SAFETY: the piece lies in both ranges, which the caller guarantees.
        unsafe { memcpy(target.add(start), source.add(start), piece.min(bytes - start)) };
    }
}

/// Copies a long run of bytes by vectors, with aligned stores.
///
/// # Safety
/// As `copy_long`; the processor has AVX.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
unsafe fn copy_by_vectors(target: *mut u8, source: *const u8, bytes: usize) {
    const BLOCK_BYTES: usize = 128;
    let front = target.align_offset(32);
    let blocks = (bytes - front) / BLOCK_BYTES;
    let rest = front + blocks * BLOCK_BYTES;
    // SAFETY: the caller guarantees both ranges, of which front, blocks and rest are parts; there is a block.
    // Behind the front the target is aligned, as `vmovaps` needs it. The compiler sees no access, as in
    // `memcpy`.
    unsafe {
        memcpy(target, source, front);
        std::arch::asm!(
            "2:",
            "vmovups {a}, [{source}]",
            "vmovups {b}, [{source} + 32]",
            "vmovups {c}, [{source} + 64]",
            "vmovups {d}, [{source} + 96]",
            "vmovaps [{target}], {a}",
            "vmovaps [{target} + 32], {b}",
            "vmovaps [{target} + 64], {c}",
            "vmovaps [{target} + 96], {d}",
            "sub {source}, -128",
            "sub {target}, -128",
            "dec {blocks}",
            "jnz 2b",
            source = inout(reg) source.add(front) => _,
            target = inout(reg) target.add(front) => _,
            blocks = inout(reg) blocks => _,
            a = out(ymm_reg) _,
            b = out(ymm_reg) _,
            c = out(ymm_reg) _,
            d = out(ymm_reg) _,
            options(nostack),
        );
        // Without it instructions for shorter vectors take longer afterwards on some processors.
        std::arch::x86_64::_mm256_zeroupper();
        memcpy(target.add(rest), source.add(rest), bytes - rest);
    }
}

/// Calls the C library's `memcpy`.
///
/// # Safety
/// As `copy`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn memcpy(target: *mut u8, source: *const u8, bytes: usize) {
    // The compiler aligns the stack in the prologue. It may move that behind this call, unless the call uses
    // the frame.
    let mut anchor = MaybeUninit::<usize>::uninit();
    // SAFETY: the C calling convention: three arguments in rdi, rsi, rdx, all caller-saved registers declared
    // clobbered, the stack aligned by the compiler as `nostack` is absent and the frame is used. The caller
    // guarantees what memcpy itself requires.
    unsafe {
        std::arch::asm!(
            "call qword ptr [rip + {memcpy}@GOTPCREL]",
            memcpy = sym libc::memcpy,
            inout("rax") anchor.as_mut_ptr() => _,
            inout("rdi") target => _,
            inout("rsi") source => _,
            inout("rdx") bytes => _,
            clobber_abi("C"),
        );
    }
}

/// Whether [`stream`] has streaming stores on this processor. ThreadSanitizer does not see them.
pub const CAN_STREAM: bool = cfg!(all(target_arch = "x86_64", not(any(miri, tsan))));

/// Copies a run of bytes as `copy` does, but past the caches: by streaming stores, where [`CAN_STREAM`] says
/// that there are any. They do not fetch the lines that they write, and they leave the lines of the target in
/// no cache. All stores are ordered before the following ones, so that a release store publishes them.
///
/// # Safety
/// As `copy`.
#[cfg(all(target_arch = "x86_64", not(any(miri, tsan))))]
pub unsafe fn stream(target: *mut u8, source: *const u8, bytes: usize) {
    const LINE_BYTES: usize = 64;
    let front = target.align_offset(LINE_BYTES).min(bytes);
    let lines = (bytes - front) / LINE_BYTES;
    // SAFETY: the caller guarantees both ranges, of which front, lines and rest are parts.
    unsafe {
        copy(target, source, front);
        if lines > 0 {
            stream_lines(target.add(front), source.add(front), lines);
        }
        let rest = front + lines * LINE_BYTES;
        copy(target.add(rest), source.add(rest), bytes - rest);
    }
}

/// Copies cache lines by streaming stores.
///
/// # Safety
/// As `copy`; the target is aligned to a line, and there is at least one.
#[cfg(all(target_arch = "x86_64", not(any(miri, tsan))))]
unsafe fn stream_lines(target: *mut u8, source: *const u8, lines: usize) {
    // SAFETY: the caller guarantees both ranges, and the alignment that `movntps` needs. The compiler sees no
    // access, as in `copy`. Streaming stores are not ordered with other stores: `sfence` orders them.
    unsafe {
        std::arch::asm!(
            "2:",
            "movups {a}, [{source}]",
            "movups {b}, [{source} + 16]",
            "movups {c}, [{source} + 32]",
            "movups {d}, [{source} + 48]",
            "movntps [{target}], {a}",
            "movntps [{target} + 16], {b}",
            "movntps [{target} + 32], {c}",
            "movntps [{target} + 48], {d}",
            "add {source}, 64",
            "add {target}, 64",
            "dec {lines}",
            "jnz 2b",
            "sfence",
            source = inout(reg) source => _,
            target = inout(reg) target => _,
            lines = inout(reg) lines => _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
}

/// Copies a run of bytes as `copy` does.
///
/// # Safety
/// As `copy`.
#[cfg(any(miri, tsan, not(target_arch = "x86_64")))]
pub unsafe fn stream(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller guarantees both ranges.
    unsafe { copy(target, source, bytes) }
}

/// Copies a run of bytes when either end may be accessed by other PEs. The order and the size of the pieces
/// are not specified.
///
/// # Safety
/// `source` is valid for reads and `target` for writes of `bytes` bytes, and they do not overlap.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub unsafe fn copy(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the C calling convention: three arguments in x0, x1, x2, all caller-saved registers and the
    // link register declared clobbered, the stack aligned as always. The caller guarantees what memcpy itself
    // requires.
    unsafe {
        std::arch::asm!(
            "bl {memcpy}",
            memcpy = sym libc::memcpy,
            inout("x0") target => _,
            inout("x1") source => _,
            inout("x2") bytes => _,
            clobber_abi("C"),
        );
    }
}

/// Copies a run of bytes when either end may be accessed by other PEs, byte by byte through atomics: the form
/// that the Miri interpreter can follow, and the one for other processors.
///
/// # Safety
/// `source` is valid for reads and `target` for writes of `bytes` bytes, and they do not overlap.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub unsafe fn copy(target: *mut u8, source: *const u8, bytes: usize) {
    for i in 0..bytes {
        // SAFETY: the caller guarantees both ranges.
        unsafe {
            let byte = AtomicU8::from_ptr(source.add(i).cast_mut()).load(LOAD);
            AtomicU8::from_ptr(target.add(i)).store(byte, STORE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_runs_are_copied_at_every_distance() {
        let source: Vec<u8> = (0..20_000_u32).map(|i| (i * 7 + i / 256) as u8).collect();
        let mut target = vec![0_u8; 3 * 4096 + 20_000];
        let start = target.as_ptr().align_offset(4096) + source.as_ptr() as usize % 4096;
        for distance in [0, 1, 8, 16, 31, 32, 4095] {
            for bytes in [2047, 2048, 2049, 1920 * 3, 1920 * 3 + 1, 19_999] {
                target.fill(0xFF);
                let place = &mut target[start + distance..];
                assert_eq!(
                    is_slow_distance(place.as_ptr() as usize, source.as_ptr() as usize),
                    cfg!(target_arch = "x86_64") && (1..32).contains(&distance)
                );
                // SAFETY: both ranges lie in their vectors.
                unsafe { copy(place.as_mut_ptr(), source.as_ptr(), bytes) };
                assert_eq!(place[..bytes], source[..bytes], "{bytes} bytes at distance {distance}");
                let others = target[..start + distance].iter().chain(&target[start + distance + bytes..]);
                assert!(others.copied().all(|byte| byte == 0xFF), "{bytes} bytes at distance {distance}");
            }
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Triple(u32, u32, u32);

    #[test]
    fn words_and_structs_go_there_and_back() {
        fn round<T: Copy + PartialEq + std::fmt::Debug>(value: T, other: T) {
            let mut place = other;
            // SAFETY: `place` is a live local variable that no other thread accesses, and all bit patterns
            // are valid here.
            let back = unsafe {
                store(&raw mut place, value);
                load(&raw const place)
            };
            assert_eq!((back, place), (value, value));
        }
        round(7u8, 0);
        round(-7i16, 0);
        round(1.5f32, 0.0);
        round(u64::MAX, 0);
        round([1u8, 2, 3, 4], [0; 4]);
        round(Triple(1, 2, 3), Triple(0, 0, 0));
        round([9u64; 5], [0; 5]);
    }

    proptest! {
        #[test]
        fn streamed_bytes_arrive_and_no_others(
            source in prop::collection::vec(any::<u8>(), 0..600),
            shifts: (u8, u8),
        ) {
            let (shift, skipped) = (shifts.0 as usize % 64, source.len().min(shifts.1 as usize % 64));
            let source = &source[skipped..];
            let mut model = vec![0xA5_u8; source.len() + 128];
            let mut ours = model.clone();
            model[shift..shift + source.len()].copy_from_slice(source);
            // SAFETY: the target range lies inside `ours`, which is 128 bytes longer than the source.
            unsafe { stream(ours.as_mut_ptr().add(shift), source.as_ptr(), source.len()) };
            prop_assert_eq!(ours, model);
        }

        #[test]
        fn copy_equals_the_slice_copy(
            source in prop::collection::vec(any::<u8>(), 0..600),
            shift in 0usize..16,
        ) {
            let mut model = vec![0xA5u8; source.len() + 32];
            let mut ours = model.clone();
            model[shift..shift + source.len()].copy_from_slice(&source);
            // SAFETY: the target range lies inside `ours`, which is 32 bytes longer than the source.
            unsafe { copy(ours.as_mut_ptr().add(shift), source.as_ptr(), source.len()) };
            prop_assert_eq!(ours, model);
        }
    }
}
