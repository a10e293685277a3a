//! Symmetric objects as collective operations use them: elements of views that are made once, when the
//! library is opened, so that a call changes no reference count.
//!
//! Invariant: elements that are moved and not computed with are treated as unsigned numbers of their size.
//! Objects lie at multiples of their size in the arrays, as they are aligned to it; complex numbers, whose
//! alignment is only half their size, have two views.

use super::{Memory, RemoteAddress};
use crate::base::abi::LongDouble;
use crate::base::fault::{Call, fail};
use num_complex::Complex;
use pelago::{Element, Span, View};
use std::sync::OnceLock;

/// An argument of a collective operation that names elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    Source,
    Dest,
}

impl Operand {
    /// The name of the argument.
    fn name(self) -> &'static str {
        match self {
            Operand::Source => "source",
            Operand::Dest => "dest",
        }
    }
}

/// A type of the interface, and the element type that it is treated as.
pub(crate) trait Stored: Element {
    /// A type of the same size.
    type Unit: Unit;
}

macro_rules! stored {
    ($($element:ty => $unit:ty,)*) => {
        $(impl Stored for $element { type Unit = $unit; })*
    };
}

stored! {
    i8 => u8, u8 => u8, i16 => u16, u16 => u16, i32 => u32, u32 => u32, f32 => u32,
    i64 => u64, u64 => u64, f64 => u64, LongDouble => u128,
    Complex<f32> => Complex<f32>, Complex<f64> => Complex<f64>,
}

/// Element types that have views.
pub(crate) trait Unit: Element {
    /// The view of one array.
    fn of(array: &'static Array) -> &'static Sight<Self>;
}

/// An array as elements of one type.
pub(crate) struct Sight<U: Element> {
    whole: View<'static, U>,
    /// The same, from an offset of half an element on.
    half: OnceLock<View<'static, U>>,
}

macro_rules! units {
    ($($name:ident: $unit:ty,)*) => {
        /// One of the two symmetric arrays.
        pub(crate) struct Array {
            /// Its address on this PE.
            start: usize,
            /// Its size in bytes; 0 if objects are checked, so that the fast path is never taken.
            bytes: usize,
            raw: View<'static, u8>,
            $($name: Sight<$unit>,)*
        }

        impl Array {
            fn new(array: &View<'static, u8>) -> Array {
                // SAFETY: the library keeps the arrays for longer than this, and has no exclusive phases.
                unsafe {
                    Array {
                        start: array.reach().own as usize,
                        bytes: array.len(),
                        raw: array.cast(),
                        $($name: Sight { whole: array.cast(), half: OnceLock::new() },)*
                    }
                }
            }
        }

        $(
            impl Unit for $unit {
                #[inline(always)]
                fn of(array: &'static Array) -> &'static Sight<$unit> {
                    &array.$name
                }
            }
        )*
    };
}

units! {
    bytes_1: u8, bytes_2: u16, bytes_4: u32, bytes_8: u64, bytes_16: u128,
    complex_8: Complex<f32>, complex_16: Complex<f64>,
}

/// Both arrays.
pub(crate) struct Arrays {
    heap: Array,
    statics: OnceLock<Array>,
}

impl Arrays {
    /// The heap; the other array is looked up when a call names an object in it. If the heap is not plain,
    /// every object is looked up.
    pub(crate) fn new(heap: &View<'static, u8>, is_plain: bool) -> Arrays {
        let mut heap = Array::new(heap);
        if !is_plain {
            heap.bytes = 0;
        }
        Arrays { heap, statics: OnceLock::new() }
    }
}

impl Memory {
    /// The elements that an argument points to. If there are 0 elements, the argument may point anywhere.
    #[inline(always)]
    pub(crate) fn span<U: Unit>(
        &'static self,
        call: Call,
        operand: Operand,
        address: *const U,
        count: usize,
    ) -> Span<'static, U> {
        let array = &self.arrays.heap;
        let offset = (address as usize).wrapping_sub(array.start);
        if offset >= array.bytes
            || count > (array.bytes - offset) / size_of::<U>()
            || !offset.is_multiple_of(size_of::<U>())
        {
            return self.span_slowly(call, operand, address as usize, count);
        }
        let index = offset / size_of::<U>();
        U::of(array).whole.span(index..index + count)
    }

    #[cold]
    #[inline(never)]
    fn span_slowly<U: Unit>(
        &'static self,
        call: Call,
        operand: Operand,
        address: usize,
        count: usize,
    ) -> Span<'static, U> {
        let (arrays, size) = (&self.arrays, size_of::<U>());
        if count == 0 {
            return U::of(&arrays.heap).whole.span(0..0);
        }
        let (bytes, what) = (count.saturating_mul(size), operand.name());
        let is_source = operand == Operand::Source;
        let constants = is_source.then(|| self.statics.find_constants(address, bytes)).flatten();
        let remote = match constants {
            Some((array, offset)) => RemoteAddress { array, offset },
            None => self.locate(call, what, address, bytes),
        };
        let array = match std::ptr::eq(remote.array, &raw const *self.heap) {
            true => &arrays.heap,
            false => arrays.statics.get_or_init(|| Array::new(remote.array)),
        };
        if !address.is_multiple_of(align_of::<U>()) {
            let align_bytes = align_of::<U>();
            fail(
                call,
                format_args!(
                    "{what} is at {address:#x}, but its elements begin at multiples of {align_bytes}"
                ),
            );
        }
        let sight = U::of(array);
        let (index, rest) = (remote.offset / size, remote.offset % size);
        match rest {
            0 => sight.whole.span(index..index + count),
            _ => {
                // SAFETY: as for the whole array.
                let half = sight.half.get_or_init(|| unsafe { array.raw.cast_from(size / 2) });
                half.span(index..index + count)
            }
        }
    }
}
