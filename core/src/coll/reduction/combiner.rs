//! A type-erased reduction operation, which collective operations run.
//!
//! Invariant: operands are combined from left to right, whatever their number and length, so that equal
//! operands give equal results, bit for bit.

use super::sweep::sweep;
use super::{ReduceOp, Reducible};
use crate::base::element::Element;
use pelago_fabric::copy;
use pelago_schedule::fnv::fnv1a;
use pelago_schedule::select::Laws;
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of};
use std::sync::Arc;

/// Bytes that are folded at once, in a buffer on the stack: some of these fit in the first-level cache.
const BLOCK_BYTES: usize = 4096;
/// How a block is aligned; elements are aligned no more strictly.
const BLOCK_ALIGN_BYTES: usize = 64;

/// The name of the operation if it is a user's function, and its place behind the built-in operations.
const A_FUNCTION: &str = "a function";
const FUNCTION: u64 = ReduceOp::ALL.len() as u64;
/// Names of the types of elements that are built in; a code has the place in this list.
const ELEMENTS: [&str; 17] = [
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "usize",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "isize",
    "f32",
    "f64",
    "num_complex::Complex<f32>",
    "num_complex::Complex<f64>",
    "long double",
];
/// Bits of a code that tell the type of elements; the highest of them is set if the type is not built in.
const ELEMENT_BITS: u32 = 16;
const OWN_ELEMENT: u64 = 1 << (ELEMENT_BITS - 1);

/// How elements are combined, whatever their type is.
#[derive(Clone)]
pub struct Combiner {
    element_bytes: usize,
    op: &'static str,
    element: &'static str,
    is_commutative: bool,
    is_associative: bool,
    method: Method,
}

/// The operation that combines.
#[derive(Clone)]
enum Method {
    BuiltIn(ReduceOp, unsafe fn(ReduceOp, *const u8, *const u8, *mut u8, usize)),
    User(Arc<dyn Combine>),
}

/// A function that combines elements whose type only it knows.
pub trait Combine: Send + Sync {
    /// Combines element by element: `into[i] = left[i] op right[i]`.
    ///
    /// # Safety
    /// As [`Combiner::combine`].
    unsafe fn combine(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize);
}

impl Combiner {
    /// The combiner of an operation, if it is defined for the type.
    pub fn of<T: Reducible>(op: ReduceOp) -> Option<Combiner> {
        const { assert!(align_of::<T>() <= BLOCK_ALIGN_BYTES, "an element is aligned to 64 bytes at most") };
        T::is_defined(op).then(|| Combiner {
            element_bytes: size_of::<T>(),
            op: op.name(),
            element: type_name::<T>(),
            is_commutative: true,
            is_associative: T::is_associative(op),
            method: Method::BuiltIn(op, T::combine),
        })
    }

    /// The combiner of a user's function, which is to be associative.
    pub fn user<T: Element>(function: impl Fn(T, T) -> T + Send + Sync + 'static) -> Combiner {
        const { assert!(align_of::<T>() <= BLOCK_ALIGN_BYTES, "an element is aligned to 64 bytes at most") };
        Combiner {
            element_bytes: size_of::<T>(),
            op: A_FUNCTION,
            element: type_name::<T>(),
            is_commutative: false,
            is_associative: false,
            method: Method::User(Arc::new(User { function, element: PhantomData })),
        }
    }

    /// The combiner of a function on elements of `element_bytes` bytes, for which these laws hold.
    pub fn of_function(element_bytes: usize, laws: Laws, function: Arc<dyn Combine>) -> Combiner {
        Combiner {
            element_bytes,
            op: A_FUNCTION,
            element: "bytes",
            is_commutative: laws.is_commutative,
            is_associative: laws.is_associative,
            method: Method::User(function),
        }
    }

    /// The same with the name of the operation that a function is known to be, and of the type of elements
    /// that it is known to have. Calls that are compared are told apart by these.
    #[doc(hidden)]
    pub fn known_as(self, op: ReduceOp, element: &'static str) -> Combiner {
        Combiner { op: op.name(), element, ..self }
    }

