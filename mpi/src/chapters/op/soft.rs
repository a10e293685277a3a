//! Floating-point formats that Rust has no types for: of 16, 80 and 128 bits. The processor computes with
//! those of 80 bits where it can.
//!
//! Invariant: results are rounded to nearest, ties to even, as the processor rounds those of other formats.

use rustc_apfloat::Float;
use rustc_apfloat::ieee;
use std::cmp::Ordering;

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

    /// The order of both as numbers; `None` if one is NaN.
    fn order(self, other: Self) -> Option<Ordering> {
        self.number().partial_cmp(&other.number())
    }

    fn is_less(self, other: Self) -> bool {
        self.order(other) == Some(Ordering::Less)
    }

    /// The lesser operand; NaN if one is NaN, and -0 is less than +0.
    fn lesser(self, other: Self) -> Self {
        match self.order(other) {
            Some(Ordering::Less) => self,
            Some(Ordering::Greater) => other,
            Some(Ordering::Equal) => if_or(self.number().is_negative(), self, other),
            None => if_or(self.number().is_nan(), self, other),
        }
    }

    /// The greater operand; NaN if one is NaN, and +0 is greater than -0.
    fn greater(self, other: Self) -> Self {
        match self.order(other) {
            Some(Ordering::Greater) => self,
            Some(Ordering::Less) => other,
            Some(Ordering::Equal) => if_or(self.number().is_negative(), other, self),
            None => if_or(self.number().is_nan(), self, other),
        }
    }
}

fn if_or<T>(condition: bool, this: T, other: T) -> T {
    if condition { this } else { other }
}

/// The result of an instruction of the x87 for two numbers of 80 bits.
#[cfg(target_arch = "x86_64")]
macro_rules! by_x87 {
    ($instruction:literal, $one:expr, $two:expr) => {{
        let (one, two, mut result) = ($one.0, $two.0, 0u128);
        // SAFETY: operands and result have ten bytes of sixteen, and the stack of the x87 is empty again.
        unsafe {
            std::arch::asm!(
                "fld tbyte ptr [{one}]",
                "fld tbyte ptr [{two}]",
                concat!($instruction, " st(1), st"),
                "fstp tbyte ptr [{result}]",
                one = in(reg) &raw const one,
                two = in(reg) &raw const two,
                result = in(reg) &raw mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        Extended(result)
    }};
}

/// The order of two numbers of 80 bits, by the x87.
#[cfg(target_arch = "x86_64")]
fn order_by_x87(one: Extended, two: Extended) -> Option<Ordering> {
    let (is_above, is_below, has_nan): (u8, u8, u8);
    // SAFETY: the operands have ten bytes of sixteen, and the stack of the x87 is empty again.
    unsafe {
        std::arch::asm!(
            "fld tbyte ptr [{two}]",
            "fld tbyte ptr [{one}]",
            "fucomip st, st(1)",
            "fstp st(0)",
            "seta {is_above}",
            "setb {is_below}",
            "setp {has_nan}",
            one = in(reg) &raw const one,
            two = in(reg) &raw const two,
            is_above = lateout(reg_byte) is_above,
            is_below = lateout(reg_byte) is_below,
            has_nan = lateout(reg_byte) has_nan,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack),
        );
    }
    // An order with NaN also counts as below.
    match (has_nan, is_above, is_below) {
        (1, ..) => None,
        (_, 1, _) => Some(Ordering::Greater),
        (_, _, 1) => Some(Ordering::Less),
        _ => Some(Ordering::Equal),
    }
}

/// Defines formats by the integer that has their bits, and the functions that have a faster form.
macro_rules! formats {
    ($($(#[$attribute:meta])* $name:ident($bits:ty) = $number:ty, $mask:expr, { $($faster:item)* })*) => {$(
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

            $($faster)*
        }
    )*};
}

formats! {
    /// IEEE binary16.
    Half(u16) = ieee::Half, u128::MAX, {}
    /// IEEE binary128.
    Quad(u128) = ieee::Quad, u128::MAX, {}
    /// The format of 80 bits in 16 bytes.
    Extended(u128) = ieee::X87DoubleExtended, (1 << 80) - 1, {
        #[cfg(target_arch = "x86_64")]
        fn sum(self, other: Extended) -> Extended {
            by_x87!("faddp", self, other)
        }

        #[cfg(target_arch = "x86_64")]
        fn difference(self, other: Extended) -> Extended {
            by_x87!("fsubp", self, other)
        }

        #[cfg(target_arch = "x86_64")]
        fn product(self, other: Extended) -> Extended {
            by_x87!("fmulp", self, other)
        }

        #[cfg(target_arch = "x86_64")]
        fn order(self, other: Extended) -> Option<Ordering> {
            order_by_x87(self, other)
        }
    }
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

    /// Sum, difference and product by the software of the other formats.
    fn by_software(x: Extended, y: Extended) -> [Extended; 3] {
        let (x, y) = (x.number(), y.number());
        [x + y, x - y, x * y].map(|result| Extended::of(result.value))
    }

    /// The same by the functions of the format, which must have the same bits, except in NaN.
    fn compare(x: Extended, y: Extended) -> [Extended; 3] {
        let found = [x.sum(y), x.difference(y), x.product(y)];
        let bits = |number: Extended| (!number.number().is_nan()).then_some(number.0);
        assert_eq!(found.map(bits), by_software(x, y).map(bits), "{x:x?} and {y:x?}");
        assert_eq!(x.order(y), x.number().partial_cmp(&y.number()), "{x:x?} and {y:x?}");
        found
    }

    #[test]
    fn results_of_80_bits_are_rounded_like_those_of_other_formats() {
        let values =
            [0.0, -0.0, 1.0, 1.5, -3.25, 1e300, 1e-300, f64::MAX, f64::MIN_POSITIVE, 0.1, f64::INFINITY];
        for (a, b) in values.into_iter().flat_map(|a| values.map(|b| (a, b))) {
            // The results have digits that numbers of 64 bits do not have.
            let results = compare(extended(a), extended(b));
            for (x, y) in results.into_iter().flat_map(|x| results.map(|y| (x, y))) {
                compare(x, y);
            }
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
