//! Reduction operations: how two elements become one, for each type of element.
//!
//! Invariant: the result of an operation depends on its two operands alone, bit for bit, on every processor
//! and however the compiler arranges the loop. So a NaN that an operation yields is always the same one, the
//! quiet NaN without sign and payload, and all operations are commutative. `is_associative` tells whether the
//! result is the same in every grouping: sums and products of floating-point numbers are rounded, so theirs
//! is not.
//!
//! Minimum and maximum of floating-point numbers are those of IEEE 754-2019, section 9.6: -0 is less than +0,
//! and NaN if an operand is NaN.

mod combiner;
mod sweep;

pub use combiner::{Combine, Combiner, IntoCombiner};

use crate::base::element::Element;
use num_complex::Complex;
use std::fmt;
use sweep::sweep;

/// An operation that combines two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceOp {
    /// The sum; of integers modulo 2^bits.
    Sum,
    /// The product; of integers modulo 2^bits.
    Product,
    /// The lesser operand; of floating-point numbers NaN if one is NaN, and -0 is less than +0. Not for
    /// complex numbers.
    Min,
    /// The greater operand; of floating-point numbers NaN if one is NaN, and +0 is greater than -0. Not for
    /// complex numbers.
    Max,
    /// Bitwise and; for integers only, as the next two.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl ReduceOp {
    /// All of them.
    pub const ALL: [ReduceOp; 7] = [
        ReduceOp::Sum,
        ReduceOp::Product,
        ReduceOp::Min,
        ReduceOp::Max,
        ReduceOp::And,
        ReduceOp::Or,
        ReduceOp::Xor,
    ];

    /// Its name, as reports write it.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Product => "product",
            ReduceOp::Min => "min",
            ReduceOp::Max => "max",
            ReduceOp::And => "and",
            ReduceOp::Or => "or",
            ReduceOp::Xor => "xor",
        }
    }

    /// The operation of that name.
    pub fn from_name(name: &str) -> Option<ReduceOp> {
        ReduceOp::ALL.into_iter().find(|op| op.name() == name)
    }
}

impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Elements that reduction operations are defined for: the integers (all operations), the floating-point
/// numbers (sum, product, min, max) and the complex numbers (sum, product). For other elements, give a
/// function of two elements in the place of a [`ReduceOp`].
#[diagnostic::on_unimplemented(
    message = "`ReduceOp` is not defined for `{Self}`",
    note = "it is defined for integers, `f32`, `f64`, `Complex<f32>` and `Complex<f64>`; for other elements \
            give a function of two elements: `reduce_value(|a, b| ..., value)`, `all_reduce(|a, b| ..., ...)`"
)]
pub trait Reducible: Element + Sealed {
    /// Whether the operation is defined for this type.
    fn is_defined(op: ReduceOp) -> bool;

    /// Whether the result is the same, bit for bit, however three and more operands are grouped.
    fn is_associative(op: ReduceOp) -> bool;

    /// Combines element by element: `into[i] = left[i] op right[i]`.
    ///
    /// # Panics
    /// If the operation is not defined.
    ///
    /// # Safety
    /// As [`Combiner::combine`].
    #[doc(hidden)]
    unsafe fn combine(op: ReduceOp, left: *const u8, right: *const u8, into: *mut u8, bytes: usize);
}

/// The types that implement [`Reducible`] are fixed here: its users rely on defined bits.
pub trait Sealed {}

/// Implements [`Reducible::is_defined`] and [`Reducible::combine`] from a function for each operation.
macro_rules! combine {
    ($element:ty: $($op:ident => $function:expr,)*) => {
        fn is_defined(op: ReduceOp) -> bool {
            matches!(op, $(ReduceOp::$op)|*)
        }

        unsafe fn combine(op: ReduceOp, left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
            // SAFETY: the caller's promise is that of `sweep`.
            unsafe {
                match op {
                    $(ReduceOp::$op => sweep::<$element>(left, right, into, bytes, $function),)*
                    #[allow(unreachable_patterns, reason = "unsigned integers have all operations")]
                    _ => unreachable!("a combiner is made for operations that are defined"),
                }
            }
        }
    };
}

