//! The ways of updating, by name. Invariant: all of them make the same updates; they differ in the PE that
//! reads and writes the word.

use crate::choice::Named;

/// The way in which a word on another PE is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// The word is got, changed and put back; concurrent updates of two PEs may be lost.
    PutGet,
    /// By an atomic operation.
    Atomics,
    /// By active messages with many updates each, which the owner of the words performs.
    Messages,
}

impl Named for Method {
    const NOUN: &str = "method";
    const ALL: &[Method] = &[Method::PutGet, Method::Atomics, Method::Messages];

    fn name(self) -> &'static str {
        match self {
            Method::PutGet => "put-get",
            Method::Atomics => "atomics",
            Method::Messages => "messages",
        }
    }
}