    /// A number of 24 bits, not 0, that tells operations and types of elements apart: of types that are not
    /// built in almost surely. Functions are told from operations, but not from each other.
    pub fn code(&self) -> u64 {
        let op = ReduceOp::ALL.iter().position(|op| op.name() == self.op).map_or(FUNCTION, |op| op as u64);
        let element = ELEMENTS.iter().position(|&name| name == self.element);
        let element = element.map_or_else(|| OWN_ELEMENT | hash(self.element), |element| element as u64);
        (op + 1) << ELEMENT_BITS | element
    }

    /// The name of the reduction with this code, for error messages: "sum of f64". `None` for code 0.
    pub fn describe(code: u64) -> Option<String> {
        let op = ReduceOp::ALL.get((code >> ELEMENT_BITS).checked_sub(1)? as usize);
        let op = op.map_or(A_FUNCTION, |op| op.name());
        let element = ELEMENTS.get((code & ((1 << ELEMENT_BITS) - 1)) as usize);
        Some(format!("{op} of {}", element.unwrap_or(&"a type of the program")))
    }

    /// Size of an element in bytes.
    pub fn element_bytes(&self) -> usize {
        self.element_bytes
    }

    /// Whether operands may change places; not known of a user's function, so `false`.
    pub fn is_commutative(&self) -> bool {
        self.is_commutative
    }

    /// Whether the result is the same, bit for bit, however operands are grouped. `false` for sums and
    /// products of floating-point numbers, which are rounded, and for a user's function, as it is not known.
    pub fn is_associative(&self) -> bool {
        self.is_associative
    }

    /// Both, as the choice of an algorithm takes them.
    pub fn laws(&self) -> Laws {
        Laws { is_associative: self.is_associative, is_commutative: self.is_commutative }
    }

    /// Whether it is a user's function, and not an operation that is built in.
    pub fn is_function(&self) -> bool {
        matches!(self.method, Method::User(_))
    }

    /// As [`combine`](Combiner::combine) if the operation is built in; whether it is.
    ///
    /// # Safety
    /// As [`combine`](Combiner::combine).
    #[inline(always)]
    pub unsafe fn combine_built_in(
        &self,
        left: *const u8,
        right: *const u8,
        into: *mut u8,
        bytes: usize,
    ) -> bool {
        match &self.method {
            // SAFETY: the caller guarantees all places, and the method was made for this type of elements.
            Method::BuiltIn(op, combine) => unsafe { combine(*op, left, right, into, bytes) },
            Method::User(_) => return false,
        }
        true
    }

    /// Combines element by element: `into[i] = left[i] op right[i]`.
    ///
    /// # Safety
    /// `left` and `right` are valid for reads and `into` for writes of `bytes` bytes, whole elements of the
    /// combiner's type. `into` is `left`, is `right`, or overlaps neither. Others may access all of it
    /// meanwhile, if they do so through `fabric::copy`, atomics or from other processes.
    #[inline]
    pub unsafe fn combine(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
        debug_assert_eq!(bytes % self.element_bytes.max(1), 0, "whole elements");
        // SAFETY: the caller guarantees all places, and the method was made for this type of elements.
        unsafe {
            match &self.method {
                Method::BuiltIn(op, combine) => combine(*op, left, right, into, bytes),
                Method::User(user) => user.combine(left, right, into, bytes),
            }
        }
    }

    /// Combines all operands from left to right: `into[i] = ((x0[i] op x1[i]) op x2[i]) op ...`. Each is read
    /// once, and `into` is written once. One operand is copied; of none nothing is done.
    ///
    /// # Safety
    /// As [`combine`](Combiner::combine), for every operand.
    pub unsafe fn fold(&self, operands: &[*const u8], into: *mut u8, bytes: usize) {
        // SAFETY: the caller guarantees operands and `into`; the buffer has room for a block.
        unsafe {
            match *operands {
                [] => (),
                [only] if only == into.cast_const() => (),
                [only] => copy::copy(into, only, bytes),
                [left, right] => self.combine(left, right, into, bytes),
                _ if self.element_bytes > BLOCK_BYTES => self.fold_huge(operands, into, bytes),
                _ => {
                    let mut buffer = Block(MaybeUninit::uninit());
                    let block_bytes = BLOCK_BYTES - BLOCK_BYTES % self.element_bytes.max(1);
                    let buffer = (&raw mut buffer).cast();
                    self.fold_blocks(operands, into, bytes, buffer, block_bytes);
                }
            }
        }
    }

