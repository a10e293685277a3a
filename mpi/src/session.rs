//! Sessions.

use crate::abi::*;
use crate::errhandler::Handler;

/// The error handler of a session.
pub fn handler(_session: MPI_Session) -> Option<Handler> {
    None
}
