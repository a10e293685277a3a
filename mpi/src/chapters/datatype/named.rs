//! The named datatypes of the standard, and the elementary types that they are made of.
//!
//! Invariant: sizes are those of the C and Fortran compilers of the platform, and those of `external32` are
//! in the table of the standard (section 14.5.2).

use super::layout::Layout;
use super::shape::Shape;
use super::signature::Signature;
use crate::abi::*;

/// The elementary types that operations know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basic {
    Signed(u8),
    Unsigned(u8),
    /// An integer of C or Fortran that is 0 or something else.
    Logical(u8),
    Float16,
    Float32,
    Float64,
    Float128,
    LongDouble,
    Complex16,
    Complex32,
    Complex64,
    Complex128,
    ComplexLongDouble,
    /// A character of one byte, which operations take for a signed integer.
    Char,
    /// Bytes without meaning, and wide characters.
    Bytes(u8),
    FloatInt,
    DoubleInt,
    LongInt,
    TwoInt,
    ShortInt,
    LongDoubleInt,
    TwoReal,
    TwoDouble,
}

/// The number of the first named datatype; its handle is that of `MPI_DATATYPE_NULL`.
pub const FIRST: usize = 0x200;
/// The number of handles of the standard's constants that are datatypes.
pub const NUMBER: usize = 0x100;

/// Defines the named datatypes: handles, names and elementary types. Where a handle has two names, the one
/// that the standard calls a synonym is not here.
macro_rules! named {
    ($($basic:expr => $($handle:ident)*;)*) => {
        fn basic_of(handle: MPI_Datatype) -> Option<Basic> {
            use Basic::*;
            Some(match handle {
                $($($handle)|* => $basic,)*
                _ => return None,
            })
        }

        fn name_of(handle: MPI_Datatype) -> &'static str {
            match handle {
                $($($handle => stringify!($handle),)*)*
                _ => "",
            }
        }
    };
}

named! {
    Signed(1) => MPI_SIGNED_CHAR MPI_INT8_T MPI_INTEGER1;
    Signed(2) => MPI_SHORT MPI_INT16_T MPI_INTEGER2;
    Signed(4) => MPI_INT MPI_INT32_T MPI_INTEGER MPI_INTEGER4;
    Signed(8) => MPI_AINT MPI_COUNT MPI_OFFSET MPI_LONG MPI_LONG_LONG_INT MPI_INT64_T MPI_INTEGER8;
    Signed(16) => MPI_INTEGER16;
    Unsigned(1) => MPI_UNSIGNED_CHAR MPI_UINT8_T;
    Unsigned(2) => MPI_UNSIGNED_SHORT MPI_UINT16_T;
    Unsigned(4) => MPI_UNSIGNED MPI_UINT32_T;
    Unsigned(8) => MPI_UNSIGNED_LONG MPI_UNSIGNED_LONG_LONG MPI_UINT64_T;
    Logical(1) => MPI_C_BOOL MPI_CXX_BOOL MPI_LOGICAL1;
    Logical(2) => MPI_LOGICAL2;
    Logical(4) => MPI_LOGICAL MPI_LOGICAL4;
    Logical(8) => MPI_LOGICAL8;
    Logical(16) => MPI_LOGICAL16;
    Char => MPI_CHAR MPI_CHARACTER;
    Bytes(1) => MPI_PACKED MPI_BYTE;
    Bytes(4) => MPI_WCHAR;
    Float16 => MPI_REAL2;
    Float32 => MPI_FLOAT MPI_REAL MPI_REAL4;
    Float64 => MPI_DOUBLE MPI_DOUBLE_PRECISION MPI_REAL8;
    Float128 => MPI_REAL16;
    LongDouble => MPI_LONG_DOUBLE;
    Complex16 => MPI_COMPLEX4;
    Complex32 => MPI_C_COMPLEX MPI_CXX_FLOAT_COMPLEX MPI_COMPLEX MPI_COMPLEX8;
    Complex64 => MPI_C_DOUBLE_COMPLEX MPI_CXX_DOUBLE_COMPLEX MPI_DOUBLE_COMPLEX MPI_COMPLEX16;
    Complex128 => MPI_COMPLEX32;
    ComplexLongDouble => MPI_C_LONG_DOUBLE_COMPLEX MPI_CXX_LONG_DOUBLE_COMPLEX;
    FloatInt => MPI_FLOAT_INT;
    DoubleInt => MPI_DOUBLE_INT;
    LongInt => MPI_LONG_INT;
    TwoInt => MPI_2INT MPI_2INTEGER;
    ShortInt => MPI_SHORT_INT;
    LongDoubleInt => MPI_LONG_DOUBLE_INT;
    TwoReal => MPI_2REAL;
    TwoDouble => MPI_2DOUBLE_PRECISION;
}

/// The meaning of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Signed,
    /// Also characters, logical values, and IEEE numbers: their bytes are kept.
    Plain,
    /// The C type `long double`.
    LongDouble,
}

/// Numbers of one kind in an elementary type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub number: Number,
    /// Bytes in memory.
    pub native: usize,
    /// Bytes in `external32`.
    pub external: usize,
    /// Two for a complex number, else one.
    pub times: usize,
}

impl Part {
    fn plain(bytes: usize) -> Part {
        Part { number: Number::Plain, native: bytes, external: bytes, times: 1 }
    }

    fn signed(bytes: usize) -> Part {
        Part { number: Number::Signed, ..Part::plain(bytes) }
    }

    fn long_double() -> Part {
        Part { number: Number::LongDouble, ..Part::plain(16) }
    }

    fn twice(self) -> Part {
        Part { times: 2, ..self }
    }

    pub fn native_bytes(&self) -> usize {
        self.native * self.times
    }