    /// Folds with elements that are larger than a block.
    ///
    /// # Safety
    /// As [`fold`](Combiner::fold).
    #[cold]
    unsafe fn fold_huge(&self, operands: &[*const u8], into: *mut u8, bytes: usize) {
        let blocks = self.element_bytes.div_ceil(BLOCK_BYTES);
        let mut buffer: Vec<Block> = (0..blocks).map(|_| Block(MaybeUninit::uninit())).collect();
        // SAFETY: the caller guarantees operands and `into`; the buffer has room for one element.
        unsafe { self.fold_blocks(operands, into, bytes, buffer.as_mut_ptr().cast(), self.element_bytes) };
    }

    /// Folds three operands or more, `block_bytes` at a time, in a buffer.
    ///
    /// # Safety
    /// As [`fold`](Combiner::fold); the buffer has room for a block of whole elements, and no other thread
    /// uses it.
    unsafe fn fold_blocks(
        &self,
        operands: &[*const u8],
        into: *mut u8,
        bytes: usize,
        buffer: *mut u8,
        block_bytes: usize,
    ) {
        let [first, second, others @ .., last] = operands else { return };
        let mut start = 0;
        while start < bytes {
            let length = (bytes - start).min(block_bytes);
            // SAFETY: the caller guarantees operands, `into` and buffer, and the block lies inside all of
            // them; `into` is written last.
            unsafe {
                self.combine(first.add(start), second.add(start), buffer, length);
                for other in others {
                    self.combine(buffer, other.add(start), buffer, length);
                }
                self.combine(buffer, last.add(start), into.add(start), length);
            }
            start += length;
        }
    }
}

impl fmt::Display for Combiner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.op, self.element)
    }
}

impl fmt::Debug for Combiner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Combiner({self})")
    }
}

/// The rule by which elements of a type are combined: a [`ReduceOp`], or an associative function of two
/// elements. A function computes from its operands alone: if it makes a collective call, or panics, the job
/// fails.
///
/// # Safety
/// The combiner combines elements of this type, or of another type with the same size, whose elements are
/// aligned in all memory that it is used on.
pub unsafe trait IntoCombiner<T: Element> {
    /// The combiner.
    ///
    /// # Errors
    /// Why there is none: the operation is not defined for the type.
    fn into_combiner(self) -> Result<Combiner, String>;
}

// SAFETY: the combiner is that of the type.
unsafe impl<T: Reducible> IntoCombiner<T> for ReduceOp {
    fn into_combiner(self) -> Result<Combiner, String> {
        Combiner::of::<T>(self).ok_or_else(|| {
            let defined = ReduceOp::ALL.into_iter().filter(|&op| T::is_defined(op)).map(ReduceOp::name);
            let (defined, element) = (defined.collect::<Vec<_>>().join(", "), type_name::<T>());
            format!("{self} is not defined for {element}. Use one of {defined}, or give a function")
        })
    }
}

// SAFETY: the function has elements of this type.
unsafe impl<T: Element, F: Fn(T, T) -> T + Send + Sync + 'static> IntoCombiner<T> for F {
    fn into_combiner(self) -> Result<Combiner, String> {
        Ok(Combiner::user(self))
    }
}

/// Bits that differ, most likely, if names do.
fn hash(name: &str) -> u64 {
    fnv1a(name.bytes()) % OWN_ELEMENT
}

/// A buffer of a block.
#[repr(C, align(64))]
struct Block(MaybeUninit<[u8; BLOCK_BYTES]>);

const _: () = assert!(align_of::<Block>() == BLOCK_ALIGN_BYTES);

