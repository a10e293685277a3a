//! Operations as values: all that a provider is told of a put, a get or an atomic.
//!
//! Whoever starts one fills in a value; there is no other way down to a provider, whether the caller waits,
//! goes on, or leaves the operation to a quiet.

use crate::amo::Atomic;
use crate::types::{Pe, Remote, Token};

/// How the origin learns that an operation is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The counters of the endpoint tell, and nothing else (libfabric: without `FI_COMPLETION`): only a quiet
    /// knows. A short put is then injected.
    Counted,
    /// Events with this token tell as well.
    Tracked(Token),
    /// Nothing tells, and no counter counts it: the receiver waits for the data. Only for short puts of
    /// providers that [signal](crate::Provider::signals).
    Unreported,
}

impl Completion {
    /// The token of the events, if there are to be some.
    pub fn token(self) -> Option<Token> {
        match self {
            Completion::Counted | Completion::Unreported => None,
            Completion::Tracked(token) => Some(token),
        }
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
    /// How its completion is told.
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
    /// The place of the data here; the provider's until the get is complete.
    pub target: *mut u8,
    /// Their length.
    pub bytes: usize,
    /// How its completion is told.
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
    /// How its completion is told.
    pub completion: Completion,
}
