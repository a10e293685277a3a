//! Files.

use crate::abi::*;
use crate::chapters::errhandler::Handler;

/// The error handler of a file.
pub fn handler(_file: MPI_File) -> Option<Handler> {
    None
}
