//! The way of data between a buffer and the file.
//!
//! Data that lie in memory in one piece are moved without a copy, others through a buffer of the library, a
//! part at a time. Data in another representation are converted as a whole.
//!
//! Invariant: an access is checked before it moves data or a file pointer.

use super::datarep::Representation;
use super::system::{self, RangeLock};
use super::view::View;
use super::{File, system::failed};
use crate::abi::*;
use crate::chapters::datatype::Datatype;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::Mpi;
use crate::chapters::p2p::{bytes_of, packed};
use crate::chapters::request::{EMPTY_STATUS, set_bytes};
use pelago_fabric::sync::Ordering;
use std::io;
use std::sync::{Arc, PoisonError};

/// The bytes of a part that is copied on its way.
const PART_BYTES: usize = 4 << 20;

/// The direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

/// A buffer of the program. One that is written to the file is only read.
#[derive(Clone, Copy)]
pub struct Buffer {
    pub start: *const c_void,
    pub count: i64,
    pub datatype: MPI_Datatype,
}

/// An access whose arguments are right.
pub struct Plan<'a> {
    direction: Direction,
    buffer: Buffer,
    datatype: &'a Datatype,
    view: Arc<View>,
    /// Bytes of the data in memory and in the file.
    native_bytes: usize,
    file_bytes: usize,
    /// The etypes that it asks for.
    pub etypes: i64,
}

/// The data that an access has moved.
#[derive(Clone, Copy)]
pub struct Moved {
    native_bytes: usize,
    pub etypes: i64,
}

impl Moved {
    /// The status of the access.
    pub fn status(&self) -> MPI_Status {
        let mut status = EMPTY_STATUS;
        set_bytes(&mut status, self.native_bytes as u64);
        status
    }
}

/// The pieces of the file that data are moved to or from, one after the other.
struct Stream<'a, I> {
    file: &'a File,
    pieces: I,
    /// The rest of a piece.
    rest: (i64, usize),
}

impl<I: Iterator<Item = (i64, usize)>> Stream<'_, I> {
    fn next(&mut self, bytes: usize) -> (i64, usize) {
        if self.rest.1 == 0 {
            self.rest = self.pieces.next().unwrap_or((0, 0));
        }
        let (position, taken) = (self.rest.0, self.rest.1.min(bytes));
        self.rest = (position + taken as i64, self.rest.1 - taken);
        (position, taken)
    }

    /// Reads the next bytes: until the end of the file.
    unsafe fn read(&mut self, into: *mut u8, bytes: usize) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes {
            let (position, n) = self.next(bytes - done);
            // SAFETY: the caller promises room for all bytes.
            let read = unsafe { system::read_at(&self.file.system, position, into.wrapping_add(done), n)? };
            done += read;
            if read < n || n == 0 {
                break;
            }
        }
        Ok(done)
    }

    /// Writes the next bytes.
    unsafe fn write(&mut self, from: *const u8, bytes: usize) -> io::Result<()> {
        let mut done = 0;
        while done < bytes {
            let (position, n) = self.next(bytes - done);
            debug_assert!(n > 0, "the pieces have all bytes of the access");
            // SAFETY: the caller promises all bytes.
            unsafe { system::write_at(&self.file.system, position, from.wrapping_add(done), n)? };
            done += n;
        }
        Ok(())
    }
}

