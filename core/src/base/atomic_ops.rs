//! Sets of atomic operations. Invariant: a set has one bit for each of the nineteen operations, numbered by
//! the operation's code, and no other bits.

use crate::base::atomic_type::AtomicType;
use pelago_fabric::AtomicOp;
use std::fmt;

/// A set of atomic operations, such as those that an `AtomicDomain` is made for.
///
/// ```
/// # mod pelago {
/// #     pub use pelago_core::base::{atomic_ops::AtomicOps, atomic_type::AtomicType};
/// #     pub use pelago_fabric::AtomicOp;
/// # }
/// use pelago::{AtomicOp, AtomicOps, AtomicType};
/// let counting = AtomicOps::of(&[AtomicOp::Fetch, AtomicOp::Add]);
/// assert!(counting.has(AtomicOp::Add) && !counting.has(AtomicOp::Set));
/// assert_eq!(counting.with(AtomicOp::Set).to_string(), "Fetch, Set and Add");
/// assert_eq!(AtomicOps::all_on(AtomicType::F32).len(), 15);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct AtomicOps(u32);

impl AtomicOps {
    /// The set of all nineteen operations.
    pub const ALL: AtomicOps = AtomicOps::of(&AtomicOp::ALL);

    /// The set of the given operations.
    pub const fn of(ops: &[AtomicOp]) -> AtomicOps {
        let (mut set, mut i) = (AtomicOps(0), 0);
        while i < ops.len() {
            set = set.with(ops[i]);
            i += 1;
        }
        set
    }

    /// The set of all operations that are defined on a type; see [`AtomicType::answer`].
    pub const fn all_on(of: AtomicType) -> AtomicOps {
        let (mut set, mut i) = (AtomicOps(0), 0);
        while i < AtomicOp::ALL.len() {
            if of.answer(AtomicOp::ALL[i]).is_ok() {
                set = set.with(AtomicOp::ALL[i]);
            }
            i += 1;
        }
        set
    }

    /// This set with one more operation.
    pub const fn with(self, op: AtomicOp) -> AtomicOps {
        AtomicOps(self.0 | 1 << op as u8)
    }

    /// Whether the set has an operation.
    #[inline]
    pub const fn has(self, op: AtomicOp) -> bool {
        self.0 & 1 << op as u8 != 0
    }

    /// The number of operations in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The operations of the set, in the order of their codes.
    pub fn iter(self) -> impl Iterator<Item = AtomicOp> {
        AtomicOp::ALL.into_iter().filter(move |op| self.has(*op))
    }

    /// The set as a number, for the members of a team to compare.
    pub fn bits(self) -> u64 {
        self.0.into()
    }

    /// The set of a number that [`bits`](AtomicOps::bits) returned.
    pub fn from_bits(bits: u64) -> AtomicOps {
        AtomicOps(bits as u32 & AtomicOps::ALL.0)
    }
}

impl From<AtomicOp> for AtomicOps {
    fn from(op: AtomicOp) -> AtomicOps {
        AtomicOps::of(&[op])
    }
}

impl From<&[AtomicOp]> for AtomicOps {
    fn from(ops: &[AtomicOp]) -> AtomicOps {
        AtomicOps::of(ops)
    }
}

impl<const N: usize> From<[AtomicOp; N]> for AtomicOps {
    fn from(ops: [AtomicOp; N]) -> AtomicOps {
        AtomicOps::of(&ops)
    }
}

impl FromIterator<AtomicOp> for AtomicOps {
    fn from_iter<I: IntoIterator<Item = AtomicOp>>(ops: I) -> AtomicOps {
        ops.into_iter().fold(AtomicOps(0), AtomicOps::with)
    }
}

impl fmt::Display for AtomicOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no operation");
        }
        for (i, op) in self.iter().enumerate() {
            let before = match i {
                0 => "",
                i if i + 1 == self.len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}{op:?}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for AtomicOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AtomicOp::*;

    #[test]
    fn sets_are_what_they_were_made_of() {
        for bits in [0u32, 1, 0b1010, 0x7_FFFF, 0x4_0000, 0x2_5A5A] {
            let set = AtomicOps::from_bits(bits.into());
            assert_eq!((set.bits(), set.len()), (bits.into(), bits.count_ones() as usize));
            assert_eq!(set.iter().collect::<AtomicOps>(), set);
            assert_eq!(AtomicOps::of(&set.iter().collect::<Vec<_>>()), set);
            assert!(AtomicOp::ALL.iter().all(|op| set.has(*op) == (bits >> *op as u8 & 1 == 1)));
        }
        assert_eq!(AtomicOps::from_bits(u64::MAX), AtomicOps::ALL);
        assert_eq!(AtomicOps::ALL.len(), 19);
        assert!(AtomicOps::default().is_empty() && !AtomicOps::from(Fetch).is_empty());
        assert!(AtomicOps::all_on(AtomicType::LongDouble).is_empty());
        assert_eq!(AtomicOps::all_on(AtomicType::U8), AtomicOps::ALL);
    }

    #[test]
    fn sets_are_told_in_words() {
        let told = |ops: &[AtomicOp]| AtomicOps::from(ops).to_string();
        assert_eq!(told(&[]), "no operation");
        assert_eq!(told(&[Xor]), "Xor");
        assert_eq!(told(&[MaskedSwap, Fetch]), "Fetch and MaskedSwap");
        assert_eq!(told(&[Add, Fetch, Set, Add]), "Fetch, Set and Add");
        assert_eq!(format!("{:?}", AtomicOps::from([Set, Max])), "{Set, Max}");
    }
}
