//! Buffers of messages: where their data lie in one piece.

use crate::abi::*;
use crate::chapters::data::Data;
use crate::chapters::datatype::{self, Datatype};
use crate::chapters::error::{Error, Result, ensure};
use pelago_core::msg::packing::Packing;
use std::ops::Range;
use std::sync::Arc;

/// The data of a message that have gaps in the buffer.
pub struct Gaps {
    datatype: Arc<Datatype>,
    buffer: *mut u8,
}

// SAFETY: the program leaves the buffer alone until the operation is complete, whichever thread copies it.
unsafe impl Send for Gaps {}

impl Gaps {
    /// The data of elements of this datatype, at this address.
    pub fn of(datatype: MPI_Datatype, buffer: *mut c_void) -> Result<Box<Gaps>> {
        Ok(Box::new(Gaps { datatype: datatype::share(datatype)?, buffer: buffer.cast() }))
    }
}

impl Packing for Gaps {
    unsafe fn pack(&self, range: Range<usize>, into: *mut u8) {
        // SAFETY: the caller promises the room, and the program the elements.
        unsafe { self.datatype.gather(self.buffer, range.start, range.len(), into) };
    }

    unsafe fn unpack(&self, range: Range<usize>, from: *const u8) {
        // SAFETY: the caller promises the data, and the program room for the elements.
        unsafe { self.datatype.scatter(from, range.start, range.len(), self.buffer) };
    }
}

/// Data to send.
pub enum Outgoing {
    /// In the program's buffer.
    Direct(*const u8, usize),
    /// Packed, because they have gaps there.
    Packed(Data),
}

/// The number of bytes of `count` elements; an error if there are none, or too many.
#[inline]
pub fn bytes_of(count: i64, datatype: &Datatype) -> Result<usize> {
    ensure!(count >= 0, MPI_ERR_COUNT, "count is {count}, which is negative");
    let bytes = (count as usize).checked_mul(datatype.size());
    ensure!(bytes.is_some(), MPI_ERR_COUNT, "{count} elements are more than memory can hold");
    Ok(bytes.unwrap_or(0))
}

/// Refuses a null buffer that has data: `start` is where these begin. Datatypes with absolute addresses have
/// theirs elsewhere.
#[inline(always)]
pub fn given(start: *const u8, bytes: usize) -> Result {
    match start.is_null() && bytes > 0 {
        true => null_buffer(bytes),
        false => Ok(()),
    }
}

#[cold]
#[inline(never)]
fn null_buffer(bytes: usize) -> Result {
    Err(Error::new(MPI_ERR_BUFFER, format!("the buffer of {bytes} bytes is null. Give its address")))
}

/// The data of a buffer, in one piece.
///
/// # Safety
/// The buffer has the elements.
#[inline]
pub unsafe fn outgoing(buffer: *const c_void, count: i64, datatype: &Datatype) -> Result<Outgoing> {
    let bytes = bytes_of(count, datatype)?;
    if let Some(offset) = datatype.run(count as usize) {
        return Ok(Outgoing::Direct(buffer.cast::<u8>().wrapping_offset(offset), bytes));
    }
    // SAFETY: the program keeps the conditions that the standard has for this call.
    Ok(Outgoing::Packed(unsafe { packed(buffer.cast(), count as usize, datatype) }))
}

/// The data of `count` elements, packed.
///
/// # Safety
/// The buffer has the elements.
pub unsafe fn packed(buffer: *const u8, count: usize, datatype: &Datatype) -> Data {
    let mut data = Data::new(count * datatype.size());
    // SAFETY: the caller promises the elements, and there is room for their data.
    unsafe { datatype.pack(buffer, count, data.as_mut_ptr()) };
    data
}

impl Outgoing {
    /// The address and the length.
    #[inline]
    pub fn data(&self) -> (*const u8, usize) {
        match self {
            Outgoing::Direct(start, bytes) => (*start, *bytes),
            Outgoing::Packed(data) => (data.as_ptr(), data.len()),
        }
    }

    /// The memory that must live as long as the send.
    pub fn kept(self) -> Option<Data> {
        match self {
            Outgoing::Direct(..) => None,
            Outgoing::Packed(data) => Some(data),
        }
    }
}
