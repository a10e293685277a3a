//! Independent accesses at explicit offsets and at the individual file pointer, and how all accesses report
//! to the program.
//!
//! Invariant: the individual file pointer moves over the etypes that were accessed, so that it is at the end
//! of the file after a read that has met it.

use super::access::{Buffer, Direction, Moved};
use super::{File, find};
use crate::abi::*;
use crate::chapters::error::{On, Result};
use crate::chapters::library::{Mpi, output};
use crate::chapters::request::{self, Active, Outcome, store};

/// Where the program learns the outcome of an access.
#[derive(Clone, Copy)]
pub enum Report {
    /// At once: null, or the place of a status.
    Status(*mut MPI_Status),
    /// By a request.
    Request(*mut MPI_Request),
}

impl Report {
    /// Checks the place.
    pub fn check(self) -> Result {
        match self {
            Report::Status(_) => Ok(()),
            Report::Request(place) => output("request", place).map(drop),
        }
    }

    /// Reports what an access has moved.
    ///
    /// # Safety
    /// The place was checked, and is valid for one value.
    pub unsafe fn give(self, fh: MPI_File, moved: Moved) -> Result {
        let status = moved.status();
        // SAFETY: the caller promises what this function requires.
        unsafe {
            match self {
                Report::Status(place) => store(place, &status),
                Report::Request(place) => {
                    let done = Active::Done(Outcome { status, error: MPI_SUCCESS });
                    place.write(request::started(done, On::File(fh))?);
                }
            }
        }
        Ok(())
    }
}

impl File {
    /// An access at an offset.
    ///
    /// # Safety
    /// The buffer has the elements, or room for them.
    pub unsafe fn access_at(
        &self,
        mpi: &Mpi,
        direction: Direction,
        offset: i64,
        buffer: Buffer,
    ) -> Result<Moved> {
        self.check_positions()?;
        let plan = self.plan(mpi, direction, buffer)?;
        // SAFETY: the caller promises what this function requires.
        unsafe { self.access(&plan, offset) }
    }

    /// An access at the individual file pointer.
    ///
    /// # Safety
    /// As [`access_at`](File::access_at).
    pub unsafe fn access_next(&self, mpi: &Mpi, direction: Direction, buffer: Buffer) -> Result<Moved> {
        self.check_positions()?;
        let plan = self.plan(mpi, direction, buffer)?;
        let mut position = self.position();
        // SAFETY: the caller promises what this function requires.
        let moved = unsafe { self.access(&plan, *position)? };
        *position += moved.etypes;
        Ok(moved)
    }
}

/// Defines accesses at an offset.
macro_rules! at_offset {
    ($($name:ident $direction:ident $buffer:ty, $report:ident $place:ty, $access:ident;)*) => {$(
        pub unsafe fn $name(
            mpi: &Mpi,
            fh: MPI_File,
            offset: MPI_Offset,
            buf: $buffer,
            count: i64,
            datatype: MPI_Datatype,
            place: $place,
        ) -> Result {
            let (file, report) = (find(fh)?, Report::$report(place));
            report.check()?;
            let buffer = Buffer { start: buf, count, datatype };
            // SAFETY: the caller promises the buffer, and a place that is null or valid for one value.
            unsafe { report.give(fh, file.$access(mpi, Direction::$direction, offset, buffer)?) }
        }
    )*};
}

/// Defines accesses at a file pointer.
macro_rules! at_pointer {
    ($($name:ident $direction:ident $buffer:ty, $report:ident $place:ty, $access:ident;)*) => {$(
        pub unsafe fn $name(
            mpi: &Mpi,
            fh: MPI_File,
            buf: $buffer,
            count: i64,
            datatype: MPI_Datatype,
            place: $place,
        ) -> Result {
            let (file, report) = (find(fh)?, Report::$report(place));
            report.check()?;
            let buffer = Buffer { start: buf, count, datatype };
            // SAFETY: the caller promises the buffer, and a place that is null or valid for one value.
            unsafe { report.give(fh, file.$access(mpi, Direction::$direction, buffer)?) }
        }
    )*};
}
pub(super) use {at_offset, at_pointer};

at_offset! {
    file_read_at Read *mut c_void, Status *mut MPI_Status, access_at;
    file_write_at Write *const c_void, Status *mut MPI_Status, access_at;
    file_iread_at Read *mut c_void, Request *mut MPI_Request, access_at;
    file_iwrite_at Write *const c_void, Request *mut MPI_Request, access_at;
}

at_pointer! {
    file_read Read *mut c_void, Status *mut MPI_Status, access_next;
    file_write Write *const c_void, Status *mut MPI_Status, access_next;
    file_iread Read *mut c_void, Request *mut MPI_Request, access_next;
    file_iwrite Write *const c_void, Request *mut MPI_Request, access_next;
}
