//! The named datatypes of the standard.

use super::Datatype;
use crate::abi::*;
use crate::error::{Error, Result};
use std::sync::{Arc, OnceLock};

/// The elementary types that operations know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basic {
    Signed(u8),
    Unsigned(u8),
    /// An integer of C or Fortran that is 0 or something else.
    Logical(u8),
    Float32,
    Float64,
    LongDouble,
    Complex32,
    Complex64,
    ComplexLongDouble,
    /// Bytes without meaning, and characters.
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

const FIRST: usize = 0x200;
const NUMBER: usize = 0x100;

static NAMED: OnceLock<Box<[Option<Arc<Datatype>>]>> = OnceLock::new();

/// The size and the elementary type of a named datatype.
fn describe(handle: MPI_Datatype) -> Option<(usize, usize, Basic)> {
    use Basic::*;
    let plain = |bytes: u8, basic: fn(u8) -> Basic| (bytes as usize, bytes as usize, basic(bytes));
    Some(match handle {
        MPI_AINT | MPI_COUNT | MPI_OFFSET | MPI_LONG | MPI_LONG_LONG | MPI_INT64_T | MPI_INTEGER8 => {
            plain(8, Signed)
        }
        MPI_SHORT | MPI_INT16_T | MPI_INTEGER2 => plain(2, Signed),
        MPI_INT | MPI_INT32_T | MPI_INTEGER | MPI_INTEGER4 => plain(4, Signed),
        MPI_SIGNED_CHAR | MPI_INT8_T | MPI_INTEGER1 => plain(1, Signed),
        MPI_INTEGER16 => plain(16, Signed),
        MPI_UNSIGNED_SHORT | MPI_UINT16_T => plain(2, Unsigned),
        MPI_UNSIGNED | MPI_UINT32_T => plain(4, Unsigned),
        MPI_UNSIGNED_LONG | MPI_UNSIGNED_LONG_LONG | MPI_UINT64_T => plain(8, Unsigned),
        MPI_UNSIGNED_CHAR | MPI_UINT8_T => plain(1, Unsigned),
        MPI_C_BOOL | MPI_CXX_BOOL | MPI_LOGICAL1 => plain(1, Logical),
        MPI_LOGICAL2 => plain(2, Logical),
        MPI_LOGICAL | MPI_LOGICAL4 => plain(4, Logical),
        MPI_LOGICAL8 => plain(8, Logical),
        MPI_LOGICAL16 => plain(16, Logical),
        MPI_CHAR | MPI_CHARACTER | MPI_PACKED | MPI_BYTE => plain(1, Bytes),
        MPI_WCHAR => plain(4, Bytes),
        MPI_FLOAT | MPI_REAL | MPI_REAL4 => (4, 4, Float32),
        MPI_DOUBLE | MPI_DOUBLE_PRECISION | MPI_REAL8 => (8, 8, Float64),
        MPI_LONG_DOUBLE => (16, 16, LongDouble),
        MPI_C_FLOAT_COMPLEX | MPI_CXX_FLOAT_COMPLEX | MPI_COMPLEX | MPI_COMPLEX8 => (8, 8, Complex32),
        MPI_C_DOUBLE_COMPLEX | MPI_CXX_DOUBLE_COMPLEX | MPI_DOUBLE_COMPLEX | MPI_COMPLEX16 => {
            (16, 16, Complex64)
        }
        MPI_C_LONG_DOUBLE_COMPLEX | MPI_CXX_LONG_DOUBLE_COMPLEX => (32, 32, ComplexLongDouble),
        MPI_FLOAT_INT => (8, 8, FloatInt),
        MPI_DOUBLE_INT => (12, 16, DoubleInt),
        MPI_LONG_INT => (12, 16, LongInt),
        MPI_2INT | MPI_2INTEGER => (8, 8, TwoInt),
        MPI_SHORT_INT => (6, 8, ShortInt),
        MPI_LONG_DOUBLE_INT => (20, 32, LongDoubleInt),
        MPI_2REAL => (8, 8, TwoReal),
        MPI_2DOUBLE_PRECISION => (16, 16, TwoDouble),
        _ => return None,
    })
}

fn table() -> &'static [Option<Arc<Datatype>>] {
    NAMED.get_or_init(|| {
        let named = |number: usize| {
            let (size, extent, basic) = describe(MPI_Datatype(FIRST + number))?;
            Some(Arc::new(Datatype { size, lb: 0, extent: extent as isize, basic: Some(basic) }))
        };
        (0..NUMBER).map(named).collect()
    })
}

/// The datatype with a handle.
#[inline]
pub fn find(handle: MPI_Datatype) -> Result<&'static Datatype> {
    match table().get(handle.0.wrapping_sub(FIRST)) {
        Some(Some(datatype)) => Ok(datatype),
        _ => Err(no_datatype(handle)),
    }
}

/// A share of it.
pub fn share(handle: MPI_Datatype) -> Result<Arc<Datatype>> {
    match table().get(handle.0.wrapping_sub(FIRST)) {
        Some(Some(datatype)) => Ok(Arc::clone(datatype)),
        _ => Err(no_datatype(handle)),
    }
}

#[cold]
fn no_datatype(handle: MPI_Datatype) -> Error {
    let text = match handle {
        MPI_DATATYPE_NULL => "the datatype is MPI_DATATYPE_NULL",
        _ => "the datatype was freed, or never was one",
    };
    Error::new(MPI_ERR_TYPE, text)
}
