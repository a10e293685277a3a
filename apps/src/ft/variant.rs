//! The variants of the transposition, by name. Invariant: all of them move the same rows to the same PEs;
//! they differ in when they send and in how large pieces.

use crate::choice::Named;

/// How the field is transposed between the planes and the spectrum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// All local FFTs first, then one block to every PE.
    Exchange,
    /// Each plane, as soon as it is computed, with one slab of it to every PE.
    Slabs,
    /// Each row, as soon as it is final, to its PE.
    Pencils,
}

impl Named for Variant {
    const NOUN: &str = "variant";
    const ALL: &[Variant] = &[Variant::Exchange, Variant::Slabs, Variant::Pencils];

    fn name(self) -> &'static str {
        match self {
            Variant::Exchange => "exchange",
            Variant::Slabs => "slabs",
            Variant::Pencils => "pencils",
        }
    }
}
