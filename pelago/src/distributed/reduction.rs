//! Reductions of a distributed array: each PE folds its own part, the team exchanges the results, and each PE
//! folds these results in the order of ranks.
//!
//! Invariant: the result depends only on the elements, the layout and the operation, so it is the same on all
//! PEs, bit for bit.

use super::batch::zeros;
use crate::team::Team;
use crate::upc::SharedArray;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::coll::agreement_record::REDUCE;
use pelago_core::coll::reduction::{Combiner, ReduceOp, Reducible};
use std::sync::Arc;

/// The number of elements that are combined at the same time.
const LANES: usize = 256;
/// The bytes that a member sends to the others in one exchange.
const WORDS_BYTES: usize = 16;

/// Combines the elements of all PEs, of which this PE has `local`.
#[track_caller]
pub(super) fn reduce<T: Reducible>(
    parts: &SharedArray<'_, T>,
    op: ReduceOp,
    local: &[T],
) -> Result<Option<T>> {
    const { assert!(size_of::<T>() <= WORDS_BYTES, "a number has 16 bytes at most") };
    let (world, region) = (parts.parts().world(), parts.parts().region());
    let me = world.my_pe();
    let combiner = Combiner::of::<T>(op).ok_or_else(|| {
        let name = std::any::type_name::<T>();
        let reason = format!("{op} is not defined for {name}. See Reducible for what is");
        ErrorKind::BadDistributed { me, operation: "reduce", reason }
    })?;
    let mine = fold(&combiner, local);
    let team = match region.team() {
        None => world.team(),
        Some(core) => Team { world, core: Arc::clone(core) },
    };
    let all = team.exchange_words_of((REDUCE, combiner.code()), mine.map_or([0; 2], to_words))?;
    let with_elements = all.into_iter().enumerate().filter(|&(rank, _)| parts.layout().count_on(rank) > 0);
    let results: Vec<T> = with_elements.map(|(_, words)| from_words(words)).collect();
    Ok(fold(&combiner, &results))
}

/// Combines elements: first the elements at a constant distance, then the halves of the result.
#[track_caller]
fn fold<T: Reducible>(combiner: &Combiner, values: &[T]) -> Option<T> {
    let (first, rest) = values.split_at(values.len().min(LANES));
    let mut lanes = first.to_vec();
    rest.chunks(LANES).for_each(|chunk| combine(combiner, &mut lanes, chunk));
    while lanes.len() > 1 {
        let upper = lanes.split_off(lanes.len().div_ceil(2));
        combine(combiner, &mut lanes, &upper);
    }
    lanes.first().copied()
}

/// Combines elements with the first ones of `into`.
#[track_caller]
fn combine<T: Reducible>(combiner: &Combiner, into: &mut [T], with: &[T]) {
    let into = &mut into[..with.len()];
    let start: *mut u8 = into.as_mut_ptr().cast();
    // SAFETY: both slices have the bytes of `with`, whole elements of the combiner's type; they are different
    // slices of private memory, and `into` is the left operand itself.
    unsafe { combiner.combine(start, with.as_ptr().cast(), start, size_of_val(with)) };
}

/// The bytes of an element as words.
fn to_words<T: Reducible>(value: T) -> [u64; 2] {
    let mut words = [0u64; 2];
    // SAFETY: an element has no padding, and no more bytes than the words, as `reduce` asserts.
    unsafe {
        let source: *const u8 = (&raw const value).cast();
        std::ptr::copy_nonoverlapping(source, words.as_mut_ptr().cast(), size_of::<T>());
    }
    words
}

/// The element of these bytes.
fn from_words<T: Reducible>(words: [u64; 2]) -> T {
    let mut values = zeros::<T>(1);
    // SAFETY: the words have at least as many bytes as an element, as `reduce` asserts; any bytes are an
    // element.
    unsafe {
        let target: *mut u8 = values.as_mut_ptr().cast();
        std::ptr::copy_nonoverlapping(words.as_ptr().cast(), target, size_of::<T>());
    }
    values[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    #[test]
    fn every_element_is_combined_once() {
        let sum = Combiner::of::<u64>(ReduceOp::Sum).unwrap();
        for len in [0, 1, 2, 3, 255, 256, 257, 511, 512, 1000, 1025] {
            let values: Vec<u64> = (0..len).map(|i| 1 + i * i).collect();
            let expected = (len > 0).then(|| values.iter().sum());
            assert_eq!(fold(&sum, &values), expected, "{len}");
        }
        let least = Combiner::of::<i8>(ReduceOp::Min).unwrap();
        assert_eq!(fold(&least, &[3, -7, 5]), Some(-7));
    }

    #[test]
    fn elements_go_through_words() {
        assert_eq!(from_words::<i16>(to_words(-5i16)), -5);
        assert_eq!(from_words::<u128>(to_words(u128::MAX - 3)), u128::MAX - 3);
        let value = Complex::new(1.5f64, -0.0);
        assert_eq!(from_words::<Complex<f64>>(to_words(value)).im.to_bits(), value.im.to_bits());
    }
}
