//! Fetching memory into the cache before its use, so that the fetches overlap with the computation of FFTs.
//! Invariant: nothing but the time of a program depends on it.

use num_complex::Complex64;

/// Elements in a cache line.
const LINE_LEN: usize = 4;

/// Begins to fetch `count` elements of `field` from `start` on, or as many as exist.
#[inline]
pub(super) fn prefetch(field: &[Complex64], start: usize, count: usize) {
    let end = field.len().min(start.saturating_add(count));
    for line in field.get(start..end).unwrap_or_default().chunks(LINE_LEN) {
        fetch(&line[0]);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fetch(element: &Complex64) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch changes no memory and never faults, as the instruction set promises for any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
fn fetch(_element: &Complex64) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_may_be_asked_for() {
        let field = [Complex64::ONE; 10];
        for (start, count) in [(0, 10), (9, 1), (9, 5), (10, 1), (11, 3), (0, 0), (5, usize::MAX)] {
            prefetch(&field, start, count);
        }
        assert_eq!(field, [Complex64::ONE; 10]);
    }
}
