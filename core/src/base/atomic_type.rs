//! The table of atomics: the 14 types and 19 operations of the Scalable Fabric Interface, and for each pair
//! whether the runtime has such an atomic, or why it has none.
//!
//! Invariant: the table allows an operation exactly where the executors' own kinds ([`AtomicKind`]) do, and a
//! type without a kind has no operation. Sources: M. Luo et al., Early Evaluation of Scalable Fabric
//! Interface for PGAS Programming Models, section 5.1; libfabric, `fi_atomic(3)`.

use pelago_fabric::{AtomicKind, AtomicOp};
use std::fmt;

/// A type of the table. The first eleven are types of Rust as well; the others are listed so that a program
/// can ask about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicType {
    /// `i8` (`FI_INT8`).
    I8,
    /// `u8` (`FI_UINT8`).
    U8,
    /// `i16` (`FI_INT16`).
    I16,
    /// `u16` (`FI_UINT16`).
    U16,
    /// `i32` (`FI_INT32`).
    I32,
    /// `u32` (`FI_UINT32`).
    U32,
    /// `i64` (`FI_INT64`).
    I64,
    /// `u64` (`FI_UINT64`).
    U64,
    /// `f32` (`FI_FLOAT`).
    F32,
    /// `f64` (`FI_DOUBLE`).
    F64,
    /// `Complex<f32>` (`FI_FLOAT_COMPLEX`).
    ComplexF32,
    /// `Complex<f64>` (`FI_DOUBLE_COMPLEX`): 16 bytes.
    ComplexF64,
    /// C's `long double` (`FI_LONG_DOUBLE`): 16 bytes on x86-64 and aarch64.
    LongDouble,
    /// C's `long double complex` (`FI_LONG_DOUBLE_COMPLEX`): 32 bytes.
    ComplexLongDouble,
}

/// Why the table has no such atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoSuchAtomic {
    /// A bitwise operation on a type that is not an integer.
    NotBits,
    /// An operation that compares two values by order, on complex numbers, which have none.
    NoOrder,
    /// A value with more bytes than the words that atomics work on, which have at most 8.
    TooWide {
        /// Its size in bytes.
        bytes: usize,
    },
}

impl AtomicType {
    /// All types, in the order of the table.
    pub const ALL: [AtomicType; 14] = {
        use AtomicType::*;
        [
            I8,
            U8,
            I16,
            U16,
            I32,
            U32,
            I64,
            U64,
            F32,
            F64,
            ComplexF32,
            ComplexF64,
            LongDouble,
            ComplexLongDouble,
        ]
    };

    /// The type of the words of a kind.
    pub const fn of(kind: AtomicKind) -> AtomicType {
        match kind {
            AtomicKind::I8 => AtomicType::I8,
            AtomicKind::U8 => AtomicType::U8,
            AtomicKind::I16 => AtomicType::I16,
            AtomicKind::U16 => AtomicType::U16,
            AtomicKind::I32 => AtomicType::I32,
            AtomicKind::U32 => AtomicType::U32,
            AtomicKind::I64 => AtomicType::I64,
            AtomicKind::U64 => AtomicType::U64,
            AtomicKind::F32 => AtomicType::F32,
            AtomicKind::F64 => AtomicType::F64,
            AtomicKind::ComplexF32 => AtomicType::ComplexF32,
        }
    }

    /// The kind of the words of this type; `None` if a value is wider than a word.
    pub const fn kind(self) -> Option<AtomicKind> {
        let mut i = 0;
        while i < AtomicKind::ALL.len() {
            if AtomicType::of(AtomicKind::ALL[i]) as u8 == self as u8 {
                return Some(AtomicKind::ALL[i]);
            }
            i += 1;
        }
        None
    }

    /// Size of a value in bytes, as C compilers for 64-bit Linux lay it out.
    pub const fn bytes(self) -> usize {
        match (self.kind(), self) {
            (Some(kind), _) => kind.bytes(),
            (None, AtomicType::ComplexLongDouble) => 32,
            (None, _) => 16,
        }
    }

