//! The data of an access in memory, as a stream of the bytes that the file has of them.
//!
//! Invariant: data in the representation of memory are never copied as a whole.

use super::access::Plan;
use super::datarep::Representation;
use crate::abi::*;
use crate::chapters::datatype::Datatype;
use crate::chapters::error::{Result, ensure};
use crate::chapters::p2p::packed;

/// The data of an access.
pub enum Data<'a> {
    /// They lie in memory in one piece, as they do in the file.
    Plain(*mut u8),
    /// Elements of a datatype in a buffer.
    Elements(*mut u8, &'a Datatype),
    /// In another representation: a copy.
    Converted(Vec<u8>),
}

impl Data<'_> {
    /// Where all bytes are, if they lie in one piece.
    pub fn in_one_piece(&mut self) -> Option<*mut u8> {
        match self {
            Data::Plain(start) => Some(*start),
            Data::Elements(..) => None,
            Data::Converted(data) => Some(data.as_mut_ptr()),
        }
    }

    /// Copies the bytes from `first` on, until `into` is full.
    ///
    /// # Safety
    /// The access has these bytes, and its buffer is valid.
    pub unsafe fn copy_out(&self, first: usize, into: &mut [u8]) {
        match self {
            // SAFETY: the caller promises the bytes.
            Data::Plain(start) => unsafe {
                pelago_fabric::copy::copy(into.as_mut_ptr(), start.wrapping_add(first), into.len());
            },
            // SAFETY: the caller promises the elements that the bytes are in.
            Data::Elements(buffer, datatype) => unsafe { datatype.pack_range(*buffer, first, into) },
            Data::Converted(data) => into.copy_from_slice(&data[first..][..into.len()]),
        }
    }

    /// The reverse.
    ///
    /// # Safety
    /// As [`copy_out`](Data::copy_out).
    pub unsafe fn copy_in(&mut self, first: usize, from: &[u8]) {
        match self {
            // SAFETY: the caller promises room for the bytes.
            Data::Plain(start) => unsafe {
                pelago_fabric::copy::copy(start.wrapping_add(first), from.as_ptr(), from.len());
            },
            // SAFETY: the caller promises room for the elements that the bytes are in.
            Data::Elements(buffer, datatype) => unsafe { datatype.unpack_range(from, first, *buffer) },
            Data::Converted(data) => data[first..][..from.len()].copy_from_slice(from),
        }
    }
}

impl Plan<'_> {
    fn buffer(&self) -> *mut u8 {
        self.buffer.start.cast::<u8>().cast_mut()
    }

    fn count(&self) -> usize {
        self.buffer.count as usize
    }

    /// The data in memory, for a write or for a read.
    ///
    /// # Safety
    /// The buffer has the elements, or room for them.
    pub unsafe fn data(&self) -> Result<Data<'_>> {
        if !self.view.representation.is_memory() {
            return Ok(Data::Converted(match self.is_write() && self.file_bytes > 0 {
                // SAFETY: the caller promises the elements.
                true => unsafe { self.encoded()? },
                false => vec![0; self.file_bytes],
            }));
        }
        Ok(match self.datatype.run(self.count()) {
            Some(offset) => Data::Plain(self.buffer().wrapping_offset(offset)),
            None => Data::Elements(self.buffer(), self.datatype),
        })
    }

    /// The data in the representation of the file.
    unsafe fn encoded(&self) -> Result<Vec<u8>> {
        let (datatype, count, buffer) = (self.datatype, self.count(), self.buffer().cast_const());
        let mut data = vec![0u8; self.file_bytes];
        // SAFETY: the caller promises the elements.
        unsafe {
            match &self.view.representation {
                Representation::External32 => {
                    datatype.encode_external(count, &packed(buffer, count, datatype), &mut data);
                }
                Representation::Registered(own) => {
                    let (items, _) = own.items_in(datatype, count, self.file_bytes)?;
                    if !own.write((buffer, self.buffer.datatype), items, data.as_mut_ptr())? {
                        data = self.as_in_memory(packed(buffer, count, datatype).to_vec())?;
                    }
                }
                Representation::Memory(_) => unreachable!("such data are not converted"),
            }
        }
        Ok(data)
    }

    /// Data that are not converted, because the program has given `MPI_CONVERSION_FN_NULL`.
    fn as_in_memory(&self, data: Vec<u8>) -> Result<Vec<u8>> {
        ensure!(
            self.file_bytes == self.native_bytes,
            MPI_ERR_CONVERSION,
            "the data have {} bytes in memory and {} in the file, and the data representation has no \
             function that converts them",
            self.native_bytes,
            self.file_bytes
        );
        Ok(data)
    }

    /// Gives the program the first `n` bytes that were read, in its representation: their bytes in memory.
    ///
    /// # Safety
    /// The buffer has room for the elements.
    pub unsafe fn decoded(&self, data: Data<'_>, n: usize) -> Result<usize> {
        let Data::Converted(mut data) = data else { return Ok(n) };
        if self.file_bytes == 0 {
            return Ok(0);
        }
        let (datatype, count, buffer) = (self.datatype, self.count(), self.buffer());
        // SAFETY: the caller promises room for the elements.
        unsafe {
            match &self.view.representation {
                Representation::External32 => {
                    let mut native = vec![0u8; self.native_bytes];
                    datatype.decode_external(count, &data, &mut native);
                    let bytes = datatype.native_bytes_of(count, n);
                    datatype.unpack(native.as_ptr(), bytes, buffer);
                    Ok(bytes)
                }
                Representation::Registered(own) => {
                    let (items, bytes) = own.items_in(datatype, count, n)?;
                    if items > 0 && !own.read((buffer, self.buffer.datatype), items, data.as_mut_ptr())? {
                        let data = self.as_in_memory(data)?;
                        datatype.unpack(data.as_ptr(), bytes, buffer);
                    }
                    Ok(bytes)
                }
                Representation::Memory(_) => unreachable!("such data are not converted"),
            }
        }
    }
}
