//! Remote atomic operations: their list, and their execution by a processor.
//!
//! Invariant: an atomic of a kind and one of another kind on the same word are both one read-modify-write of
//! the processor, but an executor (a processor, a network card) is atomic only with itself. So the caller
//! chooses one executor for each kind in a job. Types and operations are those of the Scalable Fabric
//! Interface (libfabric, `fi_atomic(3)`), if the type fits in a word of 8 bytes.

use crate::copy;
use crate::sync::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// The type of the word that an atomic operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AtomicKind {
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 16 bits.
    I16,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE 754, 32 bits.
    F32,
    /// IEEE 754, 64 bits.
    F64,
    /// Complex: two IEEE 754 numbers of 32 bits, real part first. The word is aligned to its 8 bytes.
    ComplexF32,
}

impl AtomicKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [AtomicKind; 11] = {
        use AtomicKind::*;
        [I8, U8, I16, U16, I32, U32, I64, U64, F32, F64, ComplexF32]
    };

    /// Size of a word of this kind, and its alignment, in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            AtomicKind::I8 | AtomicKind::U8 => 1,
            AtomicKind::I16 | AtomicKind::U16 => 2,
            AtomicKind::I32 | AtomicKind::U32 | AtomicKind::F32 => 4,
            AtomicKind::I64 | AtomicKind::U64 | AtomicKind::F64 | AtomicKind::ComplexF32 => 8,
        }
    }

    /// Whether the word is an integer. The bitwise operations are defined for integers only.
    pub const fn is_integer(self) -> bool {
        !matches!(self, AtomicKind::F32 | AtomicKind::F64 | AtomicKind::ComplexF32)
    }

    /// Whether words of this kind are ordered. Minimum, maximum and the comparisons by order are not defined
    /// without an order.
    pub const fn is_ordered(self) -> bool {
        !matches!(self, AtomicKind::ComplexF32)
    }
}

/// The operation of an atomic on the word `w`, with an operand `x` and, for some, a second operand `c`.
///
/// The conditions of the compare-and-swaps are written as in libfabric: `c` on the left, `w` on the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AtomicOp {
    /// Nothing: the word is read (`FI_ATOMIC_READ`).
    Fetch,
    /// `w = x` (`FI_ATOMIC_WRITE`); with the old value fetched this is a swap.
    Set,
    /// `w = w + x`, integers wrapping around (`FI_SUM`).
    Add,
    /// `w = w * x`, integers wrapping around (`FI_PROD`).
    Product,
    /// `w = min(w, x)` (`FI_MIN`); if one of two floats is not a number, the other one.
    Min,
    /// `w = max(w, x)` (`FI_MAX`); if one of two floats is not a number, the other one.
    Max,
    /// `w = w & x` (`FI_BAND`).
    And,
    /// `w = w | x` (`FI_BOR`).
    Or,
    /// `w = w ^ x` (`FI_BXOR`).
    Xor,
    /// `w = 1` if both `w` and `x` are not zero, else 0 (`FI_LAND`).
    LogicalAnd,
    /// `w = 1` if `w` or `x` is not zero, else 0 (`FI_LOR`).
    LogicalOr,
    /// `w = 1` if exactly one of `w` and `x` is not zero, else 0 (`FI_LXOR`).
    LogicalXor,
    /// `w = x` if `c == w` (`FI_CSWAP`); floats and complex numbers are compared by their bits.
    CompareSwap,
    /// `w = x` if `c != w` (`FI_CSWAP_NE`); floats and complex numbers are compared by their bits.
    CompareSwapNe,
    /// `w = x` if `c <= w` (`FI_CSWAP_LE`).
    CompareSwapLe,
    /// `w = x` if `c < w` (`FI_CSWAP_LT`).
    CompareSwapLt,
    /// `w = x` if `c >= w` (`FI_CSWAP_GE`).
    CompareSwapGe,
    /// `w = x` if `c > w` (`FI_CSWAP_GT`).
    CompareSwapGt,
    /// `w = (x & c) | (w & !c)`: the bits that are set in `c` are replaced (`FI_MSWAP`).
    MaskedSwap,
}

impl AtomicOp {
    /// All operations, in the order of their codes.
    pub const ALL: [AtomicOp; 19] = {
        use AtomicOp::*;
        [
            Fetch,
            Set,
            Add,
            Product,
            Min,
            Max,
            And,
            Or,
            Xor,
            LogicalAnd,
            LogicalOr,
            LogicalXor,
            CompareSwap,
            CompareSwapNe,
            CompareSwapLe,
            CompareSwapLt,
            CompareSwapGe,
            CompareSwapGt,
            MaskedSwap,
        ]
    };