impl File {
    /// Checks an access.
    pub fn plan<'a>(&self, mpi: &'a Mpi, direction: Direction, buffer: Buffer) -> Result<Plan<'a>> {
        match direction {
            Direction::Write => self.check_writable()?,
            Direction::Read => ensure!(
                self.amode & MPI_MODE_WRONLY == 0,
                MPI_ERR_ACCESS,
                "the file was opened with MPI_MODE_WRONLY. Open it with MPI_MODE_RDWR to read it"
            ),
        }
        let datatype = mpi.datatype(buffer.datatype)?;
        let native_bytes = bytes_of(buffer.count, datatype)?;
        ensure!(
            native_bytes <= isize::MAX as usize,
            MPI_ERR_COUNT,
            "{} elements are more than memory can hold",
            buffer.count
        );
        let view = self.view();
        let file_bytes = match &view.representation {
            Representation::Memory(_) => Some(native_bytes),
            Representation::External32 => (buffer.count as usize).checked_mul(datatype.external_size()),
            Representation::Registered(own) => (buffer.count as usize).checked_mul(own.size(datatype)?),
        };
        let file_bytes = file_bytes.ok_or_else(|| {
            Error::new(MPI_ERR_COUNT, format!("{} elements are more than a file can hold", buffer.count))
        })?;
        let etypes = view.etypes_in(file_bytes)?;
        Ok(Plan { direction, buffer, datatype, view, native_bytes, file_bytes, etypes })
    }

    /// Does an access at an offset in etypes.
    ///
    /// # Safety
    /// The buffer has the elements, or room for them.
    pub unsafe fn access(&self, plan: &Plan<'_>, offset: i64) -> Result<Moved> {
        let first = plan.view.first_byte(offset)?;
        let pieces = plan.view.pieces(first, plan.file_bytes)?;
        if plan.file_bytes == 0 {
            return Ok(Moved { native_bytes: 0, etypes: 0 });
        }
        let _exclusion =
            self.is_atomic().then(|| self.atomic_access.lock().unwrap_or_else(PoisonError::into_inner));
        let _lock = self.is_atomic().then(|| self.lock_range(plan, first)).transpose()?;
        let mut stream = Stream { file: self, pieces, rest: (0, 0) };
        // SAFETY: the caller promises the buffer, as this function demands.
        unsafe {
            match plan.direction {
                Direction::Write => {
                    self.is_dirty.store(true, Ordering::Relaxed);
                    self.write(plan, &mut stream)?;
                    Ok(Moved { native_bytes: plan.native_bytes, etypes: plan.etypes })
                }
                Direction::Read => {
                    let (native_bytes, file_bytes) = self.read(plan, &mut stream)?;
                    let etypes = file_bytes / plan.view.etype_bytes.max(1);
                    Ok(Moved { native_bytes, etypes: etypes as i64 })
                }
            }
        }
    }

    /// Locks the part of the file from the first to the last byte of an access.
    fn lock_range(&self, plan: &Plan<'_>, first: usize) -> Result<RangeLock<'_>> {
        let start = plan.view.place(first)?;
        let end = plan.view.place(first + plan.file_bytes - 1)? + 1;
        let range = (start.min(end - 1), (end - start).max(1));
        RangeLock::take(&self.system, range, plan.direction == Direction::Write)
            .map_err(|error| failed("locking", &self.path, &error))
    }

    unsafe fn write(
        &self,
        plan: &Plan<'_>,
        stream: &mut Stream<'_, impl Iterator<Item = (i64, usize)>>,
    ) -> Result {
        let (datatype, count) = (plan.datatype, plan.buffer.count as usize);
        let buffer = plan.buffer.start.cast::<u8>();
        let failed = |error| failed("writing", &self.path, &error);
        // SAFETY: the caller promises the elements; the copies have as many bytes.
        unsafe {
            if !plan.view.representation.is_memory() {
                let data = encoded(plan)?;
                return stream.write(data.as_ptr(), data.len()).map_err(failed);
            }
            if let Some(offset) = datatype.run(count) {
                return stream.write(buffer.wrapping_offset(offset), plan.native_bytes).map_err(failed);
            }
            let mut part = vec![0u8; plan.native_bytes.min(PART_BYTES)];
            for first in (0..plan.native_bytes).step_by(PART_BYTES) {
                let part = &mut part[..(plan.native_bytes - first).min(PART_BYTES)];
                datatype.pack_range(buffer, first, part);
                stream.write(part.as_ptr(), part.len()).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Reads until the end of the access or of the file: the bytes in memory and in the file.
    unsafe fn read(
        &self,
        plan: &Plan<'_>,
        stream: &mut Stream<'_, impl Iterator<Item = (i64, usize)>>,
    ) -> Result<(usize, usize)> {
        let (datatype, count) = (plan.datatype, plan.buffer.count as usize);
        let buffer = plan.buffer.start.cast::<u8>().cast_mut();
        let failed = |error| failed("reading", &self.path, &error);
        let mut done = 0;
        // SAFETY: the caller promises room for the elements; the copies have as many bytes.
        unsafe {
            if !plan.view.representation.is_memory() {
                let mut data = vec![0u8; plan.file_bytes];
                let n = stream.read(data.as_mut_ptr(), data.len()).map_err(failed)?;
                return Ok((decode(plan, &mut data, n)?, n));
            }
            if let Some(offset) = datatype.run(count) {
                let n = stream.read(buffer.wrapping_offset(offset), plan.native_bytes).map_err(failed)?;
                return Ok((n, n));
            }
            let mut part = vec![0u8; plan.native_bytes.min(PART_BYTES)];
            while done < plan.native_bytes {
                let bytes = (plan.native_bytes - done).min(PART_BYTES);
                let n = stream.read(part.as_mut_ptr(), bytes).map_err(failed)?;
                datatype.unpack_range(&part[..n], done, buffer);
                done += n;
                if n < bytes {
                    break;
                }
            }
        }
        Ok((done, done))
    }
}

/// The data of an access in the representation of the file.
unsafe fn encoded(plan: &Plan<'_>) -> Result<Vec<u8>> {
    let (datatype, count) = (plan.datatype, plan.buffer.count as usize);
    let buffer = plan.buffer.start.cast::<u8>();
    let mut data = vec![0u8; plan.file_bytes];
    // SAFETY: the caller promises the elements.
    unsafe {
        match &plan.view.representation {
            Representation::External32 => {
                datatype.encode_external(count, &packed(buffer, count, datatype), &mut data);
            }
            Representation::Registered(own) => {
                let (items, _) = own.items_in(datatype, count, plan.file_bytes)?;
                if !own.write((buffer, plan.buffer.datatype), items, data.as_mut_ptr())? {
                    data = as_in_memory(plan, packed(buffer, count, datatype).into_vec())?;
                }
            }
            Representation::Memory(_) => data = packed(buffer, count, datatype).into_vec(),
        }
    }
    Ok(data)
}

/// Data that are not converted, because the program has given `MPI_CONVERSION_FN_NULL`.
fn as_in_memory(plan: &Plan<'_>, data: Vec<u8>) -> Result<Vec<u8>> {
    ensure!(
        plan.file_bytes == plan.native_bytes,
        MPI_ERR_CONVERSION,
        "the data have {} bytes in memory and {} in the file, and the data representation has no function \
         that converts them",
        plan.native_bytes,
        plan.file_bytes
    );
    Ok(data)
}

/// Converts the first `n` bytes of an access from the representation of the file: their bytes in memory.
unsafe fn decode(plan: &Plan<'_>, data: &mut [u8], n: usize) -> Result<usize> {
    let (datatype, count) = (plan.datatype, plan.buffer.count as usize);
    let buffer = plan.buffer.start.cast::<u8>().cast_mut();
    // SAFETY: the caller promises room for the elements.
    unsafe {
        match &plan.view.representation {
            Representation::External32 => {
                let mut native = vec![0u8; plan.native_bytes];
                datatype.decode_external(count, data, &mut native);
                let bytes = datatype.native_bytes_of(count, n);
                datatype.unpack(native.as_ptr(), bytes, buffer);
                Ok(bytes)
            }
            Representation::Registered(own) => {
                let (items, bytes) = own.items_in(datatype, count, n)?;
                if items > 0 && !own.read((buffer, plan.buffer.datatype), items, data.as_mut_ptr())? {
                    let data = as_in_memory(plan, data.to_vec())?;
                    datatype.unpack(data.as_ptr(), bytes, buffer);
                }
                Ok(bytes)
            }
            Representation::Memory(_) => {
                datatype.unpack(data.as_ptr(), n, buffer);
                Ok(n)
            }
        }
    }
}
