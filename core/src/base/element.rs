//! The types of values that symmetric memory may hold.

use num_complex::Complex;
use std::num::Wrapping;

/// A type whose values may be stored in symmetric memory, where any PE reads and writes them at any time.
///
/// Implemented for the numbers, complex numbers and arrays of elements; `pelago` derives it for `#[repr(C)]`
/// structs of elements without padding.
///
/// # Safety
/// Every bit pattern of the type's size is a valid value, and the type has no padding, no pointers and no
/// references: one process writes the value and another one reads it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot live in symmetric memory",
    note = "elements are numbers, complex numbers, arrays of elements, and `#[repr(C)]` structs that \
            derive `pelago::Element`"
)]
pub unsafe trait Element: Copy + Send + Sync + 'static {}

macro_rules! elements {
    ($($number:ty)*) => {
        $(
            // SAFETY: a primitive number: no padding, no pointer, every bit pattern valid.
            unsafe impl Element for $number {}
        )*
    };
}

elements!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: two numbers of one type, declared `repr(C)`: no padding.
unsafe impl Element for Complex<f32> {}
// SAFETY: two numbers of one type, declared `repr(C)`: no padding.
unsafe impl Element for Complex<f64> {}
// SAFETY: elements one after another, without anything between.
unsafe impl<T: Element, const N: usize> Element for [T; N] {}
// SAFETY: one element, declared `repr(transparent)`: no padding.
unsafe impl<T: Element> Element for Wrapping<T> {}

/// The bytes of elements, as they are transferred.
pub fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: elements have no padding and any bytes are valid, as `Element` promises.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// Views bytes as elements; `None` if their number is not a multiple of the size of an element, or if they
/// are not aligned for it.
pub fn elements_of<T: Element>(bytes: &[u8]) -> Option<&[T]> {
    let size = size_of::<T>();
    if size == 0 || !bytes.len().is_multiple_of(size) || !bytes.as_ptr().cast::<T>().is_aligned() {
        return None;
    }
    // SAFETY: the length and the alignment were checked above, and any bytes are an element, as `Element`
    // promises.
    Some(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size) })
}
