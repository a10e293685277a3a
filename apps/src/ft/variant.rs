//! The variants of the 3-D FFT, by name. Invariant: all of them move the same rows to the same PEs; they
//! differ in when they send and in how large pieces.

use super::transposition::Pieces;
use crate::choice::{Choice, Named};

/// How the field crosses the PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// All local FFTs first, then one block to every PE (1-D).
    Exchange,
    /// Each plane, as soon as it is computed, with one slab of it to every member (1-D and 2-D).
    Slabs,
    /// Each row, as soon as it is final, to its PE (1-D).
    Pencils,
    /// In both rounds all local FFTs first, then one block to every member (2-D).
    PackedSlabs,
}

impl Named for Variant {
    const NOUN: &str = "variant";
    const ALL: &[Variant] = &[Variant::Exchange, Variant::Slabs, Variant::Pencils, Variant::PackedSlabs];

    fn name(self) -> &'static str {
        match self {
            Variant::Exchange => "exchange",
            Variant::Slabs => "slabs",
            Variant::Pencils => "pencils",
            Variant::PackedSlabs => "packed-slabs",
        }
    }
}

impl Variant {
    /// The pieces in which it sends.
    pub(super) fn pieces(self) -> Pieces {
        match self {
            Variant::Exchange | Variant::PackedSlabs => Pieces::Blocks,
            Variant::Slabs => Pieces::Slabs,
            Variant::Pencils => Pieces::Pencils,
        }
    }

    /// The variants of a decomposition.
    pub(super) fn of(is_2d: bool) -> &'static [Variant] {
        match is_2d {
            true => &[Variant::PackedSlabs, Variant::Slabs],
            false => &[Variant::Exchange, Variant::Slabs, Variant::Pencils],
        }
    }

    /// The variants to run of a choice, in a decomposition; or the reason why there are none.
    pub(super) fn chosen(choice: Choice<Variant>, is_2d: bool) -> Result<Vec<Variant>, String> {
        let variants = Variant::of(is_2d);
        match choice {
            Choice::All => Ok(variants.to_vec()),
            Choice::One(one) if variants.contains(&one) => Ok(vec![one]),
            Choice::One(one) => {
                let names: Vec<_> = variants.iter().map(|variant| variant.name()).collect();
                Err(format!(
                    "the variant {} has no 2-D decomposition; leave --grid out, or take --variant {}",
                    one.name(),
                    names.join(" or ")
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_the_variants_of_the_decomposition() {
        let names = |is_2d| {
            let all = Variant::chosen(Choice::All, is_2d).unwrap();
            all.into_iter().map(Variant::name).collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["exchange", "slabs", "pencils"]);
        assert_eq!(names(true), ["packed-slabs", "slabs"]);
        for (variant, is_2d) in [(Variant::Slabs, true), (Variant::Slabs, false), (Variant::Pencils, false)] {
            assert_eq!(Variant::chosen(Choice::One(variant), is_2d), Ok(vec![variant]));
        }
    }

    #[test]
    fn variants_of_one_dimension_are_refused_on_a_grid_with_a_remedy() {
        for variant in [Variant::Exchange, Variant::Pencils] {
            let message = Variant::chosen(Choice::One(variant), true).unwrap_err();
            assert!(message.contains(variant.name()), "{message}");
            assert!(
                message.ends_with("leave --grid out, or take --variant packed-slabs or slabs"),
                "{message}"
            );
        }
    }
}
