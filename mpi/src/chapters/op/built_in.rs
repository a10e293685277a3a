//! The predefined operations: the combiner of each on elements of each elementary type.
//!
//! Invariant: an operation is defined for the types that the standard lists (section 6.9.2), and for
//! characters as if they were signed integers. Elements lie in one piece, packed: those of a pair have no gap
//! between value and index.

use super::soft::{Complex, Half, LongDouble, Quad, Soft};
use crate::abi::*;
use crate::chapters::datatype::Basic;
use crate::chapters::environment::fortran_booleans;
use num_complex::Complex as Pair;
use pelago_core::coll::reduction::{Combine, Combiner, ReduceOp, Reducible};
use pelago_core::coll::select::Laws;
use std::marker::PhantomData;
use std::sync::Arc;

/// The laws of operations that round.
const ROUNDS: Laws = Laws { is_associative: false, is_commutative: true };
/// The laws of operations whose result is the same in every order.
const EXACT: Laws = Laws { is_associative: true, is_commutative: true };

/// Combines elements of a type one by one.
struct Each<T, F>(F, PhantomData<fn(T)>);

impl<T: Copy, F: Fn(T, T) -> T + Send + Sync> Combine for Each<T, F> {
    unsafe fn combine(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
        let (left, right, into): (*const T, *const T, *mut T) = (left.cast(), right.cast(), into.cast());
        for i in 0..bytes / size_of::<T>() {
            // SAFETY: the caller promises whole elements, at any alignment.
            unsafe {
                let result = (self.0)(left.add(i).read_unaligned(), right.add(i).read_unaligned());
                into.add(i).write_unaligned(result);
            }
        }
    }
}

fn each<T: Copy + 'static>(laws: Laws, function: impl Fn(T, T) -> T + Send + Sync + 'static) -> Combiner {
    Combiner::of_function(size_of::<T>(), laws, Arc::new(Each(function, PhantomData)))
}

/// The operation of `pelago_core` that this one is.
fn arithmetic(op: MPI_Op) -> Option<ReduceOp> {
    Some(match op {
        MPI_SUM => ReduceOp::Sum,
        MPI_PROD => ReduceOp::Product,
        MPI_MIN => ReduceOp::Min,
        MPI_MAX => ReduceOp::Max,
        MPI_BAND => ReduceOp::And,
        MPI_BOR => ReduceOp::Or,
        MPI_BXOR => ReduceOp::Xor,
        _ => return None,
    })
}

fn is_bitwise(op: MPI_Op) -> bool {
    matches!(op, MPI_BAND | MPI_BOR | MPI_BXOR)
}

/// The combiner of a predefined operation on elements of an elementary type, if it is defined.
pub fn combiner(op: MPI_Op, basic: Basic) -> Option<Combiner> {
    match op {
        MPI_LAND | MPI_LOR | MPI_LXOR => logical(op, basic),
        MPI_MINLOC | MPI_MAXLOC => located(op, basic),
        _ => of_numbers(op, arithmetic(op)?, basic),
    }
}

fn of_numbers(op: MPI_Op, known: ReduceOp, basic: Basic) -> Option<Combiner> {
    fn of<T: Reducible>(op: ReduceOp) -> Option<Combiner> {
        Combiner::of::<T>(op)
    }
    match basic {
        Basic::Signed(1) | Basic::Char => of::<i8>(known),
        Basic::Signed(2) => of::<i16>(known),
        Basic::Signed(4) => of::<i32>(known),
        Basic::Signed(8) => of::<i64>(known),
        Basic::Signed(16) => of::<i128>(known),
        Basic::Unsigned(1) => of::<u8>(known),
        Basic::Unsigned(2) => of::<u16>(known),
        Basic::Unsigned(4) => of::<u32>(known),
        Basic::Unsigned(8) => of::<u64>(known),
        Basic::Bytes(1) if is_bitwise(op) => of::<u8>(known),
        Basic::Float32 => of::<f32>(known),
        Basic::Float64 => of::<f64>(known),
        Basic::Complex32 => of::<Pair<f32>>(known),
        Basic::Complex64 => of::<Pair<f64>>(known),
        Basic::LongDouble => real::<LongDouble>(op),
        Basic::ComplexLongDouble => complex::<LongDouble>(op),
        Basic::Float16 => real::<Half>(op),
        Basic::Complex16 => complex::<Half>(op),
        Basic::Float128 => real::<Quad>(op),
        Basic::Complex128 => complex::<Quad>(op),
        _ => None,
    }
}

