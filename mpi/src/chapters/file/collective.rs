//! Collective accesses at explicit offsets and at the individual file pointers: each process does its own.
//! Their order is not defined, and none needs what another does.

use super::access::{Buffer, Direction, Moved};
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
        self.check_no_split()?;
        // SAFETY: the caller promises the buffer, as this function demands.
        unsafe { self.access_at(mpi, direction, offset, buffer) }
    }

    /// This process's part of an access at the individual file pointers.
    ///
    /// # Safety
    /// As [`access_at_all`](File::access_at_all).
    pub unsafe fn access_all(&self, mpi: &Mpi, direction: Direction, buffer: Buffer) -> Result<Moved> {
        self.check_no_split()?;
        // SAFETY: the caller promises the buffer, as this function demands.
        unsafe { self.access_next(mpi, direction, buffer) }
    }
}

at_pointer! {
    file_read_all Read *mut c_void, Status *mut MPI_Status, access_all;
    file_write_all Write *const c_void, Status *mut MPI_Status, access_all;
    file_iread_all Read *mut c_void, Request *mut MPI_Request, access_all;
    file_iwrite_all Write *const c_void, Request *mut MPI_Request, access_all;
}

at_offset! {
    file_read_at_all Read *mut c_void, Status *mut MPI_Status, access_at_all;
    file_write_at_all Write *const c_void, Status *mut MPI_Status, access_at_all;
    file_iread_at_all Read *mut c_void, Request *mut MPI_Request, access_at_all;
    file_iwrite_at_all Write *const c_void, Request *mut MPI_Request, access_at_all;
}
