//! The variants of the transposition, by name. Invariant: all of them move the same rows to the same PEs;
//! they differ in when they send and in how large pieces.

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

/// The name that stands for all variants, one after the other.
const ALL_NAME: &str = "all";

impl Variant {
    /// All variants, in the order in which they run.
    pub(super) const ALL: [Variant; 3] = [Variant::Exchange, Variant::Slabs, Variant::Pencils];

    /// What the user calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Variant::Exchange => "exchange",
            Variant::Slabs => "slabs",
            Variant::Pencils => "pencils",
        }
    }
}

/// The variants that the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    One(Variant),
    All,
}

impl Selection {
    /// What `name` selects; else a message that lists all names and proposes the nearest.
    pub(super) fn from_name(name: &str) -> Result<Self, String> {
        if name == ALL_NAME {
            return Ok(Selection::All);
        }
        if let Some(variant) = Variant::ALL.into_iter().find(|variant| variant.name() == name) {
            return Ok(Selection::One(variant));
        }
        let names: Vec<_> = Variant::ALL.iter().map(|variant| variant.name()).chain([ALL_NAME]).collect();
        let nearest = crate::nearest(name, names.iter().copied()).unwrap_or_default();
        Err(format!("no such variant; the variants are {}; did you mean {nearest}?", names.join(", ")))
    }

    /// The variants to run, in order.
    pub(super) fn variants(self) -> Vec<Variant> {
        match self {
            Selection::One(variant) => vec![variant],
            Selection::All => Variant::ALL.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_is_selected_by_its_name() {
        for variant in Variant::ALL {
            assert_eq!(Selection::from_name(variant.name()), Ok(Selection::One(variant)));
        }
        assert_eq!(Selection::from_name("all").unwrap().variants(), Variant::ALL);
    }

    #[test]
    fn unknown_variants_are_corrected() {
        let message = Selection::from_name("exchnge").unwrap_err();
        assert!(
            message.contains("are exchange, slabs, pencils, all;") && message.contains("mean exchange?"),
            "{message}"
        );
    }
}
