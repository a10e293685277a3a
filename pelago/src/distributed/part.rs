//! This PE's part of a distributed array as a slice.
//!
//! Invariant: only the files of the disciplines make slices, each where its discipline keeps others away.

use crate::base::element::Element;
use crate::memory::segment::Part;
use crate::upc::SharedArray;

/// The own part, to read.
///
/// # Safety
/// For as long as the slice lives, nobody writes to this PE's part.
pub(super) unsafe fn shared<'a, T: Element>(parts: &'a SharedArray<'_, T>) -> &'a [T] {
    let (part, len) = own(parts);
    // SAFETY: the part has so many elements, is aligned for them and lives as long as the array; the caller
    // vouches that they stay as they are.
    unsafe { std::slice::from_raw_parts(part.as_ptr(), len) }
}

/// The own part, to write.
///
/// # Safety
/// For as long as the slice lives, nobody else accesses this PE's part.
#[expect(clippy::mut_from_ref, reason = "the array is a handle; who is alone with the part, callers know")]
pub(super) unsafe fn exclusive<'a, T: Element>(parts: &'a SharedArray<'_, T>) -> &'a mut [T] {
    let (part, len) = own(parts);
    // SAFETY: the part has so many elements; the caller vouches that nobody else accesses them.
    unsafe { part.slice(len) }
}

/// Where the own part lies, and how many of its places belong to elements.
fn own<T: Element>(parts: &SharedArray<'_, T>) -> (Part<T>, usize) {
    let view = parts.parts();
    (view.place.own(), parts.layout().count_on(view.region().my_rank()))
}
