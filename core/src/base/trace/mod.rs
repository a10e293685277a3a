//! Records of a PE's operations: a timeline (`PELAGO_TRACE`) and statistics (`PELAGO_STATS`).
//!
//! Operations reach the recorder only off the fast path: while a PE records, its fast paths are closed, as
//! they are while operations are counted ([`Tally`](super::counters::Tally)). So recording costs nothing when
//! it is off.

mod event;
mod file;
pub mod reader;
mod recorder;
mod statistics;
mod thread;

pub use event::{Category, Event};
pub use recorder::{Recorder, Span};