    pub fn external_bytes(&self) -> usize {
        self.external * self.times
    }
}

/// A named datatype as an entry of a type signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named(u8);

impl Named {
    /// The one with a handle.
    pub fn of(handle: MPI_Datatype) -> Option<Named> {
        basic_of(handle)?;
        Some(Named((handle.0 - FIRST) as u8))
    }

    pub fn handle(self) -> MPI_Datatype {
        MPI_Datatype(FIRST + usize::from(self.0))
    }

    pub fn name(self) -> &'static str {
        name_of(self.handle())
    }

    pub fn basic(self) -> Basic {
        basic_of(self.handle()).expect("only named datatypes are made into this type")
    }

    /// The parts: the second is there in pairs of a value and an index.
    pub fn parts(self) -> (Part, Option<Part>) {
        let int = || Some(Part::signed(4));
        let (first, second) = match self.basic() {
            Basic::Signed(bytes) => (Part::signed(bytes.into()), None),
            Basic::Unsigned(bytes) | Basic::Logical(bytes) | Basic::Bytes(bytes) => {
                (Part::plain(bytes.into()), None)
            }
            Basic::Char => (Part::plain(1), None),
            Basic::Float16 => (Part::plain(2), None),
            Basic::Float32 => (Part::plain(4), None),
            Basic::Float64 => (Part::plain(8), None),
            Basic::Float128 => (Part::plain(16), None),
            Basic::LongDouble => (Part::long_double(), None),
            Basic::Complex16 => (Part::plain(2).twice(), None),
            Basic::Complex32 => (Part::plain(4).twice(), None),
            Basic::Complex64 => (Part::plain(8).twice(), None),
            Basic::Complex128 => (Part::plain(16).twice(), None),
            Basic::ComplexLongDouble => (Part::long_double().twice(), None),
            Basic::FloatInt => (Part::plain(4), int()),
            Basic::DoubleInt => (Part::plain(8), int()),
            Basic::LongInt => (Part { external: 4, ..Part::signed(8) }, int()),
            Basic::TwoInt => (Part::signed(4), int()),
            Basic::ShortInt => (Part::signed(2), int()),
            Basic::LongDoubleInt => (Part::long_double(), int()),
            Basic::TwoReal => (Part::plain(4), Some(Part::plain(4))),
            Basic::TwoDouble => (Part::plain(8), Some(Part::plain(8))),
        };
        let external = match self.handle() {
            MPI_LONG | MPI_UNSIGNED_LONG => 4,
            MPI_WCHAR => 2,
            _ => first.external,
        };
        (Part { external, ..first }, second)
    }

    /// Bytes of data in memory.
    pub fn native_bytes(self) -> usize {
        let (first, second) = self.parts();
        first.native_bytes() + second.map_or(0, |second| second.native_bytes())
    }

    /// Bytes of data in `external32`.
    pub fn external_bytes(self) -> usize {
        let (first, second) = self.parts();
        first.external_bytes() + second.map_or(0, |second| second.external_bytes())
    }

    /// The number of elements that `MPI_Get_elements` counts: a pair has two.
    pub fn elements(self) -> u64 {
        1 + u64::from(self.parts().1.is_some())
    }

    /// Where the second part of a pair lies, in memory.
    fn second_offset(self) -> usize {
        let (first, second) = self.parts();
        first.native_bytes().next_multiple_of(second.map_or(1, |second| second.native))
    }

    /// The shape: a pair lies in memory like a struct of C.
    pub fn shape(self) -> Shape {
        let (first, second) = self.parts();
        let mut pieces = vec![Layout::block(0, first.native_bytes())];
        let mut alignment = first.native;
        if let Some(second) = second {
            pieces.push(Layout::block(self.second_offset() as isize, second.native_bytes()));
            alignment = alignment.max(second.native);
        }
        let shape = Shape::new(Layout::sequence(pieces), Signature::of(self), None, alignment);
        let mut shape = shape.expect("a named datatype is small");
        shape.basic = Some(self.basic());
        shape
    }
}

/// All named datatypes, by the distance of their handle from `FIRST`.
pub fn all() -> impl Iterator<Item = Option<Named>> {
    (0..NUMBER).map(|number| Named::of(MPI_Datatype(FIRST + number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_lie_in_memory_like_structs_of_c() {
        let numbers = |handle| {
            let shape = Named::of(handle).unwrap().shape();
            (shape.size, shape.extent, shape.true_ub)
        };
        assert_eq!(numbers(MPI_FLOAT_INT), (8, 8, 8));
        assert_eq!(numbers(MPI_DOUBLE_INT), (12, 16, 12));
        assert_eq!(numbers(MPI_LONG_INT), (12, 16, 12));
        assert_eq!(numbers(MPI_SHORT_INT), (6, 8, 8));
        assert_eq!(numbers(MPI_LONG_DOUBLE_INT), (20, 32, 20));
        assert_eq!(numbers(MPI_2DOUBLE_PRECISION), (16, 16, 16));
    }

    #[test]
    fn external_sizes_are_those_of_the_standard() {
        let external = |handle| Named::of(handle).unwrap().external_bytes();
        let sizes = [
            (MPI_LONG, 4),
            (MPI_UNSIGNED_LONG, 4),
            (MPI_LONG_LONG, 8),
            (MPI_WCHAR, 2),
            (MPI_AINT, 8),
            (MPI_LONG_DOUBLE, 16),
            (MPI_C_LONG_DOUBLE_COMPLEX, 32),
            (MPI_LOGICAL, 4),
            (MPI_LONG_INT, 8),
            (MPI_SHORT_INT, 6),
        ];
        for (handle, size) in sizes {
            assert_eq!(external(handle), size, "{handle:?}");
        }
    }
}