/// Two types of integers of one size, which differ in their order only.
macro_rules! integers {
    ($($unsigned:ident $signed:ident,)*) => {
        $(
            impl Sealed for $unsigned {}
            impl Reducible for $unsigned {
                fn is_associative(_: ReduceOp) -> bool {
                    true
                }

                combine! {
                    $unsigned:
                    Sum => $unsigned::wrapping_add,
                    Product => $unsigned::wrapping_mul,
                    Min => Ord::min,
                    Max => Ord::max,
                    And => |a, b| a & b,
                    Or => |a, b| a | b,
                    Xor => |a, b| a ^ b,
                }
            }

            impl Sealed for $signed {}
            impl Reducible for $signed {
                fn is_associative(_: ReduceOp) -> bool {
                    true
                }

                fn is_defined(_: ReduceOp) -> bool {
                    true
                }

                unsafe fn combine(
                    op: ReduceOp,
                    left: *const u8,
                    right: *const u8,
                    into: *mut u8,
                    bytes: usize,
                ) {
                    // SAFETY: the caller's promise is that of `sweep`, and of the integers without sign,
                    // which have the same size.
                    unsafe {
                        match op {
                            ReduceOp::Min => sweep::<$signed>(left, right, into, bytes, Ord::min),
                            ReduceOp::Max => sweep::<$signed>(left, right, into, bytes, Ord::max),
                            _ => $unsigned::combine(op, left, right, into, bytes),
                        }
                    }
                }
            }
        )*
    };
}

integers! { u8 i8, u16 i16, u32 i32, u64 i64, u128 i128, usize isize, }

/// Floating-point arithmetic whose every bit is defined.
trait Float: Copy {
    /// The one NaN for any NaN, everything else as it is.
    fn canonical(self) -> Self;
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn lesser(self, other: Self) -> Self;
    fn greater(self, other: Self) -> Self;
}

macro_rules! floats {
    ($($float:ty: $nan:literal,)*) => {
        $(
            impl Float for $float {
                #[inline(always)]
                fn canonical(self) -> $float {
                    if self.is_nan() { <$float>::from_bits($nan) } else { self }
                }

                #[inline(always)]
                fn sum(self, other: $float) -> $float {
                    (self + other).canonical()
                }

                #[inline(always)]
                fn product(self, other: $float) -> $float {
                    (self * other).canonical()
                }

                /// Chooses twice, once in each order. Of two different zeros each is chosen once, and `or`
                /// joins their signs. Of a NaN and another value each is chosen once too, and the `or` of
                /// both is a NaN.
                #[inline(always)]
                fn lesser(self, other: $float) -> $float {
                    let one = if self < other { self } else { other };
                    let two = if other < self { other } else { self };
                    <$float>::from_bits(one.to_bits() | two.to_bits()).canonical()
                }

                #[inline(always)]
                fn greater(self, other: $float) -> $float {
                    (-(-self).lesser(-other)).canonical()
                }
            }

            impl Sealed for $float {}
            impl Reducible for $float {
                fn is_associative(op: ReduceOp) -> bool {
                    matches!(op, ReduceOp::Min | ReduceOp::Max)
                }

                combine! {
                    $float:
                    Sum => Float::sum,
                    Product => Float::product,
                    Min => Float::lesser,
                    Max => Float::greater,
                }
            }

            impl Sealed for Complex<$float> {}
            impl Reducible for Complex<$float> {
                fn is_associative(_: ReduceOp) -> bool {
                    false
                }

                combine! {
                    Complex<$float>:
                    Sum => |a: Complex<$float>, b| Complex::new(a.re.sum(b.re), a.im.sum(b.im)),
                    Product => |a: Complex<$float>, b: Complex<$float>| {
                        let re = a.re * b.re - a.im * b.im;
                        let im = a.re * b.im + a.im * b.re;
                        Complex::new(re.canonical(), im.canonical())
                    },
                }
            }
        )*
    };
}

