//! The way of data between a buffer and the file, for the access of one process.
//!
//! Data that lie in memory in one piece are moved without a copy, others through a buffer of the library, a
//! part at a time. Data in another representation are converted as a whole.
//!
//! Invariant: an access is checked before it moves data or a file pointer.

use super::File;
use super::data::Data;
use super::datarep::Representation;
use super::pieces::{Piece, Pieces};
use super::system::{RangeLock, failed};
use super::view::View;
use crate::abi::*;
use crate::chapters::datatype::Datatype;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::Mpi;
use crate::chapters::p2p::bytes_of;
use crate::chapters::request::{EMPTY_STATUS, set_bytes};
use pelago_fabric::sync::Ordering;
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
    pub buffer: Buffer,
    pub datatype: &'a Datatype,
    pub view: Arc<View>,
    /// Bytes of the data in memory and in the file.
    pub native_bytes: usize,
    pub file_bytes: usize,
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

impl Plan<'_> {
    pub fn is_write(&self) -> bool {
        self.direction == Direction::Write
    }

    /// The outcome, once all data were written or the first `n` bytes of them were read.
    ///
    /// # Safety
    /// The buffer has room for the elements.
    pub unsafe fn finished(&self, data: Data<'_>, n: usize) -> Result<Moved> {
        if self.is_write() {
            return Ok(Moved { native_bytes: self.native_bytes, etypes: self.etypes });
        }
        // SAFETY: the caller promises what this function requires.
        let native_bytes = unsafe { self.decoded(data, n)? };
        Ok(Moved { native_bytes, etypes: (n / self.view.etype_bytes.max(1)) as i64 })
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
        let mut pieces = Pieces::new(pieces);
        // SAFETY: the caller promises the buffer, as this function demands.
        unsafe {
            let mut data = plan.data()?;
            let n = match plan.direction {
                Direction::Write => self.write(&mut pieces, &mut data, plan.file_bytes)?,
                Direction::Read => self.read(&mut pieces, &mut data, plan.file_bytes)?,
            };
            plan.finished(data, n)
        }
    }

    /// Locks the part of the file from the first to the last byte of an access.
    fn lock_range(&self, plan: &Plan<'_>, first: usize) -> Result<RangeLock<'_>> {
        let start = plan.view.place(first)?;
        let end = plan.view.place(first + plan.file_bytes - 1)? + 1;
        let range = (start.min(end - 1), (end - start).max(1));
        RangeLock::take(&self.system, range, plan.is_write())
            .map_err(|error| failed("locking", &self.path, &error))
    }

    unsafe fn write(
        &self,
        pieces: &mut Pieces<impl Iterator<Item = Piece>>,
        data: &mut Data<'_>,
        bytes: usize,
    ) -> Result<usize> {
        let failed = |error| failed("writing", &self.path, &error);
        self.is_dirty.store(true, Ordering::Relaxed);
        // SAFETY: the caller promises the data of the access.
        unsafe {
            if let Some(start) = data.in_one_piece() {
                pieces.write(&self.system, start, bytes).map_err(failed)?;
                return Ok(bytes);
            }
            let mut part = vec![0u8; bytes.min(PART_BYTES)];
            for first in (0..bytes).step_by(PART_BYTES) {
                let part = &mut part[..(bytes - first).min(PART_BYTES)];
                data.copy_out(first, part);
                pieces.write(&self.system, part.as_ptr(), part.len()).map_err(failed)?;
            }
        }
        Ok(bytes)
    }

    /// Reads until the end of the access or of the file: the bytes that were read.
    unsafe fn read(
        &self,
        pieces: &mut Pieces<impl Iterator<Item = Piece>>,
        data: &mut Data<'_>,
        bytes: usize,
    ) -> Result<usize> {
        let failed = |error| failed("reading", &self.path, &error);
        // SAFETY: the caller promises room for the data of the access.
        unsafe {
            if let Some(start) = data.in_one_piece() {
                return pieces.read(&self.system, start, bytes).map_err(failed);
            }
            let mut part = vec![0u8; bytes.min(PART_BYTES)];
            let mut done = 0;
            while done < bytes {
                let asked = (bytes - done).min(PART_BYTES);
                let n = pieces.read(&self.system, part.as_mut_ptr(), asked).map_err(failed)?;
                data.copy_in(done, &part[..n]);
                done += n;
                if n < asked {
                    break;
                }
            }
            Ok(done)
        }
    }
}
