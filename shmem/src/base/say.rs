//! Lines on standard error.
//!
//! Invariant: each line is written by one system call, so that lines of several processes do not mix.

use std::io::Write;

/// Writes a line. A failure to write is ignored, since it cannot be reported anywhere else.
pub(crate) fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