struct User<T, F> {
    function: F,
    element: PhantomData<fn(T) -> T>,
}

impl<T: Element, F: Fn(T, T) -> T + Send + Sync> Combine for User<T, F> {
    unsafe fn combine(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise is that of `sweep`.
        unsafe { sweep(left, right, into, bytes, &self.function) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;
    use proptest::prelude::*;

    /// The expected result of an operation, element by element.
    trait Model: Reducible {
        fn model(op: ReduceOp, left: Self, right: Self) -> Self;
    }

    macro_rules! integer_models {
        ($($integer:ty)*) => {
            $(
                impl Model for $integer {
                    fn model(op: ReduceOp, left: $integer, right: $integer) -> $integer {
                        match op {
                            ReduceOp::Sum => left.overflowing_add(right).0,
                            ReduceOp::Product => left.overflowing_mul(right).0,
                            ReduceOp::Min => if right < left { right } else { left },
                            ReduceOp::Max => if right > left { right } else { left },
                            ReduceOp::And => !(!left | !right),
                            ReduceOp::Or => !(!left & !right),
                            ReduceOp::Xor => (left | right) & !(left & right),
                        }
                    }
                }
            )*
        };
    }

    integer_models!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

    macro_rules! float_models {
        ($($float:ty: $nan:literal,)*) => {
            $(
                impl Model for $float {
                    fn model(op: ReduceOp, left: $float, right: $float) -> $float {
                        let ordered = left.total_cmp(&right).is_le();
                        let result = match op {
                            _ if left.is_nan() || right.is_nan() => <$float>::NAN,
                            ReduceOp::Sum => left + right,
                            ReduceOp::Product => left * right,
                            ReduceOp::Min => if ordered { left } else { right },
                            ReduceOp::Max => if ordered { right } else { left },
                            _ => panic!("bits of a float"),
                        };
                        if result.is_nan() { <$float>::from_bits($nan) } else { result }
                    }
                }

                impl Model for Complex<$float> {
                    fn model(op: ReduceOp, left: Complex<$float>, right: Complex<$float>) -> Complex<$float> {
                        let result = match op {
                            ReduceOp::Sum => left + right,
                            ReduceOp::Product => left * right,
                            _ => panic!("{op} of complex numbers"),
                        };
                        let parts = [result.re, result.im];
                        let [re, im] = parts.map(|x| if x.is_nan() { <$float>::from_bits($nan) } else { x });
                        Complex::new(re, im)
                    }
                }
            )*
        };
    }

    float_models! { f32: 0x7fc0_0000, f64: 0x7ff8_0000_0000_0000, }

    fn element<T: Element>(bytes: &[u8]) -> T {
        assert!(bytes.len() >= size_of::<T>());
        // SAFETY: the bytes are there, as was just checked, and every bit pattern is an element.
        unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
    }

    fn bytes_of<T: Element>(value: T) -> Vec<u8> {
        let start = (&raw const value).cast::<u8>();
        // SAFETY: an element has no padding, so all its bytes are initialised.
        unsafe { std::slice::from_raw_parts(start, size_of::<T>()) }.to_vec()
    }

    /// Where the result goes.
    #[derive(Clone, Copy, Debug)]
    enum Into {
        Elsewhere,
        Operand(usize),
    }

    /// Operands at places that are `shift` bytes off, the fold of them, and the memory around untouched.
    fn check_fold<T: Element>(
        combiner: &Combiner,
        model: impl Fn(T, T) -> T,
        operands: &[Vec<u8>],
        shift: usize,
        into: Into,
    ) {
        let bytes = operands[0].len();
        let shifted = |operand: &Vec<u8>| [vec![0xA5; shift], operand.clone(), vec![0x5A; 9]].concat();
        let mut memories: Vec<_> = operands.iter().map(shifted).collect();
        memories.push(vec![0xA5; shift + bytes + 9]);
        let before = memories.clone();
        let at = match into {
            Into::Elsewhere => operands.len(),
            Into::Operand(i) => i % operands.len(),
        };
        let starts: Vec<*mut u8> = memories.iter_mut().map(|m| m.as_mut_ptr().wrapping_add(shift)).collect();
        let sources: Vec<_> = starts[..operands.len()].iter().map(|start| start.cast_const()).collect();
        // SAFETY: each memory has `bytes` bytes from its start on, and `into` is one of them.
        unsafe {
            match sources[..] {
                [left, right] => combiner.combine(left, right, starts[at], bytes),
                _ => combiner.fold(&sources, starts[at], bytes),
            }
        }
        let size = size_of::<T>();
        for i in 0..bytes / size {
            let values = operands.iter().map(|operand| element::<T>(&operand[i * size..]));
            let expected = values.reduce(&model).expect("an operand");
            let found = &memories[at][shift + i * size..][..size];
            assert_eq!(found, bytes_of(expected), "element {i}, {combiner}, {into:?}, shift {shift}");
        }
        for (i, (before, after)) in before.iter().zip(&memories).enumerate() {
            assert_eq!(before[..shift], after[..shift], "memory {i}, before the elements");
            assert_eq!(before[shift + bytes..], after[shift + bytes..], "memory {i}, behind the elements");
            assert!(i == at || before == after, "operand {i} was changed");
        }
    }

    /// Words that mean something to floating-point numbers of either size, among any others.
    fn words() -> impl Strategy<Value = u64> {
        let special = [0, 1 << 63, 0x7ff0_0000_0000_0000, 0xfff8_0000_0000_0123, 0x7f80_0000_ff80_0000];
        let more = [0x8000_0000, 0x7fc0_0001_0000_0000, 0x3ff0_0000_0000_0000, 0x7ff0_0000_0000_0001];
        prop_oneof![3 => any::<u64>(), 1 => prop::sample::select([special.as_slice(), &more].concat())]
    }

    /// The bytes of `operands` operands of up to `len` elements of `size` bytes.
    fn operands(size: usize, operands: usize, len: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
        (0..=len).prop_flat_map(move |len| {
            let bytes = len * size;
            let operand = prop::collection::vec(words(), bytes.div_ceil(8)).prop_map(move |words| {
                let mut operand: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
                operand.truncate(bytes);
                operand
            });
            prop::collection::vec(operand, operands)
        })
    }

    fn into_where() -> impl Strategy<Value = Into> {
        prop_oneof![Just(Into::Elsewhere), (0..8usize).prop_map(Into::Operand)]
    }

    macro_rules! every_operation {
        ($($name:ident: $element:ty,)*) => {
            proptest! {
                #![proptest_config(ProptestConfig::with_cases(48))]
                $(
                    #[test]
                    fn $name(
                        operands in (1..6usize).prop_flat_map(|n| operands(size_of::<$element>(), n, 700)),
                        shift in 0..17usize,
                        into in into_where(),
                    ) {
                        for op in ReduceOp::ALL {
                            match Combiner::of::<$element>(op) {
                                Some(combiner) => {
                                    let model = |a, b| <$element>::model(op, a, b);
                                    check_fold(&combiner, model, &operands, shift, into);
                                }
                                None => prop_assert!(!<$element>::is_defined(op)),
                            }
                        }
                    }
                )*
            }
        };
    }

    every_operation! {
        of_u8: u8, of_u16: u16, of_u32: u32, of_u64: u64, of_u128: u128, of_usize: usize,
        of_i8: i8, of_i16: i16, of_i32: i32, of_i64: i64, of_i128: i128, of_isize: isize,
        of_f32: f32, of_f64: f64, of_complex_f32: Complex<f32>, of_complex_f64: Complex<f64>,
    }

    /// Neither commutative nor of a size that divides a block: maps x -> a x + b, one after the other.
    fn compose(first: [u32; 3], second: [u32; 3]) -> [u32; 3] {
        let [a, b, count] = first;
        let [c, d, more] = second;
        let (a, b) = (a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d));
        [a, b, count.wrapping_add(more)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn of_a_users_function(
            operands in (1..6usize).prop_flat_map(|n| operands(12, n, 400)),
            shift in 0..17usize,
            into in into_where(),
        ) {
            check_fold(&Combiner::user(compose), compose, &operands, shift, into);
        }
    }

    #[test]
    fn elements_larger_than_a_block() {
        type Large = [u64; 1500];
        let sum = |a: Large, b: Large| std::array::from_fn(|i| a[i].wrapping_add(b[i]) ^ i as u64);
        let combiner = Combiner::user::<Large>(sum);
        let operand = |seed: u64| -> Vec<u8> {
            (0..3000u64).flat_map(|i| (i.wrapping_mul(seed) << 7 | i).to_ne_bytes()).collect()
        };
        let operands: Vec<_> = [0x9E37_79B9, 0x85EB_CA6B, 0xC2B2_AE35].map(operand).into();
        check_fold(&combiner, sum, &operands, 3, Into::Elsewhere);
        check_fold(&combiner, sum, &operands, 0, Into::Operand(1));
        check_fold(&combiner, sum, &operands[..2], 1, Into::Operand(1));
    }

    #[test]
    fn nothing_and_elements_without_bytes() {
        let combiner = Combiner::user::<[u8; 0]>(|a, _| a);
        let mut place = 7u8;
        // SAFETY: no byte of the place is accessed: none is asked for, or there are no operands.
        unsafe {
            combiner.combine(&raw const place, &raw const place, &raw mut place, 0);
            combiner.fold(&[], &raw mut place, 0);
            Combiner::of::<u8>(ReduceOp::Sum).expect("defined").fold(&[], &raw mut place, 1);
        }
        assert_eq!(place, 7);
    }

    #[test]
    fn codes_tell_operations_and_elements_apart() {
        let mut seen = Vec::new();
        let mut note = |combiner: Option<Combiner>| {
            let Some(combiner) = combiner else { return };
            let code = combiner.code();
            assert!(code != 0 && code < 1 << 24 && !seen.contains(&code), "{combiner}");
            assert_eq!(Combiner::describe(code), Some(combiner.to_string()));
            seen.push(code);
        };
        for op in ReduceOp::ALL {
            let of: [fn(ReduceOp) -> Option<Combiner>; 8] = [
                Combiner::of::<u8>,
                Combiner::of::<u64>,
                Combiner::of::<i64>,
                Combiner::of::<usize>,
                Combiner::of::<f64>,
                Combiner::of::<i128>,
                Combiner::of::<Complex<f32>>,
                Combiner::of::<Complex<f64>>,
            ];
            of.into_iter().for_each(|of| note(of(op)));
        }
        note(Some(Combiner::user(u64::max)));
        let own = Combiner::user(|a: [u8; 3], _: [u8; 3]| a);
        assert_eq!(Combiner::describe(own.code()).unwrap(), "a function of a type of the program");
        assert_ne!(own.code(), Combiner::user(|a: [u8; 4], _: [u8; 4]| a).code());
        assert_eq!(Combiner::describe(0), None);
    }

    #[test]
    fn a_combiner_says_what_it_is() {
        let sum = IntoCombiner::<f64>::into_combiner(ReduceOp::Sum).expect("defined");
        assert_eq!((sum.to_string(), sum.element_bytes()), ("sum of f64".to_owned(), 8));
        assert!(sum.is_commutative() && !sum.is_associative());
        let or = Combiner::of::<u16>(ReduceOp::Or).expect("defined");
        assert!(or.is_commutative() && or.is_associative());
        let function =
            IntoCombiner::<u32>::into_combiner(|a: u32, b: u32| a.rotate_left(b)).expect("defined");
        assert_eq!((function.to_string(), function.element_bytes()), ("a function of u32".to_owned(), 4));
        assert!(!function.is_commutative() && !function.is_associative());
        let refusal = IntoCombiner::<f32>::into_combiner(ReduceOp::Xor).expect_err("not defined");
        assert_eq!(
            refusal,
            "xor is not defined for f32. Use one of sum, product, min, max, or give a function"
        );
    }
}