    /// Whether the type is an integer, so that the bitwise operations are defined for it.
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Some(kind) if kind.is_integer())
    }

    /// Whether the values of the type are complex numbers, which have no order.
    pub const fn is_complex(self) -> bool {
        matches!(self, AtomicType::ComplexF32 | AtomicType::ComplexF64 | AtomicType::ComplexLongDouble)
    }

    /// Looks up the table: `Ok` if the operation exists on this type, or else the reason why it does not.
    ///
    /// ```
    /// # mod pelago {
    /// #     pub use {pelago_core::base::atomic_type::{AtomicType, NoSuchAtomic}, pelago_fabric::AtomicOp};
    /// # }
    /// use pelago::{AtomicOp, AtomicType, NoSuchAtomic};
    /// assert_eq!(AtomicType::F32.answer(AtomicOp::Add), Ok(()));
    /// assert_eq!(AtomicType::F32.answer(AtomicOp::Xor), Err(NoSuchAtomic::NotBits));
    /// assert_eq!(AtomicType::ComplexF32.answer(AtomicOp::Max), Err(NoSuchAtomic::NoOrder));
    /// assert_eq!(AtomicType::LongDouble.answer(AtomicOp::Add), Err(NoSuchAtomic::TooWide { bytes: 16 }));
    /// ```
    ///
    /// # Errors
    /// If there is no such atomic. A reason that holds for every executor takes precedence over a limit of
    /// the executors here.
    pub const fn answer(self, op: AtomicOp) -> Result<(), NoSuchAtomic> {
        if op.is_bitwise() && !self.is_integer() {
            return Err(NoSuchAtomic::NotBits);
        }
        if op.asks_order() && self.is_complex() {
            return Err(NoSuchAtomic::NoOrder);
        }
        match self.kind() {
            Some(_) => Ok(()),
            None => Err(NoSuchAtomic::TooWide { bytes: self.bytes() }),
        }
    }
}

impl fmt::Display for AtomicType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AtomicType::ComplexF32 => f.write_str("Complex<f32>"),
            AtomicType::ComplexF64 => f.write_str("Complex<f64>"),
            AtomicType::LongDouble => f.write_str("long double"),
            AtomicType::ComplexLongDouble => f.write_str("long double complex"),
            plain => f.write_str(&format!("{plain:?}").to_lowercase()),
        }
    }
}

impl fmt::Display for NoSuchAtomic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSuchAtomic::NotBits => f.write_str("it works on the bits of integers, not on floats"),
            NoSuchAtomic::NoOrder => {
                f.write_str("it asks which of two values is the lesser, but complex numbers have no order")
            }
            NoSuchAtomic::TooWide { bytes } => {
                write!(f, "a value has {bytes} bytes, but the words that atomics work on have at most 8")
            }
        }
    }
}

impl std::error::Error for NoSuchAtomic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_an_answer_and_the_executors_agree() {
        for of in AtomicType::ALL {
            for op in AtomicOp::ALL {
                let is_defined = of.kind().is_some_and(|kind| op.is_defined_for(kind));
                assert_eq!(of.answer(op).is_ok(), is_defined, "{op:?} on {of}");
            }
        }
        let possible = |of: &AtomicType| AtomicOp::ALL.iter().filter(|op| of.answer(**op).is_ok()).count();
        let counts: Vec<usize> = AtomicType::ALL.iter().map(possible).collect();
        assert_eq!(counts, [19, 19, 19, 19, 19, 19, 19, 19, 15, 15, 9, 0, 0, 0]);
    }

    #[test]
    fn what_cannot_be_says_why() {
        use AtomicOp::*;
        let wide = |bytes| Err(NoSuchAtomic::TooWide { bytes });
        let cases = [
            (AtomicType::F64, And, Err(NoSuchAtomic::NotBits)),
            (AtomicType::ComplexF32, MaskedSwap, Err(NoSuchAtomic::NotBits)),
            (AtomicType::LongDouble, Xor, Err(NoSuchAtomic::NotBits)),
            (AtomicType::ComplexF32, CompareSwapLe, Err(NoSuchAtomic::NoOrder)),
            (AtomicType::ComplexF64, Min, Err(NoSuchAtomic::NoOrder)),
            (AtomicType::ComplexLongDouble, CompareSwapGt, Err(NoSuchAtomic::NoOrder)),
            (AtomicType::ComplexF64, Add, wide(16)),
            (AtomicType::LongDouble, Max, wide(16)),
            (AtomicType::ComplexLongDouble, Fetch, wide(32)),
            (AtomicType::ComplexF32, CompareSwap, Ok(())),
            (AtomicType::I8, MaskedSwap, Ok(())),
        ];
        for (of, op, expected) in cases {
            assert_eq!(of.answer(op), expected, "{op:?} on {of}");
        }
        let words = [NoSuchAtomic::TooWide { bytes: 32 }, NoSuchAtomic::NoOrder].map(|why| why.to_string());
        assert!(words[0].contains("32 bytes") && words[1].contains("no order"), "{words:?}");
    }

    #[test]
    fn kinds_and_types_go_there_and_back() {
        for kind in AtomicKind::ALL {
            assert_eq!(AtomicType::of(kind).kind(), Some(kind));
            assert_eq!(AtomicType::of(kind).bytes(), kind.bytes());
        }
        assert_eq!(AtomicType::ALL.iter().filter(|of| of.kind().is_none()).count(), 3);
        assert_eq!((AtomicType::U16.to_string(), AtomicType::ComplexF32.bytes()), ("u16".to_owned(), 8));
    }
}