floats! {
    f32: 0x7fc0_0000,
    f64: 0x7ff8_0000_0000_0000,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combine<T: Reducible>(op: ReduceOp, left: T, right: T) -> T {
        let (left, right, mut into) = ([left; 40], [right; 40], [right; 40]);
        let [one, other] = [&left, &right].map(|operand| operand.as_ptr().cast());
        // SAFETY: three locals of the same size.
        unsafe { T::combine(op, one, other, into.as_mut_ptr().cast(), size_of_val(&into)) };
        into[39]
    }

    #[test]
    fn names_lead_back_to_their_operations() {
        for op in ReduceOp::ALL {
            assert_eq!(ReduceOp::from_name(op.name()), Some(op));
            assert_eq!(op.to_string(), op.name());
        }
        assert_eq!(ReduceOp::from_name("mean"), None);
        assert_eq!(format!("{:>8}|", ReduceOp::Sum), "     sum|");
    }

    #[test]
    fn bits_are_for_integers_and_order_is_not_for_complex_numbers() {
        let defined = |is_defined: fn(ReduceOp) -> bool| {
            ReduceOp::ALL.into_iter().filter(|&op| is_defined(op)).map(ReduceOp::name).collect::<Vec<_>>()
        };
        assert_eq!(defined(i128::is_defined).len(), 7);
        assert_eq!(defined(u8::is_defined).len(), 7);
        assert_eq!(defined(f32::is_defined), ["sum", "product", "min", "max"]);
        assert_eq!(defined(f64::is_defined), ["sum", "product", "min", "max"]);
        assert_eq!(defined(Complex::<f32>::is_defined), ["sum", "product"]);
        assert_eq!(defined(Complex::<f64>::is_defined), ["sum", "product"]);
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(combine(ReduceOp::Sum, 200u8, 100), 44);
        assert_eq!(combine(ReduceOp::Product, i64::MIN, -1), i64::MIN);
        assert_eq!(combine(ReduceOp::Min, -1i32, 1), -1);
        assert_eq!(combine(ReduceOp::Max, u64::MAX, 1), u64::MAX);
    }

    /// Numbers that arithmetic treats in ways of their own, NaN with signs and payloads among them.
    const SPECIAL: [u64; 16] = [
        0,
        1 << 63,
        0x3ff0_0000_0000_0000,
        0xbff0_0000_0000_0000,
        0x4009_21fb_5444_2d18,
        1,
        0x8000_0000_0000_0001,
        0x0010_0000_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0xffef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x7ff8_0000_0000_0000,
        0xfff8_0000_0000_0123,
        0x7ff0_0000_0000_0001,
        0xfff4_5678_9abc_def0,
    ];
    const NAN: u64 = 0x7ff8_0000_0000_0000;

    #[test]
    fn floats_have_one_nan_and_operands_may_change_places() {
        for op in [ReduceOp::Sum, ReduceOp::Product, ReduceOp::Min, ReduceOp::Max] {
            for (a, b) in SPECIAL.into_iter().flat_map(|a| SPECIAL.map(|b| (a, b))) {
                let [x, y] = [a, b].map(f64::from_bits);
                let result = combine(op, x, y).to_bits();
                assert_eq!(result, combine(op, y, x).to_bits(), "{op} of {a:#x} and {b:#x}");
                assert!(!f64::from_bits(result).is_nan() || result == NAN, "{op} of {a:#x} and {b:#x}");
                if x.is_nan() || y.is_nan() {
                    assert_eq!(result, NAN, "{op} of {a:#x} and {b:#x}");
                }
                let [x, y] = [x, y].map(|x| Complex::new(x, 1.0));
                if Complex::<f64>::is_defined(op) {
                    let bits = |z: Complex<f64>| (z.re.to_bits(), z.im.to_bits());
                    let (one, two) = (combine(op, x, y), combine(op, y, x));
                    assert_eq!(bits(one), bits(two), "complex {op} of {a:#x} and {b:#x}");
                }
            }
        }
    }

    #[test]
    fn the_lesser_and_the_greater_float_are_those_of_the_total_order_of_numbers() {
        let numbers = SPECIAL.map(f64::from_bits).into_iter().filter(|x| !x.is_nan());
        for (a, b) in numbers.clone().flat_map(|a| numbers.clone().map(move |b| (a, b))) {
            let (less, greater) = if a.total_cmp(&b).is_le() { (a, b) } else { (b, a) };
            assert_eq!(combine(ReduceOp::Min, a, b).to_bits(), less.to_bits(), "{a} and {b}");
            assert_eq!(combine(ReduceOp::Max, a, b).to_bits(), greater.to_bits(), "{a} and {b}");
            let [a, b] = [a as f32, b as f32];
            let (less, greater) = if a.total_cmp(&b).is_le() { (a, b) } else { (b, a) };
            assert_eq!(combine(ReduceOp::Min, a, b).to_bits(), less.to_bits(), "{a} and {b}");
            assert_eq!(combine(ReduceOp::Max, a, b).to_bits(), greater.to_bits(), "{a} and {b}");
        }
        assert_eq!(combine(ReduceOp::Max, f32::from_bits(0xffc0_0001), 1.0).to_bits(), 0x7fc0_0000);
    }
}
