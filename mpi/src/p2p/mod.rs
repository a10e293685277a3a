//! Point-to-point communication.

mod buffer;
mod probe;
mod receive;
mod send;

pub use buffer::{bytes_of, outgoing, packed};
pub use probe::*;
pub use receive::*;
pub use send::*;