    /// Whether the operation takes a second operand, `c`.
    pub const fn takes_comparison(self) -> bool {
        self as u8 >= AtomicOp::CompareSwap as u8
    }

    /// Whether the operation works on the bits of an integer.
    pub const fn is_bitwise(self) -> bool {
        matches!(self, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::MaskedSwap)
    }

    /// Whether the operation depends on the order of two values.
    pub const fn asks_order(self) -> bool {
        use AtomicOp::*;
        matches!(self, Min | Max | CompareSwapLe | CompareSwapLt | CompareSwapGe | CompareSwapGt)
    }

    /// Whether the operation is defined for words of `kind`: bitwise operations are for integers only, and
    /// operations that depend on an order are not for complex numbers.
    pub const fn is_defined_for(self, kind: AtomicKind) -> bool {
        (!self.is_bitwise() || kind.is_integer()) && (!self.asks_order() || kind.is_ordered())
    }
}

/// One atomic operation with its operands. An operand is the low bytes of its word, as many as the kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomic {
    /// The type of the word.
    pub kind: AtomicKind,
    /// The operation on it.
    pub op: AtomicOp,
    /// The operand `x`.
    pub operand: u64,
    /// The second operand `c` of the compare-and-swaps and the masked swap.
    pub compare: u64,
}

impl Atomic {
    /// The operation and the kind as a number, for a message.
    pub fn code(&self) -> u16 {
        (self.kind as u16) << 8 | self.op as u16
    }

    /// The operation with this code, if there is one and it is defined for its kind.
    pub fn from_code(code: u16, operand: u64, compare: u64) -> Option<Atomic> {
        let kind = *AtomicKind::ALL.get(usize::from(code >> 8))?;
        let op = *AtomicOp::ALL.get(usize::from(code & 0xFF))?;
        op.is_defined_for(kind).then_some(Atomic { kind, op, operand, compare })
    }

    /// The new value of the word if it was `old`; `None` if it does not change.
    pub fn next(&self, old: u64) -> Option<u64> {
        macro_rules! integer {
            ($type:ty) => {{
                let (w, x, c) = (old as $type, self.operand as $type, self.compare as $type);
                let truth = |yes: bool| Some(yes as $type);
                let next: Option<$type> = match self.op {
                    AtomicOp::Add => Some(w.wrapping_add(x)),
                    AtomicOp::Product => Some(w.wrapping_mul(x)),
                    AtomicOp::Min => Some(w.min(x)),
                    AtomicOp::Max => Some(w.max(x)),
                    AtomicOp::And => Some(w & x),
                    AtomicOp::Or => Some(w | x),
                    AtomicOp::Xor => Some(w ^ x),
                    AtomicOp::MaskedSwap => Some((x & c) | (w & !c)),
                    AtomicOp::LogicalAnd => truth(w != 0 && x != 0),
                    AtomicOp::LogicalOr => truth(w != 0 || x != 0),
                    AtomicOp::LogicalXor => truth((w != 0) != (x != 0)),
                    AtomicOp::CompareSwap => (c == w).then_some(x),
                    AtomicOp::CompareSwapNe => (c != w).then_some(x),
                    _ => self.moved(w, x, c),
                };
                next.map(|next| next as u64)
            }};
        }
        macro_rules! float {
            ($type:ty, $bits:ty) => {{
                let of = |bits: u64| <$type>::from_bits(bits as $bits);
                let (w, x, c) = (of(old), of(self.operand), of(self.compare));
                let truth = |yes: bool| Some(if yes { 1.0 } else { 0.0 });
                let is_same = w.to_bits() == c.to_bits();
                let next: Option<$type> = match self.op {
                    AtomicOp::Add => Some(w + x),
                    AtomicOp::Product => Some(w * x),
                    AtomicOp::Min => Some(w.min(x)),
                    AtomicOp::Max => Some(w.max(x)),
                    AtomicOp::LogicalAnd => truth(w != 0.0 && x != 0.0),
                    AtomicOp::LogicalOr => truth(w != 0.0 || x != 0.0),
                    AtomicOp::LogicalXor => truth((w != 0.0) != (x != 0.0)),
                    AtomicOp::CompareSwap => is_same.then_some(x),
                    AtomicOp::CompareSwapNe => (!is_same).then_some(x),
                    _ => self.moved(w, x, c),
                };
                next.map(|next| u64::from(next.to_bits()))
            }};
        }
        match self.kind {
            AtomicKind::I8 => integer!(i8),
            AtomicKind::U8 => integer!(u8),
            AtomicKind::I16 => integer!(i16),
            AtomicKind::U16 => integer!(u16),
            AtomicKind::I32 => integer!(i32),
            AtomicKind::U32 => integer!(u32),
            AtomicKind::I64 => integer!(i64),
            AtomicKind::U64 => integer!(u64),
            AtomicKind::F32 => float!(f32, u32),
            AtomicKind::F64 => float!(f64, u64),
            AtomicKind::ComplexF32 => self.next_complex(old),
        }
    }

