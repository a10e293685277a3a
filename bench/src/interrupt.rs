//! A signal to this command while a job of its own ran: the error that main gives 128 + the signal for.

use std::fmt;

use pelago_boot::{Cause, Failure};

/// The job was ended by this signal to the command.
#[derive(Debug)]
pub struct Interrupted {
    signal: i32,
    text: String,
}

impl Interrupted {
    /// The exit status for it, as shells count.
    pub fn status(&self) -> u8 {
        u8::try_from(128 + self.signal).unwrap_or(1)
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl std::error::Error for Interrupted {}

/// The failure of a job as the error of the command that has started it.
pub fn error_of(failure: &Failure) -> anyhow::Error {
    match failure.cause {
        Cause::Interrupted(signal) => Interrupted { signal, text: failure.text.clone() }.into(),
        _ => anyhow::anyhow!("{}", failure.text),
    }
}
