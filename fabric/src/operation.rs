//! Operations as values: the complete description of a put, a get or an atomic for a provider.
//!
//! The caller fills in a value. All operations reach a provider in this form, whether the caller waits,
//! continues, or leaves the completion to a quiet.

use crate::amo::Atomic;
use crate::types::{Pe, Remote, Token};

/// The way in which the origin learns that an operation is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Only the counters of the endpoint report it (libfabric: without `FI_COMPLETION`), so only a quiet
    /// detects it. A short put is then injected.
    Counted,
    /// Events with this token report it as well.
    Tracked(Token),
    /// Nothing reports it, and no counter counts it: the receiver waits for the data. This is only for puts
    /// that may signal ([`signal_bytes`](crate::Provider::signal_bytes)) and whose source is free at return.
    Unreported,
    /// As [`Unreported`](Completion::Unreported), and the caller does not wait for the receiver either: the
    /// provider may gather the put with later operations until the next progress, if the receiver has not
    /// taken the earlier ones.
    Gathered,
}

impl Completion {
    /// The token of the events, if the operation has events.
    pub fn token(self) -> Option<Token> {
        match self {
            Completion::Counted | Completion::Unreported | Completion::Gathered => None,
            Completion::Tracked(token) => Some(token),
        }
    }

    /// Whether the counters of the endpoint report it.
    pub fn is_reported(self) -> bool {
        !matches!(self, Completion::Unreported | Completion::Gathered)
    }
}

impl From<Option<Token>> for Completion {
    fn from(token: Option<Token>) -> Completion {
        token.map_or(Completion::Counted, Completion::Tracked)
    }
}

/// Writes `bytes` bytes from `source` to `target` in the memory of `pe`.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    /// The PE whose memory is written.
    pub pe: Pe,
    /// The place of the data there.
    pub target: Remote,
    /// The data. Up to [`Limits::inject_bytes`](crate::Limits) they are read before the call returns,
    /// whatever the status; beyond, until they are sent ([`Event::Sent`](crate::Event)) or the put is
    /// complete.
    pub source: *const u8,
    /// Their length.
    pub bytes: usize,
    /// The report of its completion.
    pub completion: Completion,
}

/// The word that a put changes when its data are delivered: in the memory of the put's target, by an atomic
/// that fetches nothing.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// The place of the word there, at a multiple of its size.
    pub word: Remote,
    /// The atomic.
    pub atomic: Atomic,
}

/// Reads `bytes` bytes from `source` in the memory of `pe` to `target`.
#[derive(Clone, Copy, Debug)]
pub struct Get {
    /// The PE whose memory is read.
    pub pe: Pe,
    /// The place of the data there.
    pub source: Remote,
    /// The place of the data here, which belongs to the provider until the get is complete.
    pub target: *mut u8,
    /// Their length.
    pub bytes: usize,
    /// The report of its completion.
    pub completion: Completion,
}

/// Executes an atomic operation on a word in the memory of `pe`.
#[derive(Clone, Copy, Debug)]
pub struct Amo {
    /// The PE whose memory has the word.
    pub pe: Pe,
    /// The place of the word there.
    pub word: Remote,
    /// The operation.
    pub atomic: Atomic,
    /// The place of the word's old value, of as many bytes as the kind has; or null. With a place the
    /// operation counts as a get, else as a put.
    pub fetched: *mut u8,
    /// The report of its completion.
    pub completion: Completion,
}
