//! The size of a file.

use super::agree::{agree, agree_on_same};
use super::open::size_of_file;
use super::system::{self, failed};
use super::{File, find};
use crate::abi::*;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::{Mpi, output};
use pelago_fabric::sync::Ordering;
use std::io;

impl File {
    /// Changes the size with all processes, of which the first does it.
    fn resize(&self, mpi: &Mpi, size: i64, change: impl FnOnce() -> io::Result<()>) -> Result {
        let check = || {
            self.check_no_split()?;
            self.check_writable()?;
            ensure!(size >= 0, MPI_ERR_ARG, "size is {size}, which is negative");
            ensure!(
                self.amode & MPI_MODE_SEQUENTIAL == 0,
                MPI_ERR_UNSUPPORTED_OPERATION,
                "the file was opened with MPI_MODE_SEQUENTIAL. It has no size that can be set"
            );
            Ok([size as u64, 0])
        };
        agree_on_same(mpi, &self.comm, check(), "size")?;
        let mut mine = Ok(());
        if self.comm.my_rank() == 0 {
            mine = change().map_err(|error| failed("resizing", &self.path, &error));
            // `MPI_File_sync` takes the size to the device as well.
            self.is_dirty.store(true, Ordering::Relaxed);
        }
        agree(mpi, &self.comm, mine.map(|()| [0; 2])).map(drop)
    }
}

/// `MPI_File_set_size`.
pub unsafe fn file_set_size(mpi: &Mpi, fh: MPI_File, size: MPI_Offset) -> Result {
    let file = find(fh)?;
    file.resize(mpi, size, || system::retried(|| file.system.set_len(size as u64)))
}

/// `MPI_File_preallocate`: the file becomes no shorter.
pub unsafe fn file_preallocate(mpi: &Mpi, fh: MPI_File, size: MPI_Offset) -> Result {
    let file = find(fh)?;
    file.resize(mpi, size, || if size == 0 { Ok(()) } else { system::reserve(&file.system, size) })
}

/// `MPI_File_get_size`.
pub unsafe fn file_get_size(_mpi: &Mpi, fh: MPI_File, size: *mut MPI_Offset) -> Result {
    let (file, place) = (find(fh)?, output("size", size)?);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(size_of_file(&file.system, &file.path)?) };
    Ok(())
}
