//! The conditions under which schedules are checked.

use crate::schedule::MAILBOX_BYTES;

/// The conditions under which schedules are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Size of a mailbox in bytes.
    pub mailbox_bytes: usize,
    /// The number of signals from one rank to another that may be in flight, that is, not waited for yet; a
    /// further signal blocks the sender. None: any number.
    pub credits: Option<usize>,
}

impl Default for CheckOptions {
    fn default() -> CheckOptions {
        CheckOptions { mailbox_bytes: MAILBOX_BYTES, credits: None }
    }
}
