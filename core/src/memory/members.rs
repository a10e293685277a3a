//! The members of a team: the mapping between ranks and PEs.
//!
//! Invariant: no PE occurs twice. Regular sets are kept as start and stride, so that a team of all PEs costs
//! no memory; others as a list, with a sorted copy for the mapping from PE to rank.

use crate::Pe;
use pelago_schedule::schedule::Rank;

/// The PEs of a team, in the order of their ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// Every `stride`-th PE from `start` on; the stride may be negative.
    Strided { start: Pe, stride: isize, n: usize },
    /// Any set of PEs, in the order of their ranks, and sorted by PE.
    List { pes: Box<[u32]>, by_pe: Box<[(u32, u32)]> },
}

impl Members {
    /// All PEs of a job.
    pub fn all(n: usize) -> Members {
        Members::Strided { start: 0, stride: 1, n }
    }

    /// The given PEs: at least one, and each of them once.
    pub fn of(pes: &[Pe]) -> Members {
        let stride = if pes.len() > 1 { pes[1] as isize - pes[0] as isize } else { 1 };
        let is_regular = pes.windows(2).all(|pair| pair[1] as isize - pair[0] as isize == stride);
        if is_regular {
            return Members::Strided { start: pes[0], stride, n: pes.len() };
        }
        let mut by_pe: Vec<(u32, u32)> = pes.iter().zip(0..).map(|(&pe, rank)| (pe as u32, rank)).collect();
        by_pe.sort_unstable();
        Members::List { pes: pes.iter().map(|&pe| pe as u32).collect(), by_pe: by_pe.into() }
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        match self {
            Members::Strided { n, .. } => *n,
            Members::List { pes, .. } => pes.len(),
        }
    }

    /// The PE of a rank.
    pub fn pe(&self, rank: Rank) -> Pe {
        match self {
            Members::Strided { start, stride, .. } => (*start as isize + rank as isize * stride) as Pe,
            Members::List { pes, .. } => pes[rank] as Pe,
        }
    }

    /// The rank of a PE, if it is a member.
    #[inline]
    pub fn rank_of(&self, pe: Pe) -> Option<Rank> {
        match self {
            // Without a division, for most teams.
            Members::Strided { start, stride: 1, n } => Some(pe.wrapping_sub(*start)).filter(|rank| rank < n),
            _ => self.search(pe),
        }
    }

    fn search(&self, pe: Pe) -> Option<Rank> {
        match self {
            Members::Strided { start, stride, n } => {
                let distance = pe as isize - *start as isize;
                if *n == 1 {
                    return (distance == 0).then_some(0);
                }
                let rank = distance.checked_div(*stride).filter(|rank| rank * stride == distance)?;
                usize::try_from(rank).ok().filter(|rank| rank < n)
            }
            Members::List { by_pe, .. } => {
                let pe = u32::try_from(pe).ok()?;
                let found = by_pe.binary_search_by_key(&pe, |&(pe, _)| pe).ok()?;
                Some(by_pe[found].1 as Rank)
            }
        }
    }

    /// All members, in the order of their ranks.
    pub fn iter(&self) -> impl Iterator<Item = Pe> + '_ {
        (0..self.len()).map(|rank| self.pe(rank))
    }

    /// The first `n` members.
    pub fn first(&self, n: usize) -> Members {
        match self {
            Members::Strided { start, stride, .. } => Members::Strided { start: *start, stride: *stride, n },
            Members::List { pes, .. } => {
                let pes: Vec<Pe> = pes[..n].iter().map(|&pe| pe as Pe).collect();
                Members::of(&pes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_and_pes_lead_to_each_other(
            set in prop::collection::hash_set(0usize..200, 1..40),
            n in 1usize..40,
        ) {
            let pes: Vec<Pe> = set.into_iter().collect();
            let members = Members::of(&pes);
            prop_assert_eq!(members.iter().collect::<Vec<_>>(), pes.clone());
            for pe in 0..200 {
                prop_assert_eq!(members.rank_of(pe), pes.iter().position(|&member| member == pe));
                prop_assert_eq!(members.rank_of(pe + (1 << 32)), None);
            }
            let n = n.min(pes.len());
            prop_assert_eq!(members.first(n).iter().collect::<Vec<_>>(), &pes[..n]);
        }

        #[test]
        fn regular_sets_are_not_listed(start in 0usize..50, stride in -5isize..6, n in 1usize..9) {
            let last = start as isize + stride * (n as isize - 1);
            prop_assume!(last >= 0 && (stride != 0 || n == 1));
            let pes: Vec<Pe> = (0..n as isize).map(|rank| (start as isize + stride * rank) as Pe).collect();
            let members = Members::of(&pes);
            let is_strided = matches!(members, Members::Strided { .. });
            prop_assert!(is_strided);
            for pe in 0..100 {
                prop_assert_eq!(members.rank_of(pe), pes.iter().position(|&member| member == pe));
            }
        }
    }
}
