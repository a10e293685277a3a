//! Windows.

use crate::abi::*;
use crate::attribute::Attributes;
use crate::errhandler::Handler;
use crate::error::{Error, Result};
use std::sync::Arc;

/// The error handler of a window.
pub fn handler(_win: MPI_Win) -> Option<Handler> {
    None
}

/// The attributes of a window.
pub fn attributes(_win: MPI_Win) -> Result<Arc<Attributes>> {
    Err(Error::new(MPI_ERR_WIN, "the window was freed, or never was one"))
}

/// The value of an attribute that every window has: a pointer, by the standard.
pub fn predefined(_win: MPI_Win, _keyval: c_int) -> Option<*mut c_void> {
    None
}
