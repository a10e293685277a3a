//! This PE's part of a distributed array as a slice.
//!
//! Invariant: only the files of the disciplines create slices, each where its discipline excludes other
//! accesses.

use crate::upc::SharedArray;
use pelago_core::base::element::Element;
use pelago_core::memory::segment::Part;

/// The own part, as a slice.
///
/// # Safety
/// For as long as the slice lives, no PE writes to this PE's part.
pub(super) unsafe fn shared<'a, T: Element>(parts: &'a SharedArray<'_, T>) -> &'a [T] {
    let (part, len) = own(parts);
    // SAFETY: the part has `len` elements, is aligned for them and lives as long as the array; the caller
    // guarantees that they stay unchanged.
    unsafe { std::slice::from_raw_parts(part.as_ptr(), len) }
}

/// The own part, as a mutable slice.
///
/// # Safety
/// For as long as the slice lives, no other code accesses this PE's part.
#[expect(clippy::mut_from_ref, reason = "the array is a handle; who is alone with the part, callers know")]
pub(super) unsafe fn exclusive<'a, T: Element>(parts: &'a SharedArray<'_, T>) -> &'a mut [T] {
    let (part, len) = own(parts);
    // SAFETY: the part has `len` elements; the caller guarantees that no other code accesses them.
    unsafe { part.slice(len) }
}

/// The own part, and the number of its elements.
fn own<T: Element>(parts: &SharedArray<'_, T>) -> (Part<T>, usize) {
    let view = parts.parts();
    (view.place.own(), parts.layout().count_on(view.region().my_rank()))
}
