//! Sweeps: one pass over two runs of elements, which others may be writing, that combines them into a third.
//!
//! Invariant: shared memory is accessed by `fabric::copy`, or by loads and stores of vectors that are written
//! in assembler, which is foreign machine code for the compiler, as is the call of `memcpy` in `fabric::copy`
//! (docs/decisions/0003-opaque-copy.md). So a race gives elements that are old, new or mixed, but nothing
//! undefined. Elements are in registers or on the stack when they are combined. Places need no alignment.

use crate::base::element::Element;
use pelago_fabric::copy;
use std::mem::{MaybeUninit, align_of};

/// Up to this many elements are combined one by one if they are aligned.
const FEW: usize = 16;
/// Bytes that are copied at once where there are no vectors; larger elements are copied one by one.
const BLOCK_BYTES: usize = 2048;

/// Combines element by element: `into[i] = combine(left[i], right[i])`.
///
/// # Safety
/// `left` and `right` are valid for reads and `into` for writes of `bytes` bytes, whole elements. `into` is
/// `left`, is `right`, or overlaps neither. Others may access all of it meanwhile, if they do so through
/// `fabric::copy`, this module, atomics or from other processes.
#[inline(always)]
pub unsafe fn sweep<T: Element>(
    left: *const u8,
    right: *const u8,
    into: *mut u8,
    bytes: usize,
    combine: impl Fn(T, T) -> T,
) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the caller guarantees all places, and the rest begins where the vectors have ended.
    unsafe {
        let done = vectors::sweep(left, right, into, bytes, &combine);
        let (left, right, into, bytes) = (left.add(done), right.add(done), into.add(done), bytes - done);
        let is_aligned = (left as usize | right as usize | into as usize).is_multiple_of(align_of::<T>());
        if is_aligned && bytes <= FEW * size_of::<T>() {
            one_by_one(left, right, into, bytes, combine);
        } else if const { size_of::<T>() <= BLOCK_BYTES } {
            in_blocks(left, right, into, bytes, combine);
        } else {
            huge(left, right, into, bytes, combine);
        }
    }
}

/// Loads, combines and stores elements that are aligned; each in one piece if it is a word.
///
/// # Safety
/// As [`sweep`], and all places are aligned for elements.
#[inline(always)]
unsafe fn one_by_one<T: Element>(
    left: *const u8,
    right: *const u8,
    into: *mut u8,
    bytes: usize,
    combine: impl Fn(T, T) -> T,
) {
    let (left, right, into) = (left.cast::<T>(), right.cast::<T>(), into.cast::<T>());
    for i in 0..bytes / size_of::<T>() {
        // SAFETY: the caller guarantees all places, and each element lies inside; every bit pattern is one.
        unsafe { copy::store(into.add(i), combine(copy::load(left.add(i)), copy::load(right.add(i)))) };
    }
}

/// Combines elements that are too large for a block.
///
/// # Safety
/// As [`sweep`].
#[cold]
unsafe fn huge<T: Element>(
    left: *const u8,
    right: *const u8,
    into: *mut u8,
    bytes: usize,
    combine: impl Fn(T, T) -> T,
) {
    for start in (0..bytes).step_by(size_of::<T>()) {
        let (mut ours, mut theirs) = (MaybeUninit::<T>::uninit(), MaybeUninit::<T>::uninit());
        // SAFETY: the caller guarantees all places; both locals are written before they are read, and every
        // bit pattern is an element.
        unsafe {
            copy::copy(ours.as_mut_ptr().cast(), left.add(start), size_of::<T>());
            copy::copy(theirs.as_mut_ptr().cast(), right.add(start), size_of::<T>());
            let result = combine(ours.assume_init(), theirs.assume_init());
            copy::copy(into.add(start), (&raw const result).cast(), size_of::<T>());
        }
    }
}

/// Memory on the stack. The alignment of elements is asked for in [`Combiner`](super::Combiner).
#[repr(C, align(64))]
struct Block(MaybeUninit<[u8; BLOCK_BYTES]>);

