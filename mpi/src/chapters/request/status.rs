//! The status of an operation.
//!
//! Layout of the fields that the standard leaves to the library: the length in bytes in the first two,
//! whether the operation was cancelled in the third.

use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::error::Result;
use crate::chapters::library::output;
use pelago_core::msg::request::Status;

/// The status of an operation that has none, by the standard.
pub const EMPTY_STATUS: MPI_Status = MPI_Status {
    MPI_SOURCE: MPI_ANY_SOURCE,
    MPI_TAG: MPI_ANY_TAG,
    MPI_ERROR: MPI_SUCCESS,
    MPI_internal: [0; 5],
};

/// The status of an operation with `MPI_PROC_NULL`.
pub const NO_PROCESS: MPI_Status = MPI_Status { MPI_SOURCE: MPI_PROC_NULL, ..EMPTY_STATUS };

/// The status of a cancelled operation.
pub fn cancelled() -> MPI_Status {
    MPI_Status { MPI_internal: [0, 0, 1, 0, 0], ..EMPTY_STATUS }
}

/// The status of a message that was received into `room` bytes.
pub fn received(comm: &Comm, status: &Status, room: usize) -> MPI_Status {
    let mut found = MPI_Status {
        MPI_SOURCE: comm.source_rank(status.source),
        MPI_TAG: status.tag as c_int,
        ..EMPTY_STATUS
    };
    set_bytes(&mut found, status.bytes.min(room) as u64);
    found
}

/// The length of the message in bytes.
pub fn bytes(status: &MPI_Status) -> u64 {
    u64::from(status.MPI_internal[0] as u32) | u64::from(status.MPI_internal[1] as u32) << 32
}

/// Sets the length of the message in bytes.
pub fn set_bytes(status: &mut MPI_Status, bytes: u64) {
    status.MPI_internal[0] = bytes as u32 as c_int;
    status.MPI_internal[1] = (bytes >> 32) as u32 as c_int;
}

/// Stores a status, unless the program ignores it. The field of errors stays as it is.
///
/// # Safety
/// The place is null, or valid for one status.
#[inline]
pub unsafe fn store(place: *mut MPI_Status, status: &MPI_Status) {
    if !place.is_null() {
        // SAFETY: the caller promises that it is valid.
        unsafe {
            let error = (&raw const (*place).MPI_ERROR).read();
            place.write(MPI_Status { MPI_ERROR: error, ..*status });
        }
    }
}

/// Stores the empty status of a call for no operation, also its error.
///
/// # Safety
/// As [`store`].
#[inline]
pub unsafe fn store_empty(place: *mut MPI_Status) {
    if !place.is_null() {
        // SAFETY: the caller promises that it is valid.
        unsafe { place.write(EMPTY_STATUS) };
    }
}

/// `MPI_Test_cancelled`.
pub unsafe fn test_cancelled(status: *const MPI_Status, flag: *mut c_int) -> Result {
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        let is_cancelled = (*output("status", status.cast_mut())?).MPI_internal[2] != 0;
        output("flag", flag)?.write(is_cancelled.into());
    }
    Ok(())
}

/// `MPI_Status_set_cancelled`.
pub unsafe fn status_set_cancelled(status: *mut MPI_Status, flag: c_int) -> Result {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { (*output("status", status)?).MPI_internal[2] = c_int::from(flag != 0) };
    Ok(())
}

macro_rules! fields {
    ($($get:ident $set:ident $field:ident)*) => {$(
        pub unsafe fn $get(status: *const MPI_Status, value: *mut c_int) -> Result {
            // SAFETY: the caller's pointers are valid for one value each.
            unsafe {
                let status = output("status", status.cast_mut())?;
                output("the place of the result", value)?.write((*status).$field);
            }
            Ok(())
        }

        pub unsafe fn $set(status: *mut MPI_Status, value: c_int) -> Result {
            // SAFETY: the caller's pointer is valid for one value.
            unsafe { (*output("status", status)?).$field = value };
            Ok(())
        }
    )*};
}

fields! {
    status_get_source status_set_source MPI_SOURCE
    status_get_tag status_set_tag MPI_TAG
    status_get_error status_set_error MPI_ERROR
}
