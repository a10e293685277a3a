//! Lines on standard error.
//!
//! Invariant: each line is written by one system call, so that lines of several processes do not mix.

use pelago_boot::print_stderr;

/// Writes a line. A failure to write is ignored, since it cannot be reported anywhere else.
pub(crate) fn say(line: &str) {
    print_stderr(&format!("{line}\n"));
}
