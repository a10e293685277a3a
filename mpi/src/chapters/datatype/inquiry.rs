//! Inquiries about datatypes, their names, and their beginning and end.

use super::{DERIVED, find, share};
use crate::abi::*;
use crate::chapters::attribute::Object;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::chapters::setup::write_text;
use crate::convert::IntegerOut;
use std::ffi::CStr;

/// Stores a result.
unsafe fn put(name: &str, place: IntegerOut, value: i64) -> Result {
    ensure!(!place.is_null(), MPI_ERR_ARG, "{name} is null. Give the place of the result");
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.set(value) };
    Ok(())
}

/// `MPI_Type_size` and `MPI_Type_size_x`: `MPI_UNDEFINED` if the size does not fit.
pub unsafe fn type_size(_mpi: &Mpi, datatype: MPI_Datatype, size: IntegerOut) -> Result {
    let bytes = find(datatype)?.size();
    // SAFETY: the caller promises what this function requires.
    unsafe { put("size", size, bytes as i64) }
}

/// `MPI_Type_get_extent` and `MPI_Type_get_extent_x`.
pub unsafe fn type_get_extent(
    _mpi: &Mpi,
    datatype: MPI_Datatype,
    lb: IntegerOut,
    extent: IntegerOut,
) -> Result {
    let datatype = find(datatype)?;
    ensure!(!extent.is_null(), MPI_ERR_ARG, "extent is null. Give the place of the result");
    // SAFETY: the caller promises what this function requires.
    unsafe {
        put("lb", lb, datatype.lb() as i64)?;
        put("extent", extent, datatype.extent() as i64)
    }
}

/// `MPI_Type_get_true_extent` and `MPI_Type_get_true_extent_x`.
pub unsafe fn type_get_true_extent(
    _mpi: &Mpi,
    datatype: MPI_Datatype,
    true_lb: IntegerOut,
    true_extent: IntegerOut,
) -> Result {
    let datatype = find(datatype)?;
    ensure!(!true_extent.is_null(), MPI_ERR_ARG, "true_extent is null. Give the place of the result");
    // SAFETY: the caller promises what this function requires.
    unsafe {
        put("true_lb", true_lb, datatype.true_lb() as i64)?;
        put("true_extent", true_extent, datatype.true_extent() as i64)
    }
}

/// `MPI_Type_commit`.
pub unsafe fn type_commit(_mpi: &Mpi, datatype: *mut MPI_Datatype) -> Result {
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { output("datatype", datatype)?.read() };
    find(handle)?.commit();
    Ok(())
}

/// `MPI_Type_free`: operations that use the datatype go on.
pub unsafe fn type_free(_mpi: &Mpi, datatype: *mut MPI_Datatype) -> Result {
    let place = output("datatype", datatype)?;
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { place.read() };
    let found = find(handle)?;
    ensure!(!found.is_predefined(), MPI_ERR_TYPE, "the datatype is predefined and cannot be freed");
    share(handle)?.attributes.delete_all(Object::Type(handle))?;
    DERIVED.remove(handle.0);
    // SAFETY: as above, the caller promises it.
    unsafe { place.write(MPI_DATATYPE_NULL) };
    Ok(())
}

/// `MPI_Type_set_name`.
pub unsafe fn type_set_name(_mpi: &Mpi, datatype: MPI_Datatype, type_name: *const c_char) -> Result {
    ensure!(!type_name.is_null(), MPI_ERR_ARG, "type_name is null. Give a string");
    // SAFETY: the caller's pointer is that of a string.
    let name = unsafe { CStr::from_ptr(type_name) }.to_string_lossy();
    let room = name.len().min(MPI_MAX_OBJECT_NAME as usize - 1);
    let end = (0..=room).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    find(datatype)?.set_name(&name[..end]);
    Ok(())
}

/// `MPI_Type_get_name`: `MPI_DATATYPE_NULL` has a name as well.
pub unsafe fn type_get_name(
    _mpi: &Mpi,
    datatype: MPI_Datatype,
    type_name: *mut c_char,
    resultlen: *mut c_int,
) -> Result {
    let name = match datatype {
        MPI_DATATYPE_NULL => "MPI_DATATYPE_NULL".to_owned(),
        _ => find(datatype)?.name(),
    };
    // SAFETY: the caller promises what this function requires.
    unsafe { write_text(&name, MPI_MAX_OBJECT_NAME, type_name, resultlen) }
}
