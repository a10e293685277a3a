//! Packing into and unpacking from buffers of the program (MPI 5.0, section 5.2).

use super::{Datatype, find};
use crate::abi::*;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::Mpi;
use crate::chapters::p2p::{bytes_of, given};
use crate::convert::IntegerOut;

/// The position in a packed buffer from which `bytes` bytes are read or written.
///
/// # Safety
/// The place is null or valid for one value.
pub(super) unsafe fn begin(position: IntegerOut, size: i64, bytes: usize) -> Result<usize> {
    ensure!(!position.is_null(), MPI_ERR_ARG, "position is null. Give the place of the position");
    // SAFETY: the caller promises what this function requires.
    let start = unsafe { position.get() };
    ensure!(size >= 0, MPI_ERR_ARG, "the packed buffer has {size} bytes, which is negative");
    ensure!(
        start >= 0 && start <= size,
        MPI_ERR_ARG,
        "position {start} is outside of a packed buffer of {size} bytes"
    );
    let rest = size - start;
    ensure!(
        bytes as u64 <= rest as u64,
        MPI_ERR_ARG,
        "{bytes} bytes are needed, but the packed buffer of {size} bytes has {rest} from position {start} on"
    );
    Ok(start as usize)
}

pub(super) fn check_packed(buffer: *const c_void, bytes: usize) -> Result {
    ensure!(bytes == 0 || !buffer.is_null(), MPI_ERR_BUFFER, "the packed buffer is null");
    Ok(())
}

fn check_elements(buffer: *const u8, count: i64, datatype: &Datatype) -> Result {
    match datatype.run(count as usize) {
        Some(offset) => given(buffer.wrapping_offset(offset), bytes_of(count, datatype)?),
        None => Ok(()),
    }
}

/// `MPI_Pack`.
pub unsafe fn pack(
    mpi: &Mpi,
    inbuf: *const c_void,
    incount: i64,
    datatype: MPI_Datatype,
    outbuf: *mut c_void,
    outsize: i64,
    position: IntegerOut,
    comm: MPI_Comm,
) -> Result {
    mpi.comm(comm)?;
    let datatype: &Datatype = mpi.datatype(datatype)?;
    let bytes = bytes_of(incount, datatype)?;
    check_packed(outbuf, bytes)?;
    check_elements(inbuf.cast(), incount, datatype)?;
    // SAFETY: the caller promises the elements, and the buffer has room for their data.
    unsafe {
        let start = begin(position, outsize, bytes)?;
        datatype.pack(inbuf.cast(), incount as usize, outbuf.cast::<u8>().wrapping_add(start));
        position.set((start + bytes) as i64);
    }
    Ok(())
}

/// `MPI_Unpack`.
pub unsafe fn unpack(
    mpi: &Mpi,
    inbuf: *const c_void,
    insize: i64,
    position: IntegerOut,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
) -> Result {
    mpi.comm(comm)?;
    let datatype: &Datatype = mpi.datatype(datatype)?;
    let bytes = bytes_of(outcount, datatype)?;
    check_packed(inbuf, bytes)?;
    check_elements(outbuf.cast_const().cast(), outcount, datatype)?;
    // SAFETY: the caller promises room for the elements, and the packed buffer has their data.
    unsafe {
        let start = begin(position, insize, bytes)?;
        datatype.unpack(inbuf.cast::<u8>().wrapping_add(start), bytes, outbuf.cast());
        position.set((start + bytes) as i64);
    }
    Ok(())
}

/// `MPI_Pack_size`: packed data have no header.
pub unsafe fn pack_size(
    mpi: &Mpi,
    incount: i64,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
    size: IntegerOut,
) -> Result {
    mpi.comm(comm)?;
    // A datatype need not be committed for its size.
    let bytes = bytes_of(incount, find(datatype)?)?;
    ensure!(!size.is_null(), MPI_ERR_ARG, "size is null. Give the place of the result");
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { size.set(bytes as i64) };
    Ok(())
}
