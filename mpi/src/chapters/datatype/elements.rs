//! Counts of elements in statuses, and addresses (MPI 5.0, sections 3.2.5, 5.1.5 and 5.1.11).

use super::find;
use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::chapters::request::{bytes, set_bytes};
use crate::convert::IntegerOut;

/// The bytes of a message, and the place of a result.
unsafe fn message(status: *const MPI_Status, count: IntegerOut) -> Result<u64> {
    let status = output("status", status.cast_mut())?;
    ensure!(!count.is_null(), MPI_ERR_ARG, "count is null. Give the place of the result");
    // SAFETY: the caller's pointer is valid for one value.
    Ok(unsafe { bytes(&*status) })
}

/// `MPI_Get_count`.
pub unsafe fn get_count(
    _mpi: &Mpi,
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: IntegerOut,
) -> Result {
    // SAFETY: the caller promises what this function requires.
    let bytes = unsafe { message(status, count)? };
    let elements = match find(datatype)?.size() as u64 {
        0 if bytes == 0 => 0,
        size if size > 0 && bytes.is_multiple_of(size) => (bytes / size) as i64,
        _ => MPI_UNDEFINED.into(),
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { count.set(elements) };
    Ok(())
}

/// `MPI_Get_elements` and `MPI_Get_elements_x`: elementary types; a pair of a value and an index has two.
pub unsafe fn get_elements(
    _mpi: &Mpi,
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: IntegerOut,
) -> Result {
    // SAFETY: the caller promises what this function requires.
    let bytes = unsafe { message(status, count)? };
    let elements = find(datatype)?.shape.signature.elements_in(bytes);
    let elements = elements.and_then(|elements| i64::try_from(elements).ok());
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { count.set(elements.unwrap_or(MPI_UNDEFINED.into())) };
    Ok(())
}

/// `MPI_Status_set_elements` and `MPI_Status_set_elements_x`.
pub unsafe fn status_set_elements(
    _mpi: &Mpi,
    status: *mut MPI_Status,
    datatype: MPI_Datatype,
    count: i64,
) -> Result {
    let status = output("status", status)?;
    ensure!(count >= 0, MPI_ERR_COUNT, "count is {count}, which is negative");
    let bytes = find(datatype)?.shape.signature.bytes_of(count as u64);
    let error = || Error::new(MPI_ERR_COUNT, format!("{count} elements of the datatype are not a message"));
    let bytes = bytes.ok_or_else(error)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { set_bytes(&mut *status, bytes) };
    Ok(())
}

/// `MPI_Get_address`.
pub unsafe fn get_address(_mpi: &Mpi, location: *const c_void, address: *mut MPI_Aint) -> Result {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("address", address)?.write(location as MPI_Aint) };
    Ok(())
}

/// `MPI_Aint_add`.
pub unsafe fn aint_add(base: MPI_Aint, disp: MPI_Aint) -> MPI_Aint {
    base.wrapping_add(disp)
}

/// `MPI_Aint_diff`.
pub unsafe fn aint_diff(addr1: MPI_Aint, addr2: MPI_Aint) -> MPI_Aint {
    addr1.wrapping_sub(addr2)
}