    /// The same for complex numbers, whose parts have the same order in the word as in memory.
    fn next_complex(&self, old: u64) -> Option<u64> {
        let parts = |word: u64| {
            let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
            (f32::from_ne_bytes([a, b, c, d]), f32::from_ne_bytes([e, f, g, h]))
        };
        let word = |re: f32, im: f32| {
            let ([a, b, c, d], [e, f, g, h]) = (re.to_ne_bytes(), im.to_ne_bytes());
            Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
        };
        let truth = |yes: bool| word(if yes { 1.0 } else { 0.0 }, 0.0);
        let ((re, im), (x_re, x_im)) = (parts(old), parts(self.operand));
        let (is_set, is_x_set) = (re != 0.0 || im != 0.0, x_re != 0.0 || x_im != 0.0);
        match self.op {
            AtomicOp::Set => Some(self.operand),
            AtomicOp::Add => word(re + x_re, im + x_im),
            AtomicOp::Product => word(re * x_re - im * x_im, re * x_im + im * x_re),
            AtomicOp::LogicalAnd => truth(is_set && is_x_set),
            AtomicOp::LogicalOr => truth(is_set || is_x_set),
            AtomicOp::LogicalXor => truth(is_set != is_x_set),
            AtomicOp::CompareSwap => (self.compare == old).then_some(self.operand),
            AtomicOp::CompareSwapNe => (self.compare != old).then_some(self.operand),
            _ => None,
        }
    }

    /// The operations that only move a value, which are the same for all types.
    fn moved<T: PartialOrd>(&self, w: T, x: T, c: T) -> Option<T> {
        match self.op {
            AtomicOp::Set => Some(x),
            AtomicOp::CompareSwapLe => (c <= w).then_some(x),
            AtomicOp::CompareSwapLt => (c < w).then_some(x),
            AtomicOp::CompareSwapGe => (c >= w).then_some(x),
            AtomicOp::CompareSwapGt => (c > w).then_some(x),
            _ => None,
        }
    }

    /// Executes the operation on this processor. Returns the word's old value, with zero in its high bytes.
    ///
    /// # Safety
    /// `word` is valid for a word of the kind, aligned to its size, accessed by others only through atomics,
    /// `copy`, or from other processes.
    pub unsafe fn execute(&self, word: *mut u8) -> u64 {
        macro_rules! update {
            ($atomic:ty) => {{
                // SAFETY: the caller guarantees the word, which has the size of this atomic.
                let word = unsafe { <$atomic>::from_ptr(word.cast()) };
                let next = |old| self.next(u64::from(old)).map(|next| next as _);
                let old = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
                u64::from(old.unwrap_or_else(|old| old))
            }};
        }
        // One instruction does these, which most signals are.
        if let (AtomicKind::U64 | AtomicKind::I64, AtomicOp::Add | AtomicOp::Set) = (self.kind, self.op) {
            // SAFETY: the caller guarantees the word.
            let word = unsafe { AtomicU64::from_ptr(word.cast()) };
            return match self.op {
                AtomicOp::Add => word.fetch_add(self.operand, Ordering::AcqRel),
                _ => word.swap(self.operand, Ordering::AcqRel),
            };
        }
        match self.kind.bytes() {
            1 => update!(AtomicU8),
            2 => update!(AtomicU16),
            4 => update!(AtomicU32),
            _ => update!(AtomicU64),
        }
    }
}

