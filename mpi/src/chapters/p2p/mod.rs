//! Point-to-point communication.

mod attached;
mod buffer;
mod exchange;
mod partitioned;
mod probe;
mod receive;
mod send;

pub use attached::*;
pub use buffer::{bytes_of, given, outgoing, packed};
pub use exchange::*;
pub use partitioned::*;
pub use probe::*;
pub use receive::*;
pub use send::*;