impl Block {
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// Copies blocks to the stack, combines them there, and copies the results out.
///
/// # Safety
/// As [`sweep`].
#[inline(always)]
unsafe fn in_blocks<T: Element>(
    left: *const u8,
    right: *const u8,
    into: *mut u8,
    bytes: usize,
    combine: impl Fn(T, T) -> T,
) {
    let (mut ours, mut theirs) = (Block(MaybeUninit::uninit()), Block(MaybeUninit::uninit()));
    let (ours, theirs) = (ours.start(), theirs.start());
    let block_bytes = BLOCK_BYTES - BLOCK_BYTES % size_of::<T>();
    let mut start = 0;
    while start < bytes {
        let length = (bytes - start).min(block_bytes);
        // SAFETY: the caller guarantees the places; the blocks on the stack are aligned for elements, are
        // written before they become slices, and every bit pattern is an element.
        unsafe {
            copy::copy(ours, left.add(start), length);
            copy::copy(theirs, right.add(start), length);
            let len = length / size_of::<T>();
            let results = std::slice::from_raw_parts_mut(ours.cast::<T>(), len);
            each(results, std::slice::from_raw_parts(theirs.cast(), len), &combine);
            copy::copy(into.add(start), ours, length);
        }
        start += length;
    }
}

/// Combines two slices: `left[i] = combine(left[i], right[i])`; a loop that the compiler can vectorise.
#[inline(always)]
fn each<T: Copy>(left: &mut [T], right: &[T], combine: impl Fn(T, T) -> T) {
    for (left, &right) in left.iter_mut().zip(right) {
        *left = combine(*left, right);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod vectors {
    use super::{Element, align_of, each};
    use std::arch::asm;
    use std::arch::x86_64::__m256i;

    /// Four vectors, which are loaded, combined and stored at once.
    #[derive(Clone, Copy)]
    struct Chunk([__m256i; 4]);

    /// Sweeps whole chunks, and returns the number of bytes swept: 0 if the processor has no AVX2, or the
    /// elements do not divide a chunk.
    ///
    /// # Safety
    /// As [`sweep`](super::sweep).
    #[inline(always)]
    pub unsafe fn sweep<T: Element>(
        left: *const u8,
        right: *const u8,
        into: *mut u8,
        bytes: usize,
        combine: &impl Fn(T, T) -> T,
    ) -> usize {
        let fits =
            size_of::<Chunk>().is_multiple_of(size_of::<T>()) && align_of::<T>() <= align_of::<Chunk>();
        if !fits || bytes < size_of::<Chunk>() || !is_x86_feature_detected!("avx2") {
            return 0;
        }
        // SAFETY: the processor has AVX2, and the caller guarantees that all places are valid.
        unsafe { sweep_chunks(left, right, into, bytes, combine) }
    }

    #[target_feature(enable = "avx2")]
    unsafe fn sweep_chunks<T: Element>(
        left: *const u8,
        right: *const u8,
        into: *mut u8,
        bytes: usize,
        combine: &impl Fn(T, T) -> T,
    ) -> usize {
        let len = size_of::<Chunk>() / size_of::<T>();
        let mut at = 0;
        while bytes - at >= size_of::<Chunk>() {
            // SAFETY: the caller guarantees all places, and the chunk lies inside; a chunk on the stack is
            // aligned for elements, of which it has `len`, and every bit pattern is one.
            unsafe {
                let (mut ours, theirs) = (load(left.add(at)), load(right.add(at)));
                let results = std::slice::from_raw_parts_mut((&raw mut ours).cast::<T>(), len);
                each(results, std::slice::from_raw_parts((&raw const theirs).cast(), len), combine);
                store(into.add(at), ours);
            }
            at += size_of::<Chunk>();
        }
        at
    }

    /// # Safety
    /// A chunk may be read there, by foreign machine code.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load(place: *const u8) -> Chunk {
        let (a, b, c, d): (__m256i, __m256i, __m256i, __m256i);
        // SAFETY: the caller guarantees that the place is valid; nothing but the four registers is written.
        unsafe {
            asm!(
                "vmovdqu {a}, [{place}]",
                "vmovdqu {b}, [{place} + 32]",
                "vmovdqu {c}, [{place} + 64]",
                "vmovdqu {d}, [{place} + 96]",
                place = in(reg) place,
                a = out(ymm_reg) a,
                b = out(ymm_reg) b,
                c = out(ymm_reg) c,
                d = out(ymm_reg) d,
                options(nostack, preserves_flags, readonly),
            );
        }
        Chunk([a, b, c, d])
    }

    /// # Safety
    /// A chunk may be written there, by foreign machine code.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store(place: *mut u8, chunk: Chunk) {
        let [a, b, c, d] = chunk.0;
        // SAFETY: the caller guarantees that the place is valid; no register is written.
        unsafe {
            asm!(
                "vmovdqu [{place}], {a}",
                "vmovdqu [{place} + 32], {b}",
                "vmovdqu [{place} + 64], {c}",
                "vmovdqu [{place} + 96], {d}",
                place = in(reg) place,
                a = in(ymm_reg) a,
                b = in(ymm_reg) b,
                c = in(ymm_reg) c,
                d = in(ymm_reg) d,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(any(miri, not(target_arch = "x86_64")))]
mod vectors {
    use super::Element;

    /// Sweeps nothing: here all goes in blocks.
    ///
    /// # Safety
    /// None; that of the other form.
    pub unsafe fn sweep<T: Element>(
        _: *const u8,
        _: *const u8,
        _: *mut u8,
        _: usize,
        _: &impl Fn(T, T) -> T,
    ) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every form of a sweep, for all elements or for those that its vectors leave over.
    #[derive(Clone, Copy, Debug)]
    enum Way {
        Chosen,
        OneByOne,
        Blocks,
        Huge,
    }

    fn run<T: Element>(
        way: Way,
        left: *const u8,
        right: *const u8,
        into: *mut u8,
        bytes: usize,
        f: fn(T, T) -> T,
    ) {
        // SAFETY: all tests below pass places that have this many bytes.
        unsafe {
            match way {
                Way::Chosen => sweep(left, right, into, bytes, f),
                Way::OneByOne => one_by_one(left, right, into, bytes, f),
                Way::Blocks => in_blocks(left, right, into, bytes, f),
                Way::Huge => huge(left, right, into, bytes, f),
            }
        }
    }

    fn all_ways_agree<T: Element + PartialEq + std::fmt::Debug>(element: fn(usize) -> T, f: fn(T, T) -> T) {
        for len in [0, 1, 2, 15, 16, 17, 31, 33, 127, 128, 129, 1000] {
            let left: Vec<T> = (0..len).map(element).collect();
            let right: Vec<T> = (0..len).map(|i| element(7 * i + 3)).collect();
            let expected: Vec<T> = left.iter().zip(&right).map(|(&a, &b)| f(a, b)).collect();
            let bytes = size_of_val(&left[..]);
            for way in [Way::Chosen, Way::OneByOne, Way::Blocks, Way::Huge] {
                let mut into = left.clone();
                let (start, other) = (into.as_mut_ptr().cast::<u8>(), right.as_ptr().cast());
                run(way, start, other, start, bytes, f);
                assert_eq!(into, expected, "{way:?} of {len} elements into the left ones");
                let mut into = right.clone();
                let (start, other) = (into.as_mut_ptr().cast::<u8>(), left.as_ptr().cast());
                run(way, other, start, start, bytes, f);
                assert_eq!(into, expected, "{way:?} of {len} elements into the right ones");
            }
        }
    }

    #[test]
    fn all_ways_do_the_same() {
        all_ways_agree(|i| i as u8, |a: u8, b| a.wrapping_mul(3).wrapping_sub(b));
        all_ways_agree(|i| i as f64 * 0.1, |a: f64, b| a - b);
        all_ways_agree(
            |i| [i as u32, !i as u32, 7],
            |a: [u32; 3], b| [a[0] ^ b[2], b[1], a[2].wrapping_add(b[0])],
        );
        all_ways_agree(
            |i| [i as u64; 16],
            |a: [u64; 16], b| std::array::from_fn(|i| a[i].wrapping_sub(b[15 - i])),
        );
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn vectors_take_whole_chunks_of_elements_that_divide_them() {
        fn swept<T: Element>(bytes: usize) -> usize {
            let mut memory = vec![0u8; bytes];
            let start = memory.as_mut_ptr();
            // SAFETY: the memory has this many bytes.
            unsafe { vectors::sweep(start, start, start, bytes, &|a: T, _| a) }
        }
        let chunks = |bytes: usize| if is_x86_feature_detected!("avx2") { bytes / 128 * 128 } else { 0 };
        assert_eq!(swept::<u8>(127), 0);
        assert_eq!(swept::<u8>(128), chunks(128));
        assert_eq!(swept::<f64>(8 * 77), chunks(8 * 77));
        assert_eq!(swept::<[u32; 3]>(1200), 0, "12 bytes do not divide a chunk");
        assert_eq!(swept::<[u64; 32]>(2560), 0, "more than a chunk");
    }
}
