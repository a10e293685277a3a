//! The three ways in which a list of indices is processed. Invariant: each way has the same effect for each
//! index.

/// The way in which a PE accesses the words with its indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// One operation after the other, as soon as each returns.
    OneSided,
    /// Many operations at once in a scope, which completes them together.
    Scope,
    /// Many indices in one active message, whose handler processes them.
    Messages,
}

impl Way {
    /// All ways, in the order in which they run.
    pub(super) const ALL: [Way; 3] = [Way::OneSided, Way::Scope, Way::Messages];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Way::OneSided => "one-sided",
            Way::Scope => "scope",
            Way::Messages => "messages",
        }
    }
}

/// The number of operations of a scope; progress is reported after the same number.
pub(super) const WINDOW: usize = 1024;