/// Writes the low bytes of `value`, as many as `kind` has.
///
/// # Safety
/// `target` is valid for writes of a word of the kind and aligned for its type. A complex number is aligned
/// for one of its parts.
pub unsafe fn write_word(kind: AtomicKind, value: u64, target: *mut u8) {
    // SAFETY: the caller guarantees the target; each cast has the size of the kind, and `transfer` accepts
    // any alignment.
    unsafe {
        match kind {
            AtomicKind::I8 | AtomicKind::U8 => copy::store(target, value as u8),
            AtomicKind::I16 | AtomicKind::U16 => copy::store(target.cast(), value as u16),
            AtomicKind::I32 | AtomicKind::U32 | AtomicKind::F32 => copy::store(target.cast(), value as u32),
            AtomicKind::I64 | AtomicKind::U64 | AtomicKind::F64 => copy::store(target.cast(), value),
            AtomicKind::ComplexF32 => copy::transfer(target, (&raw const value).cast(), size_of::<u64>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(kind: AtomicKind, op: AtomicOp, w: u64, x: u64, c: u64) -> u64 {
        let mut word = w;
        let atomic = Atomic { kind, op, operand: x, compare: c };
        // SAFETY: the word is a local of 8 bytes, aligned for every kind.
        let old = unsafe { atomic.execute((&raw mut word).cast()) };
        let mask = u64::MAX >> (64 - 8 * kind.bytes());
        assert_eq!(old, w & mask, "{atomic:?} returns the old value");
        assert_eq!(word & !mask, w & !mask, "{atomic:?} touches nothing beyond its word");
        word & mask
    }

    #[test]
    fn integers_wrap_and_know_their_sign() {
        use AtomicKind::*;
        use AtomicOp::*;
        assert_eq!(after(U8, Add, 0x1FF, 1, 0), 0);
        assert_eq!(after(I16, Min, 5, (-3i16) as u16 as u64, 0), 0xFFFD);
        assert_eq!(after(U16, Min, 5, (-3i16) as u16 as u64, 0), 5);
        assert_eq!(after(I32, Max, u64::from(u32::MAX), 0, 0), 0);
        assert_eq!(after(U32, Max, u64::from(u32::MAX), 0, 0), u64::from(u32::MAX));
        assert_eq!(after(I64, Product, u64::MAX, 7, 0), (-7i64) as u64);
        assert_eq!(after(U64, Add, u64::MAX, 2, 0), 1);
    }

    #[test]
    fn every_operation_does_what_it_says() {
        use AtomicKind::U32;
        use AtomicOp::*;
        let cases = [
            (Fetch, 6, 0, 0, 6),
            (Set, 6, 9, 0, 9),
            (Add, 6, 9, 0, 15),
            (Product, 6, 9, 0, 54),
            (Min, 6, 9, 0, 6),
            (Max, 6, 9, 0, 9),
            (And, 6, 3, 0, 2),
            (Or, 6, 3, 0, 7),
            (Xor, 6, 3, 0, 5),
            (LogicalAnd, 6, 0, 0, 0),
            (LogicalAnd, 6, 2, 0, 1),
            (LogicalOr, 0, 0, 0, 0),
            (LogicalOr, 6, 0, 0, 1),
            (LogicalXor, 6, 2, 0, 0),
            (LogicalXor, 6, 0, 0, 1),
            (CompareSwap, 6, 9, 6, 9),
            (CompareSwap, 6, 9, 5, 6),
            (CompareSwapNe, 6, 9, 6, 6),
            (CompareSwapNe, 6, 9, 5, 9),
            (CompareSwapLe, 6, 9, 6, 9),
            (CompareSwapLe, 6, 9, 7, 6),
            (CompareSwapLt, 6, 9, 5, 9),
            (CompareSwapLt, 6, 9, 6, 6),
            (CompareSwapGe, 6, 9, 6, 9),
            (CompareSwapGe, 6, 9, 5, 6),
            (CompareSwapGt, 6, 9, 7, 9),
            (CompareSwapGt, 6, 9, 6, 6),
            (MaskedSwap, 0b0110, 0b1001, 0b0011, 0b0101),
        ];
        for (op, w, x, c, expected) in cases {
            assert_eq!(after(U32, op, w, x, c), expected, "{op:?}: w {w}, x {x}, c {c}");
        }
        assert!(AtomicOp::ALL.iter().all(|op| cases.iter().any(|case| case.0 == *op)));
    }

    #[test]
    fn floats_are_numbers_not_bits() {
        use AtomicOp::*;
        let f64s = |op, w: f64, x: f64, c: f64| {
            f64::from_bits(after(AtomicKind::F64, op, w.to_bits(), x.to_bits(), c.to_bits()))
        };
        let f32s = |op, w: f32, x: f32| {
            f32::from_bits(after(AtomicKind::F32, op, w.to_bits().into(), x.to_bits().into(), 0) as u32)
        };
        assert_eq!(f64s(Add, 0.5, -2.0, 0.0), -1.5);
        assert_eq!(f64s(Min, -0.5, f64::NAN, 0.0), -0.5);
        assert_eq!(f64s(CompareSwapLt, -1.0, 4.0, -2.0), 4.0);
        assert_eq!(f64s(CompareSwap, 1.5, 4.0, 1.5), 4.0);
        assert_eq!(f64s(LogicalAnd, 0.5, 3.0, 0.0), 1.0);
        assert_eq!(f32s(Product, 3.0, -0.5), -1.5);
        assert_eq!(f32s(Set, 3.0, f32::INFINITY), f32::INFINITY);
    }

    #[test]
    fn complex_numbers_are_two_parts_of_one_word() {
        use AtomicOp::*;
        let word = |re: f32, im: f32| {
            let mut parts = [0; 8];
            parts[..4].copy_from_slice(&re.to_ne_bytes());
            parts[4..].copy_from_slice(&im.to_ne_bytes());
            u64::from_ne_bytes(parts)
        };
        let (one, none, w, x) = (word(1.0, 0.0), word(0.0, 0.0), word(1.5, -2.0), word(4.0, 0.5));
        let imaginary = word(0.0, 3.0);
        let cases = [
            (Fetch, w, x, none, w),
            (Set, w, x, none, x),
            (Add, w, x, none, word(5.5, -1.5)),
            (Product, w, x, none, word(7.0, -7.25)),
            (LogicalAnd, w, imaginary, none, one),
            (LogicalAnd, w, word(-0.0, 0.0), none, none),
            (LogicalOr, none, none, w, none),
            (LogicalOr, none, imaginary, w, one),
            (LogicalXor, imaginary, x, none, none),
            (LogicalXor, imaginary, none, none, one),
            (CompareSwap, w, x, w, x),
            (CompareSwap, none, x, word(-0.0, 0.0), none),
            (CompareSwapNe, w, x, w, w),
            (CompareSwapNe, w, x, word(1.5, 2.0), x),
        ];
        for (op, w, x, c, expected) in cases {
            assert_eq!(after(AtomicKind::ComplexF32, op, w, x, c), expected, "{op:?}: {w:x}, {x:x}, {c:x}");
        }
        let defined = AtomicOp::ALL.into_iter().filter(|op| op.is_defined_for(AtomicKind::ComplexF32));
        assert!(defined.clone().all(|op| cases.iter().any(|case| case.0 == op)));
        assert_eq!(defined.count(), 9);
    }

    #[test]
    fn words_are_written_wherever_their_type_may_lie() {
        for kind in AtomicKind::ALL {
            let mut room = [u64::MAX; 3];
            let align = if kind.is_ordered() { kind.bytes() } else { 4 };
            let start: *mut u8 = (&raw mut room).cast();
            // SAFETY: the word ends within 24 bytes, and is aligned for its type.
            unsafe { write_word(kind, 0x1122_3344_5566_7788, start.add(8 + align)) };
            let bytes: Vec<u8> = room.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let (before, rest) = bytes.split_at(8 + align);
            let (word, after) = rest.split_at(kind.bytes());
            let low = 0x1122_3344_5566_7788u64.to_le_bytes();
            assert!(before.iter().chain(after).all(|&byte| byte == 0xFF), "{kind:?}");
            let mut word = word.to_vec();
            if cfg!(target_endian = "big") {
                word.reverse();
            }
            assert_eq!(word, low[..kind.bytes()], "{kind:?}");
        }
    }

    #[test]
    fn codes_go_there_and_back() {
        for kind in AtomicKind::ALL {
            for op in AtomicOp::ALL {
                let atomic = Atomic { kind, op, operand: 3, compare: 4 };
                let expected = op.is_defined_for(kind).then_some(atomic);
                assert_eq!(Atomic::from_code(atomic.code(), 3, 4), expected);
            }
        }
        assert_eq!(Atomic::from_code(0x0B00, 0, 0), None);
        assert_eq!(Atomic::from_code(0x0013, 0, 0), None);
        assert!(!AtomicOp::Xor.is_defined_for(AtomicKind::F32));
        assert!(!AtomicOp::Xor.is_defined_for(AtomicKind::ComplexF32));
        assert!(!AtomicOp::CompareSwapLe.is_defined_for(AtomicKind::ComplexF32));
        assert!(AtomicOp::CompareSwapLe.is_defined_for(AtomicKind::F32));
    }
}
