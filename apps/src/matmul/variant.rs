//! The variants of the communication, by name. Invariant: all of them bring the same panels to the same PEs;
//! they differ in who moves a panel, and when.

use crate::choice::Named;

/// How a PE gets the panels of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// By a blocking broadcast in the row and in the column of the grid, before each multiplication.
    Blocking,
    /// By non-blocking broadcasts that are started one multiplication earlier.
    Prefetch,
    /// By gets that are started one multiplication earlier; where the memory of the owner is mapped, the
    /// panel is read in place.
    OneSided,
}

impl Named for Variant {
    const NOUN: &str = "variant";
    const ALL: &[Variant] = &[Variant::Blocking, Variant::Prefetch, Variant::OneSided];

    fn name(self) -> &'static str {
        match self {
            Variant::Blocking => "blocking",
            Variant::Prefetch => "prefetch",
            Variant::OneSided => "one-sided",
        }
    }
}