fn real<T: Soft>(op: MPI_Op) -> Option<Combiner> {
    Some(match op {
        MPI_SUM => each(ROUNDS, T::sum),
        MPI_PROD => each(ROUNDS, T::product),
        MPI_MIN => each(EXACT, T::lesser),
        MPI_MAX => each(EXACT, T::greater),
        _ => return None,
    })
}

fn complex<T: Soft>(op: MPI_Op) -> Option<Combiner> {
    Some(match op {
        MPI_SUM => each(ROUNDS, Complex::<T>::sum),
        MPI_PROD => each(ROUNDS, Complex::<T>::product),
        _ => return None,
    })
}

/// Operations on values that are false or something else; their results are the values of false and true: 0
/// and 1, or those that the program has set for Fortran.
fn logical(op: MPI_Op, basic: Basic) -> Option<Combiner> {
    fn of<T: Copy + PartialEq + TryFrom<u128> + Send + Sync + 'static>(
        op: MPI_Op,
        values: [u128; 2],
    ) -> Option<Combiner> {
        let [no, yes] = values.map(|value| T::try_from(value).ok());
        let (no, yes) = (no?, yes?);
        let (truth, value) = (move |value: T| value != no, move |truth: bool| if truth { yes } else { no });
        Some(match op {
            MPI_LAND => each::<T>(EXACT, move |a, b| value(truth(a) && truth(b))),
            MPI_LOR => each::<T>(EXACT, move |a, b| value(truth(a) || truth(b))),
            _ => each::<T>(EXACT, move |a, b| value(truth(a) != truth(b))),
        })
    }
    let (bytes, of_fortran) = match basic {
        Basic::Logical(bytes) => (bytes, fortran_booleans(bytes.into())),
        Basic::Signed(bytes) | Basic::Unsigned(bytes) => (bytes, None),
        Basic::Char => (1, None),
        _ => return None,
    };
    let values = of_fortran.unwrap_or([0, 1]);
    match bytes {
        1 => of::<u8>(op, values),
        2 => of::<u16>(op, values),
        4 => of::<u32>(op, values),
        8 => of::<u64>(op, values),
        16 => of::<u128>(op, values),
        _ => None,
    }
}

/// A part of a pair: its length, and whether one is less than another.
#[derive(Clone, Copy)]
struct Part {
    bytes: usize,
    is_less: unsafe fn(*const u8, *const u8) -> bool,
}

