//! The transports of finished panels, by name. Invariant: both bring the same elements to the same PEs.

use crate::choice::Named;

/// How a finished panel comes to the PEs that need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// The owner signals that the panel is final, and the others get it, or read it in place where the memory
    /// of the owner is mapped.
    OneSided,
    /// By broadcasts in the rows of the grid and all-gathers in its columns.
    Collectives,
}

impl Named for Transport {
    const NOUN: &str = "transport";
    const ALL: &[Transport] = &[Transport::OneSided, Transport::Collectives];

    fn name(self) -> &'static str {
        match self {
            Transport::OneSided => "one-sided",
            Transport::Collectives => "collectives",
        }
    }
}
