//! Datatypes of Fortran's parameterised types, and those that are found by size or by components (MPI 5.0,
//! sections 6.9.4 and 19.1.9).
//!
//! Invariant: the same arguments give the same handle. The ranges are those of the kinds of gfortran.

use super::contents::Arguments;
use super::find;
use super::named::Named;
use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::table;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The kinds of real numbers: decimal digits, range of the exponent, and the real and complex datatypes.
const REALS: [(c_int, c_int, MPI_Datatype, MPI_Datatype); 4] = [
    (6, 37, MPI_REAL4, MPI_COMPLEX8),
    (15, 307, MPI_REAL8, MPI_COMPLEX16),
    (18, 4931, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX),
    (33, 4931, MPI_REAL16, MPI_COMPLEX32),
];

/// The kinds of integers: decimal digits, and the datatype.
const INTEGERS: [(c_int, MPI_Datatype); 5] =
    [(2, MPI_INTEGER1), (4, MPI_INTEGER2), (9, MPI_INTEGER4), (18, MPI_INTEGER8), (38, MPI_INTEGER16)];

type Handles = HashMap<(c_int, c_int, c_int), MPI_Datatype>;

/// The handles by combiner and arguments.
static HANDLES: Mutex<Option<Handles>> = Mutex::new(None);

/// The handle of a datatype that is another one's twin, under a combiner of its own.
fn parameterised(twin: MPI_Datatype, combiner: c_int, numbers: &[c_int]) -> Result<MPI_Datatype> {
    let key = (combiner, numbers[0], numbers.get(1).copied().unwrap_or(0));
    let mut handles = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
    let handles = handles.get_or_insert_default();
    if let Some(&handle) = handles.get(&key) {
        return Ok(handle);
    }
    let mut arguments = Arguments::new(false);
    for &number in numbers {
        arguments.integer(number);
    }
    let contents = Arc::new(arguments.of(combiner, Vec::new()));
    let datatype = Arc::new(find(twin)?.duplicate(Some(contents)));
    let handle = datatype.handle()?;
    let _ = datatype.predefined.set(handle);
    table::stays(handle.0);
    handles.insert(key, handle);
    Ok(handle)
}

/// The kind of real numbers with these digits and this range of the exponent.
fn real_kind(p: c_int, r: c_int) -> Result<(MPI_Datatype, MPI_Datatype)> {
    ensure!(
        p != MPI_UNDEFINED || r != MPI_UNDEFINED,
        MPI_ERR_ARG,
        "p and r are both MPI_UNDEFINED. Give one of them"
    );
    let holds = |digits: c_int, range: c_int| p <= digits && r <= range;
    let kind = REALS.iter().find(|&&(digits, range, ..)| holds(digits, range));
    let error =
        || Error::new(MPI_ERR_ARG, format!("no kind of real numbers has {p} digits and the range {r}"));
    kind.map(|&(_, _, real, complex)| (real, complex)).ok_or_else(error)
}

/// `MPI_Type_create_f90_real`.
pub unsafe fn type_create_f90_real(_mpi: &Mpi, p: c_int, r: c_int, newtype: *mut MPI_Datatype) -> Result {
    let place = output("newtype", newtype)?;
    let (real, _) = real_kind(p, r)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(parameterised(real, MPI_COMBINER_F90_REAL, &[p, r])?) };
    Ok(())
}

/// `MPI_Type_create_f90_complex`.
pub unsafe fn type_create_f90_complex(_mpi: &Mpi, p: c_int, r: c_int, newtype: *mut MPI_Datatype) -> Result {
    let place = output("newtype", newtype)?;
    let (_, complex) = real_kind(p, r)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(parameterised(complex, MPI_COMBINER_F90_COMPLEX, &[p, r])?) };
    Ok(())
}

/// `MPI_Type_create_f90_integer`.
pub unsafe fn type_create_f90_integer(_mpi: &Mpi, r: c_int, newtype: *mut MPI_Datatype) -> Result {
    let place = output("newtype", newtype)?;
    let kind = INTEGERS.iter().find(|&&(digits, _)| r <= digits);
    let error = || Error::new(MPI_ERR_ARG, format!("no kind of integers has {r} digits; the most is 38"));
    let &(_, integer) = kind.ok_or_else(error)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(parameterised(integer, MPI_COMBINER_F90_INTEGER, &[r])?) };
    Ok(())
}

/// The named datatype of a class with a size in bytes.
fn of_size(class: c_int, size: c_int) -> Option<MPI_Datatype> {
    let datatypes: &[MPI_Datatype] = match class {
        MPI_TYPECLASS_REAL => &[MPI_REAL2, MPI_REAL4, MPI_REAL8, MPI_REAL16],
        MPI_TYPECLASS_INTEGER => &[MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_INTEGER16],
        MPI_TYPECLASS_COMPLEX => &[MPI_COMPLEX4, MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32],
        MPIX_TYPECLASS_LOGICAL => &[MPI_LOGICAL1, MPI_LOGICAL2, MPI_LOGICAL4, MPI_LOGICAL8, MPI_LOGICAL16],
        _ => return None,
    };
    let has_size = |handle: &MPI_Datatype| {
        Named::of(*handle).is_some_and(|named| i64::from(size) == named.native_bytes() as i64)
    };
    datatypes.iter().copied().find(has_size)
}

/// `MPI_Type_match_size`.
pub unsafe fn type_match_size(
    _mpi: &Mpi,
    typeclass: c_int,
    size: c_int,
    datatype: *mut MPI_Datatype,
) -> Result {
    let place = output("datatype", datatype)?;
    let error = || Error::new(MPI_ERR_ARG, format!("no datatype of class {typeclass} has {size} bytes"));
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(of_size(typeclass, size).ok_or_else(error)?) };
    Ok(())
}

/// `MPI_Type_get_value_index`: `MPI_DATATYPE_NULL` where no predefined pair has these components.
pub unsafe fn type_get_value_index(
    _mpi: &Mpi,
    value_type: MPI_Datatype,
    index_type: MPI_Datatype,
    pair_type: *mut MPI_Datatype,
) -> Result {
    let place = output("pair_type", pair_type)?;
    find(value_type)?;
    find(index_type)?;
    let pair = match (value_type, index_type) {
        (MPI_FLOAT, MPI_INT) => MPI_FLOAT_INT,
        (MPI_DOUBLE, MPI_INT) => MPI_DOUBLE_INT,
        (MPI_LONG, MPI_INT) => MPI_LONG_INT,
        (MPI_INT, MPI_INT) => MPI_2INT,
        (MPI_SHORT, MPI_INT) => MPI_SHORT_INT,
        (MPI_LONG_DOUBLE, MPI_INT) => MPI_LONG_DOUBLE_INT,
        (MPI_REAL, MPI_REAL) => MPI_2REAL,
        (MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION) => MPI_2DOUBLE_PRECISION,
        (MPI_INTEGER, MPI_INTEGER) => MPI_2INTEGER,
        _ => MPI_DATATYPE_NULL,
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(pair) };
    Ok(())
}
