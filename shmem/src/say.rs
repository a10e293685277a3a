//! Lines on standard error.
//!
//! Invariant: a line is written by one call, so that those of several processes do not mix.

use std::io::Write;

/// Writes a line; who cannot be told anything is not told that either.
pub(crate) fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
