//! Floating-point formats that Rust has no types for: of 16, 80 and 128 bits.
//!
//! Invariant: results are rounded to nearest, ties to even, as the processor rounds those of other formats.

use rustc_apfloat::Float;
use rustc_apfloat::ieee;

/// A number of such a format, as it lies in memory.
pub trait Soft: Copy + Send + Sync + 'static {
    type Number: Float;

    fn number(self) -> Self::Number;
    fn of(number: Self::Number) -> Self;

    fn sum(self, other: Self) -> Self {
        Self::of((self.number() + other.number()).value)
    }

    fn difference(self, other: Self) -> Self {
        Self::of((self.number() - other.number()).value)
    }

    fn product(self, other: Self) -> Self {
        Self::of((self.number() * other.number()).value)
    }

    fn is_less(self, other: Self) -> bool {
        self.number() < other.number()
    }

    /// The lesser operand; NaN if one is NaN, and -0 is less than +0.
    fn lesser(self, other: Self) -> Self {
        let (one, two) = (self.number(), other.number());
        let takes_first = one.is_nan() || one < two || (one.is_zero() && two.is_zero() && one.is_negative());
        if takes_first && !two.is_nan() { self } else { other_unless(one.is_nan(), self, other) }
    }

    /// The greater operand; NaN if one is NaN, and +0 is greater than -0.
    fn greater(self, other: Self) -> Self {
        let (one, two) = (self.number(), other.number());
        let takes_first = one.is_nan() || one > two || (one.is_zero() && two.is_zero() && two.is_negative());
        if takes_first && !two.is_nan() { self } else { other_unless(one.is_nan(), self, other) }
    }
}

fn other_unless<T>(condition: bool, this: T, other: T) -> T {
    if condition { this } else { other }
}

/// Defines formats by the integer that has their bits.
macro_rules! formats {
    ($($(#[$attribute:meta])* $name:ident($bits:ty) = $number:ty, $mask:expr;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $name(pub $bits);

        impl Soft for $name {
            type Number = $number;

            fn number(self) -> $number {
                <$number>::from_bits(u128::from(self.0) & $mask)
            }

            fn of(number: $number) -> $name {
                $name(number.to_bits() as $bits)
            }
        }
    )*};
}

formats! {
    /// IEEE binary16.
    Half(u16) = ieee::Half, u128::MAX;
    /// IEEE binary128.
    Quad(u128) = ieee::Quad, u128::MAX;
    /// The format of 80 bits in 16 bytes.
    Extended(u128) = ieee::X87DoubleExtended, (1 << 80) - 1;
}

/// C's `long double`.
#[cfg(target_arch = "x86_64")]
pub type LongDouble = Extended;
/// C's `long double`.
#[cfg(not(target_arch = "x86_64"))]
pub type LongDouble = Quad;

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Complex<T> {
    pub re: T,
    pub im: T,
}

impl<T: Soft> Complex<T> {
    pub fn sum(self, other: Complex<T>) -> Complex<T> {
        Complex { re: self.re.sum(other.re), im: self.im.sum(other.im) }
    }

    pub fn product(self, other: Complex<T>) -> Complex<T> {
        Complex {
            re: self.re.product(other.re).difference(self.im.product(other.im)),
            im: self.re.product(other.im).sum(self.im.product(other.re)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of 64 bits in the format of 80.
    fn extended(value: f64) -> Extended {
        use rustc_apfloat::FloatConvert;
        Extended::of(ieee::Double::from_bits(value.to_bits().into()).convert(&mut false).value)
    }

    /// The sum and the product that the processor computes.
    #[cfg(target_arch = "x86_64")]
    fn by_processor(x: Extended, y: Extended) -> (u128, u128) {
        let (mut sum, mut product) = (0u128, 0u128);
        // SAFETY: operands and results have ten bytes of sixteen, and the stack of the x87 is empty again.
        unsafe {
            std::arch::asm!(
                "fld tbyte ptr [{x}]", "fld tbyte ptr [{y}]", "faddp", "fstp tbyte ptr [{s}]",
                "fld tbyte ptr [{x}]", "fld tbyte ptr [{y}]", "fmulp", "fstp tbyte ptr [{p}]",
                x = in(reg) &raw const x, y = in(reg) &raw const y,
                s = in(reg) &raw mut sum, p = in(reg) &raw mut product,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            );
        }
        (sum, product)
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn sums_and_products_of_80_bits_are_those_of_the_processor() {
        let values =
            [0.0, -0.0, 1.0, 1.5, -3.25, 1e300, 1e-300, f64::MAX, f64::MIN_POSITIVE, 0.1, f64::INFINITY];
        for (a, b) in values.into_iter().flat_map(|a| values.map(|b| (a, b))) {
            let (x, y) = (extended(a), extended(b));
            let (sum, product) = by_processor(x, y);
            let is_nan = a.is_infinite() && b == 0.0 || b.is_infinite() && a == 0.0;
            assert_eq!(x.sum(y).0, sum, "{a} + {b}");
            assert!(is_nan || x.product(y).0 == product, "{a} * {b}");
            // The results have digits that numbers of 64 bits do not have.
            let (x, y) = (Extended(sum), Extended(product));
            let (sum, product) = by_processor(x, y);
            let is_number = |bits| !Extended(bits).number().is_nan();
            assert!(!is_number(sum) || x.sum(y).0 == sum, "{a} and {b}, their sum and product added");
            assert!(!is_number(product) || x.product(y).0 == product, "{a} and {b}, multiplied");
        }
    }

    #[test]
    fn the_lesser_and_the_greater_number_are_those_of_the_total_order() {
        let values = [0.0, -0.0, 1.5, -3.25, 1e300, f64::NEG_INFINITY, f64::INFINITY];
        for (a, b) in values.into_iter().flat_map(|a| values.map(|b| (a, b))) {
            let (x, y) = (extended(a), extended(b));
            let (less, greater) = if a.total_cmp(&b).is_le() { (x, y) } else { (y, x) };
            assert_eq!((x.lesser(y), x.greater(y)), (less, greater), "{a} and {b}");
        }
    }

    #[test]
    fn a_nan_is_the_result_if_an_operand_is_one() {
        let nan = Half::of(ieee::Half::NAN);
        let one = Half(0x3c00);
        for result in [nan.lesser(one), one.lesser(nan), nan.greater(one), one.greater(nan), nan.sum(one)] {
            assert!(result.number().is_nan());
        }
        assert_eq!((one.sum(one), one.product(one)), (Half(0x4000), one));
    }

    #[test]
    fn complex_numbers_of_128_bits() {
        let number = |value: i128| Quad::of(Float::from_i128(value).value);
        let z = |re, im| Complex { re: number(re), im: number(im) };
        assert_eq!(z(1, 2).sum(z(3, -5)), z(4, -3));
        assert_eq!(z(1, 2).product(z(3, -5)), z(13, 1));
    }
}