impl Part {
    /// The part of this type, if it is ordered.
    fn of(basic: Basic) -> Option<Part> {
        /// # Safety
        /// Both addresses have an element, at any alignment.
        unsafe fn number<T: PartialOrd>(one: *const u8, two: *const u8) -> bool {
            // SAFETY: the caller promises what this function requires.
            unsafe { one.cast::<T>().read_unaligned() < two.cast::<T>().read_unaligned() }
        }
        /// # Safety
        /// As above.
        unsafe fn soft<T: Soft>(one: *const u8, two: *const u8) -> bool {
            // SAFETY: the caller promises what this function requires.
            unsafe { one.cast::<T>().read_unaligned().is_less(two.cast::<T>().read_unaligned()) }
        }
        fn part<T>(is_less: unsafe fn(*const u8, *const u8) -> bool) -> Part {
            Part { bytes: size_of::<T>(), is_less }
        }
        Some(match basic {
            Basic::Signed(1) => part::<i8>(number::<i8>),
            Basic::Signed(2) => part::<i16>(number::<i16>),
            Basic::Signed(4) => part::<i32>(number::<i32>),
            Basic::Signed(8) => part::<i64>(number::<i64>),
            Basic::Signed(16) => part::<i128>(number::<i128>),
            Basic::Unsigned(1) => part::<u8>(number::<u8>),
            Basic::Unsigned(2) => part::<u16>(number::<u16>),
            Basic::Unsigned(4) => part::<u32>(number::<u32>),
            Basic::Unsigned(8) => part::<u64>(number::<u64>),
            Basic::Float32 => part::<f32>(number::<f32>),
            Basic::Float64 => part::<f64>(number::<f64>),
            Basic::LongDouble => part::<LongDouble>(soft::<LongDouble>),
            Basic::Float16 => part::<Half>(soft::<Half>),
            Basic::Float128 => part::<Quad>(soft::<Quad>),
            _ => return None,
        })
    }
}

/// Takes the pair with the least or the greatest value; of two with the same value the one with the least
/// index.
struct Located {
    value: Part,
    index: Part,
    takes_least: bool,
}

impl Combine for Located {
    unsafe fn combine(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
        let Located { value, index, takes_least } = *self;
        let pair = value.bytes + index.bytes;
        for offset in (0..bytes).step_by(pair) {
            let (left, right) = (left.wrapping_add(offset), right.wrapping_add(offset));
            // SAFETY: the caller promises whole pairs, and a place for them.
            unsafe {
                let (one, two) = if takes_least { (left, right) } else { (right, left) };
                let takes_left = if (value.is_less)(one, two) {
                    true
                } else if (value.is_less)(two, one) {
                    false
                } else {
                    !(index.is_less)(right.add(value.bytes), left.add(value.bytes))
                };
                let from = if takes_left { left } else { right };
                std::ptr::copy(from, into.wrapping_add(offset), pair);
            }
        }
    }
}

/// The types of value and index of a pair.
fn parts(basic: Basic) -> Option<(Basic, Basic)> {
    use Basic::*;
    Some(match basic {
        FloatInt => (Float32, Signed(4)),
        DoubleInt => (Float64, Signed(4)),
        LongInt => (Signed(8), Signed(4)),
        TwoInt => (Signed(4), Signed(4)),
        ShortInt => (Signed(2), Signed(4)),
        LongDoubleInt => (LongDouble, Signed(4)),
        TwoReal => (Float32, Float32),
        TwoDouble => (Float64, Float64),
        _ => return None,
    })
}

fn located(op: MPI_Op, basic: Basic) -> Option<Combiner> {
    let (value, index) = parts(basic)?;
    let (value, index) = (Part::of(value)?, Part::of(index)?);
    let takes_least = match op {
        MPI_MINLOC => true,
        MPI_MAXLOC => false,
        _ => return None,
    };
    let bytes = value.bytes + index.bytes;
    Some(Combiner::of_function(bytes, EXACT, Arc::new(Located { value, index, takes_least })))
}

/// Takes one of the operands.
struct Choose {
    takes_right: bool,
}

impl Combine for Choose {
    unsafe fn combine(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
        let from = if self.takes_right { right } else { left };
        // SAFETY: the caller promises the bytes of both.
        unsafe { std::ptr::copy(from, into, bytes) };
    }
}

/// The combiner of `MPI_REPLACE`, which takes the right operand, or of `MPI_NO_OP`, which takes the left one,
/// on elements of this many bytes.
pub fn choosing(op: MPI_Op, element_bytes: usize) -> Option<Combiner> {
    let takes_right = match op {
        MPI_REPLACE => true,
        MPI_NO_OP => false,
        _ => return None,
    };
    let laws = Laws { is_associative: true, is_commutative: false };
    Some(Combiner::of_function(element_bytes, laws, Arc::new(Choose { takes_right })))
}
