//! Trees over the ranks of a team: the parent and the children of each rank.
//!
//! Invariant: every function describes one tree, the same at all ranks: `c` is a child of `p` exactly if `p`
//! is the parent of `c`, and all but the root have a parent.
//!
//! Sources: binomial trees and halving of a range: Chan, Heimlich, Purkayastha, van de Geijn 2007; k-nomial
//! trees: Wilkins et al. 2023; one tree whose edges never change: Welch and Venkata, "On Synchronisation and
//! Memory Reuse in OpenSHMEM".

use crate::schedule::Rank;
use std::ops::Range;

/// The neighbours of a rank in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// The rank above; the root has none.
    pub parent: Option<Rank>,
    /// The ranks below, those with the largest subtrees first.
    pub children: Vec<Rank>,
}

impl Links {
    /// The same tree for ranks with other numbers.
    pub fn map(self, rank: impl Fn(usize) -> Rank) -> Links {
        Links { parent: self.parent.map(&rank), children: self.children.into_iter().map(rank).collect() }
    }
}

/// The k-nomial tree of `n` ranks with root 0; binomial if `radix` is 2. The parent of a rank is the rank
/// without its lowest digit that is not zero, to the base `radix`.
pub fn k_nomial(rank: Rank, n: usize, radix: usize) -> Links {
    let mut children = Vec::new();
    let mut level = 1;
    while level < n && rank.is_multiple_of(level.saturating_mul(radix)) {
        children.extend((1..radix).map(|digit| rank + digit * level).take_while(|&child| child < n));
        level = level.saturating_mul(radix);
    }
    children.reverse();
    let parent = (rank > 0).then(|| rank - rank % level.saturating_mul(radix));
    Links { parent, children }
}

/// This rank and all ranks below it in the binomial tree of `n` ranks with root 0: they are contiguous.
pub fn binomial_subtree(rank: Rank, n: usize) -> Range<Rank> {
    match rank {
        0 => 0..n,
        _ => rank..n.min(rank + (1 << rank.trailing_zeros())),
    }
}

/// The binary tree over `n` ranks with root 0, numbered level by level.
pub fn binary(rank: Rank, n: usize) -> Links {
    let children = [2 * rank + 1, 2 * rank + 2].into_iter().filter(|&child| child < n).collect();
    Links { parent: (rank > 0).then(|| (rank - 1) / 2), children }
}

/// The same tree with its edges turned towards `root`, whichever rank that is.
pub fn binary_from(rank: Rank, n: usize, root: Rank) -> Links {
    let Links { parent: above, children: mut neighbours } = binary(rank, n);
    if let Some(above) = above {
        neighbours.insert(0, above);
    }
    let parent = (rank != root).then(|| {
        let mut towards = root;
        while towards > rank && (towards - 1) / 2 != rank {
            towards = (towards - 1) / 2;
        }
        if towards > rank { towards } else { (rank - 1) / 2 }
    });
    neighbours.retain(|&neighbour| Some(neighbour) != parent);
    Links { parent, children: neighbours }
}

/// The part of a rank in a tree whose subtrees are ranges of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtree {
    /// The rank above; the root has none.
    pub parent: Option<Rank>,
    /// This rank and all below it.
    pub ranks: Range<Rank>,
    /// The ranks below, with their subtrees, the largest first.
    pub children: Vec<(Rank, Range<Rank>)>,
}

/// The tree that results when the range of all ranks is halved repeatedly, and each time the rank that
/// represents the range gives the half in which it is not, the smaller one if they differ, to the first rank
/// of that half. Like a binomial tree it has ceil(log2 n) levels, but no subtree wraps around the end of the
/// ranks, whatever the root.
pub fn halving(rank: Rank, n: usize, root: Rank) -> Subtree {
    let mut own = Subtree { parent: None, ranks: 0..n, children: Vec::new() };
    let (mut ranks, mut holder) = (0..n, root);
    while ranks.len() > 1 {
        let handed = ranks.len() / 2;
        let (low, high) = (ranks.start + handed, ranks.end - handed);
        let (near, far) = match holder < high {
            true => (ranks.start..high, high..ranks.end),
            false => (low..ranks.end, ranks.start..low),
        };
        if far.contains(&rank) {
            own = Subtree { parent: Some(holder), ranks: far.clone(), children: Vec::new() };
            (ranks, holder) = (far.clone(), far.start);
        } else {
            if holder == rank {
                own.children.push((far.start, far));
            }
            ranks = near;
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that parents and children agree, and that from every rank the parents lead to the root in at
    /// most `levels` levels.
    fn check(n: usize, root: Rank, levels: usize, links: impl Fn(Rank) -> Links) {
        let all: Vec<Links> = (0..n).map(links).collect();
        for rank in 0..n {
            for &child in &all[rank].children {
                assert_eq!(all[child].parent, Some(rank), "child {child} of {rank}, n {n}, root {root}");
            }
            let (mut at, mut steps) = (rank, 0);
            while let Some(parent) = all[at].parent {
                assert!(all[parent].children.contains(&at), "{at} below {parent}, n {n}, root {root}");
                (at, steps) = (parent, steps + 1);
                assert!(steps <= levels, "{rank} is more than {levels} levels down, n {n}, root {root}");
            }
            assert_eq!(at, root, "n {n}, from {rank}");
        }
    }

    fn levels(n: usize) -> usize {
        n.next_power_of_two().trailing_zeros() as usize
    }

    #[test]
    fn links_agree_at_all_ranks() {
        for n in 1..=70 {
            for radix in [2, 3, 4, 100, usize::MAX] {
                check(n, 0, levels(n), |rank| k_nomial(rank, n, radix));
            }
            for root in 0..n {
                check(n, root, 2 * levels(n), |rank| binary_from(rank, n, root));
                check(n, root, levels(n), |rank| {
                    let Subtree { parent, children, .. } = halving(rank, n, root);
                    Links { parent, children: children.into_iter().map(|(child, _)| child).collect() }
                });
            }
        }
    }

    #[test]
    fn subtrees_are_the_ranks_below() {
        for n in 1..=70 {
            for rank in 0..n {
                let below = k_nomial(rank, n, 2).children;
                let ranks: usize = below.iter().map(|&child| binomial_subtree(child, n).len()).sum();
                assert_eq!(binomial_subtree(rank, n).len(), ranks + 1, "n {n}, rank {rank}");
            }
            for (root, rank) in (0..n).flat_map(|root| (0..n).map(move |rank| (root, rank))) {
                let own = halving(rank, n, root);
                assert!(own.ranks.contains(&rank), "n {n}, root {root}, rank {rank}");
                let below: usize = own.children.iter().map(|(_, ranks)| ranks.len()).sum();
                assert_eq!(own.ranks.len(), below + 1, "n {n}, root {root}, rank {rank}");
                for (child, ranks) in own.children {
                    assert_eq!(halving(child, n, root).ranks, ranks, "n {n}, root {root}, rank {rank}");
                }
            }
        }
    }

    #[test]
    fn edges_of_the_binary_tree_do_not_depend_on_the_root() {
        let edges = |rank, root| {
            let Links { parent, mut children } = binary_from(rank, 13, root);
            children.extend(parent);
            children.sort_unstable();
            children
        };
        for (rank, root) in (0..13).flat_map(|root| (0..13).map(move |rank| (rank, root))) {
            assert_eq!(edges(rank, root), edges(rank, 0));
        }
    }
}
