//! The ways of updating, by name. Invariant: all of them make the same updates; they differ in who reads and
//! writes the word.

use crate::choice::Named;

/// How a word that another PE has is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// It is got, changed and put back; updates of two PEs at once may be lost.
    PutGet,
    /// By an atomic operation.
    Atomics,
    /// By active messages that bring many updates at once, of which its owner makes each.
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
