//! The three ways in which a list of indices is worked off. Invariant: each way does the same for each index.

/// How a PE reaches the words that its indices name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// One operation after the other, as soon as each returns.
    OneSided,
    /// Many operations at once in a scope, which completes them together.
    Scope,
    /// Many indices in one active message, whose handler works them off.
    Messages,
}

impl Way {
    /// All ways, in the order in which they run.
    pub(super) const ALL: [Way; 3] = [Way::OneSided, Way::Scope, Way::Messages];

    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Way::OneSided => "one-sided",
            Way::Scope => "scope",
            Way::Messages => "messages",
        }
    }
}

/// Operations of a scope; after so many the progress is told as well.
pub(super) const WINDOW: usize = 1024;
