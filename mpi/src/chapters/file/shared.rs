//! The shared file pointer: a word in the pool of the first process of the file.
//!
//! An access takes its place with one atomic addition of the etypes that it asks for, and then moves its data
//! while others move theirs. An ordered access takes the place of all processes with one addition by the
//! first process, after all have told their sizes.
//!
//! Invariant: a read that meets the end of the file has moved the pointer by what it has asked for, because
//! accesses of others may have followed it already.

use super::access::{Buffer, Direction, Moved, Plan};
use super::agree::{agree, agree_on_same};
use super::independent::{Report, at_pointer};
use super::{File, find};
use crate::abi::*;
use crate::chapters::comm::{barrier, gather_words};
use crate::chapters::error::{Error, Result};
use crate::chapters::library::{Mpi, output};

impl File {
    /// Where the shared file pointer is.
    pub fn shared_position(&self, mpi: &Mpi) -> i64 {
        self.shared.fetch_add(mpi, 0) as i64
    }

    /// Moves the shared file pointer, with all processes, to a place that all give.
    pub fn set_shared_position(&self, mpi: &Mpi, target: Result<i64>) -> Result {
        // Here all accesses before are over.
        let told = target.as_ref().map(|&target| [target as u64, 0]);
        let told = told.map_err(Error::copy);
        agree_on_same(mpi, &self.comm, told, "the offset")?;
        if self.comm.my_rank() == 0 {
            let before = self.shared_position(mpi);
            self.shared.fetch_add(mpi, (target? - before) as u64);
        }
        barrier(mpi, &self.comm)
    }

    /// An access at the shared file pointer.
    ///
    /// # Safety
    /// The buffer has the elements, or room for them.
    pub unsafe fn access_shared(&self, mpi: &Mpi, direction: Direction, buffer: Buffer) -> Result<Moved> {
        let plan = self.plan(mpi, direction, buffer)?;
        let offset = self.shared.fetch_add(mpi, plan.etypes as u64) as i64;
        // SAFETY: the caller promises the buffer, as this function demands.
        unsafe { self.access(&plan, offset) }
    }

    /// An access of all processes at the shared file pointer, in the order of their ranks.
    ///
    /// # Safety
    /// As [`access_shared`](File::access_shared).
    pub unsafe fn access_ordered(&self, mpi: &Mpi, direction: Direction, buffer: Buffer) -> Result<Moved> {
        let plan = self.check_no_split().and_then(|()| self.plan(mpi, direction, buffer));
        let (plan, offset) = self.ordered_place(mpi, plan)?;
        // SAFETY: the caller promises the buffer, as this function demands.
        unsafe { self.access_together(mpi, Ok(plan), offset) }
    }

    /// The place of this process in an ordered access.
    fn ordered_place<'a>(&self, mpi: &Mpi, plan: Result<Plan<'a>>) -> Result<(Plan<'a>, i64)> {
        let told = match &plan {
            Ok(plan) => Ok([plan.etypes as u64, 0]),
            Err(error) => Err(error.copy()),
        };
        // Here all accesses before have taken their places.
        let all = agree(mpi, &self.comm, told)?;
        let sum = |some: &[[u64; 2]]| some.iter().map(|words| words[0]).sum::<u64>();
        let me = self.comm.my_rank();
        let first = if me == 0 { self.shared.fetch_add(mpi, sum(&all)) } else { 0 };
        let first = gather_words(mpi, &self.comm, [first])?[0][0];
        Ok((plan?, (first + sum(&all[..me])) as i64))
    }
}

at_pointer! {
    file_read_shared Read *mut c_void, Status *mut MPI_Status, access_shared;
    file_write_shared Write *const c_void, Status *mut MPI_Status, access_shared;
    file_iread_shared Read *mut c_void, Request *mut MPI_Request, access_shared;
    file_iwrite_shared Write *const c_void, Request *mut MPI_Request, access_shared;
    file_read_ordered Read *mut c_void, Status *mut MPI_Status, access_ordered;
    file_write_ordered Write *const c_void, Status *mut MPI_Status, access_ordered;
}

/// `MPI_File_seek_shared`.
pub unsafe fn file_seek_shared(mpi: &Mpi, fh: MPI_File, offset: MPI_Offset, whence: c_int) -> Result {
    let file = find(fh)?;
    // All processes look at the pointer and the end of the file at the same time.
    barrier(mpi, &file.comm)?;
    let target = file
        .check_positions()
        .and_then(|()| file.check_no_split())
        .and_then(|()| file.target(file.shared_position(mpi), offset, whence));
    file.set_shared_position(mpi, target)
}

/// `MPI_File_get_position_shared`.
pub unsafe fn file_get_position_shared(mpi: &Mpi, fh: MPI_File, offset: *mut MPI_Offset) -> Result {
    let (file, place) = (find(fh)?, output("offset", offset)?);
    file.check_positions()?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(file.shared_position(mpi)) };
    Ok(())
}
