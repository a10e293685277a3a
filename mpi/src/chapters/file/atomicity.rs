//! Atomic mode, and the transfer of data to the device.
//!
//! In atomic mode an access locks the part of the file from its first to its last byte, with a lock of the
//! system that holds between all processes, those of other nodes included where the file system has such
//! locks.

use super::agree::{agree, agree_on_same};
use super::system::{self, failed};
use super::{File, find};
use crate::abi::*;
use crate::chapters::comm::barrier;
use crate::chapters::error::Result;
use crate::chapters::library::{Mpi, output};
use pelago_fabric::sync::Ordering;

impl File {
    /// Waits until the data that this process has written are on the device, if the file has one.
    pub fn to_device(&self) -> Result {
        if !self.is_dirty.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        match system::retried(|| self.system.sync_all()) {
            // The system has no device to write to, as for a terminal.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            Err(error) => {
                // The next call tries again.
                self.is_dirty.store(true, Ordering::Relaxed);
                Err(failed("writing to the device", &self.path, &error))
            }
            Ok(()) => Ok(()),
        }
    }
}

/// `MPI_File_set_atomicity`.
pub unsafe fn file_set_atomicity(mpi: &Mpi, fh: MPI_File, flag: c_int) -> Result {
    let file = find(fh)?;
    let told = file.check_no_split().map(|()| [u64::from(flag != 0), 0]);
    agree_on_same(mpi, &file.comm, told, "flag")?;
    file.is_atomic.store(flag != 0, Ordering::Relaxed);
    // No process accesses the file in the new mode while another is in the old one.
    barrier(mpi, &file.comm)
}

/// `MPI_File_get_atomicity`.
pub unsafe fn file_get_atomicity(_mpi: &Mpi, fh: MPI_File, flag: *mut c_int) -> Result {
    let (file, place) = (find(fh)?, output("flag", flag)?);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(file.is_atomic().into()) };
    Ok(())
}

/// `MPI_File_sync`: afterwards the data that all processes have written are on the device, and all
/// processes see them.
pub unsafe fn file_sync(mpi: &Mpi, fh: MPI_File) -> Result {
    let file = find(fh)?;
    let mine = file.check_no_split().and_then(|()| file.to_device());
    agree(mpi, &file.comm, mine.map(|()| [0; 2])).map(drop)
}
