//! Under what conditions schedules are checked.

use crate::schedule::MAILBOX_BYTES;

/// Under what conditions schedules are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Size of a mailbox in bytes.
    pub mailbox_bytes: usize,
    /// How many signals a rank may have on the way to another one that this has not waited for; a further one
    /// holds it up. None: any number.
    pub credits: Option<usize>,
}

impl Default for CheckOptions {
    fn default() -> CheckOptions {
        CheckOptions { mailbox_bytes: MAILBOX_BYTES, credits: None }
    }
}
