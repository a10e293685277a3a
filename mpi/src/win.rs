//! Windows.

use crate::abi::*;
use crate::errhandler::Handler;

/// The error handler of a window.
pub fn handler(_win: MPI_Win) -> Option<Handler> {
    None
}
