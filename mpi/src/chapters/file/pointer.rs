//! The individual file pointer.

use super::open::size_of_file;
use super::{File, find};
use crate::abi::*;
use crate::chapters::error::{Error, Result};
use crate::chapters::library::{Mpi, output};

impl File {
    /// The offset that a seek means, where the pointer is at `current`.
    pub fn target(&self, current: i64, offset: i64, whence: c_int) -> Result<i64> {
        let from = match whence {
            MPI_SEEK_SET => 0,
            MPI_SEEK_CUR => current,
            MPI_SEEK_END => self.view().etypes_before(size_of_file(&self.system, &self.path)?),
            _ => {
                let text = format!("whence is {whence}. Give MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END");
                return Err(Error::new(MPI_ERR_ARG, text));
            }
        };
        from.checked_add(offset).filter(|&target| target >= 0).ok_or_else(|| {
            let text = format!("the offset {offset} from {from} on leads before the beginning of the view");
            Error::new(MPI_ERR_ARG, text)
        })
    }
}

/// `MPI_File_seek`.
pub unsafe fn file_seek(_mpi: &Mpi, fh: MPI_File, offset: MPI_Offset, whence: c_int) -> Result {
    let file = find(fh)?;
    file.check_positions()?;
    let mut position = file.position();
    *position = file.target(*position, offset, whence)?;
    Ok(())
}

/// `MPI_File_get_position`.
pub unsafe fn file_get_position(_mpi: &Mpi, fh: MPI_File, offset: *mut MPI_Offset) -> Result {
    let (file, place) = (find(fh)?, output("offset", offset)?);
    file.check_positions()?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(*file.position()) };
    Ok(())
}
