//! Collective accesses at explicit offsets and at the individual file pointers. Blocking ones may be buffered
//! (`buffering`). In non-blocking ones, and if all views are contiguous, each process does its own part and
//! waits for none.

use super::access::{Buffer, Direction, Moved, Plan};
use super::independent::{Report, at_offset, at_pointer};
use super::{File, find};
use crate::abi::*;
use crate::chapters::error::Result;
use crate::chapters::library::Mpi;

impl File {
    /// This process's part of an access at offsets.
    ///
    /// # Safety
    /// The buffer has the elements, or room for them.
    pub unsafe fn access_at_all(
        &self,
        mpi: &Mpi,
        direction: Direction,
        offset: i64,
        buffer: Buffer,
    ) -> Result<Moved> {
        let plan = self.plan_all(mpi, direction, buffer);
        // SAFETY: the caller promises the buffer, as this function demands.
        unsafe { self.access_together(mpi, plan, offset) }
    }

    /// This process's part of an access at the individual file pointers.
    ///
    /// # Safety
    /// As [`access_at_all`](File::access_at_all).
    pub unsafe fn access_all(&self, mpi: &Mpi, direction: Direction, buffer: Buffer) -> Result<Moved> {
        let plan = self.plan_all(mpi, direction, buffer);
        // It is not locked while this thread waits for others.
        let position = *self.position();
        // SAFETY: the caller promises the buffer, as this function demands.
        let moved = unsafe { self.access_together(mpi, plan, position)? };
        *self.position() = position + moved.etypes;
        Ok(moved)
    }

    fn plan_all<'a>(&self, mpi: &'a Mpi, direction: Direction, buffer: Buffer) -> Result<Plan<'a>> {
        self.check_no_split()?;
        self.check_positions()?;
        self.plan(mpi, direction, buffer)
    }

    /// As [`access_at_all`](File::access_at_all), without waiting for others.
    ///
    /// # Safety
    /// As [`access_at_all`](File::access_at_all).
    pub unsafe fn start_at_all(
        &self,
        mpi: &Mpi,
        direction: Direction,
        offset: i64,
        buffer: Buffer,
    ) -> Result<Moved> {
        self.check_no_split()?;
        // SAFETY: the caller promises the buffer, as this function demands.
        unsafe { self.access_at(mpi, direction, offset, buffer) }
    }

    /// As [`access_all`](File::access_all), without waiting for others.
    ///
    /// # Safety
    /// As [`access_at_all`](File::access_at_all).
    pub unsafe fn start_all(&self, mpi: &Mpi, direction: Direction, buffer: Buffer) -> Result<Moved> {
        self.check_no_split()?;
        // SAFETY: the caller promises the buffer, as this function demands.
        unsafe { self.access_next(mpi, direction, buffer) }
    }
}

at_pointer! {
    file_read_all Read *mut c_void, Status *mut MPI_Status, access_all;
    file_write_all Write *const c_void, Status *mut MPI_Status, access_all;
    file_iread_all Read *mut c_void, Request *mut MPI_Request, start_all;
    file_iwrite_all Write *const c_void, Request *mut MPI_Request, start_all;
}

at_offset! {
    file_read_at_all Read *mut c_void, Status *mut MPI_Status, access_at_all;
    file_write_at_all Write *const c_void, Status *mut MPI_Status, access_at_all;
    file_iread_at_all Read *mut c_void, Request *mut MPI_Request, start_at_all;
    file_iwrite_at_all Write *const c_void, Request *mut MPI_Request, start_at_all;
}
