//! The symbolic contents of memory: every element of every source is a leaf of its own, and a reduction makes
//! a node of two terms.
//!
//! Invariant: equal terms have equal numbers (hash-consing), so that two results are bitwise equal for every
//! operation exactly if their numbers are equal.

use crate::schedule::Rank;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

/// The number of a term: leaves first, then nodes.
pub(super) type Term = u32;

/// The operands of a term, if they are ascending ranks without a gap, all of the same element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    low: u32,
    high: u32,
    element: u32,
}

impl Run {
    /// The ranks from `low` to `high`, and the element of their sources.
    pub fn new(low: Rank, high: Rank, element: usize) -> Run {
        Run { low: low as u32, high: high as u32, element: element as u32 }
    }

    /// Its operands, in order.
    pub fn operands(self) -> impl Iterator<Item = (Rank, usize)> {
        (self.low..=self.high).map(move |rank| (rank as Rank, self.element as usize))
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ranks {} to {}, element {}", self.low, self.high, self.element)
    }
}

struct Node {
    left: Term,
    right: Term,
    run: Option<Run>,
    comb: bool,
}

/// All terms of a run.
pub(super) struct Terms {
    first_leaf: Vec<Term>,
    leaves: Term,
    nodes: Vec<Node>,
    index: WordMap<u64, Term>,
}

impl Terms {
    /// The leaves of the sources, from the number of elements of each.
    pub fn new(source_elements: impl Iterator<Item = usize>) -> Terms {
        let mut leaves = 0_usize;
        let mut first_leaf = Vec::new();
        for elements in source_elements {
            first_leaf.push(leaves as Term);
            leaves += elements;
        }
        assert!(leaves < (u32::MAX / 4) as usize, "{leaves} elements are too many to be checked");
        Terms { first_leaf, leaves: leaves as Term, nodes: Vec::new(), index: WordMap::default() }
    }

    /// An element of a rank's source.
    pub fn leaf(&self, rank: Rank, element: usize) -> Term {
        self.first_leaf[rank] + element as Term
    }

    /// Rank and element of a leaf.
    pub fn source_of(&self, leaf: Term) -> (Rank, usize) {
        let rank = self.first_leaf.partition_point(|&first| first <= leaf) - 1;
        (rank, (leaf - self.first_leaf[rank]) as usize)
    }

    /// Whether a term is an element of a source.
    pub fn is_leaf(&self, term: Term) -> bool {
        term < self.leaves
    }

    /// `left op right`.
    pub fn combine(&mut self, left: Term, right: Term) -> Term {
        let key = u64::from(left) << 32 | u64::from(right);
        if let Some(&term) = self.index.get(&key) {
            return term;
        }
        let run = match (self.run(left), self.run(right)) {
            (Some(l), Some(r)) if l.element == r.element && l.high + 1 == r.low => {
                Some(Run { low: l.low, high: r.high, element: l.element })
            }
            _ => None,
        };
        let comb = run.is_some() && self.is_comb(left) && self.is_leaf(right);
        let term = self.leaves + self.nodes.len() as Term;
        self.nodes.push(Node { left, right, run, comb });
        self.index.insert(key, term);
        term
    }

    /// The operands of a term, if they are ascending ranks without a gap.
    pub fn run(&self, term: Term) -> Option<Run> {
        if self.is_leaf(term) {
            let (rank, element) = self.source_of(term);
            return Some(Run::new(rank, rank, element));
        }
        self.nodes[(term - self.leaves) as usize].run
    }

    /// Whether a term is ((x0 op x1) op x2) op ...
    pub fn is_comb(&self, term: Term) -> bool {
        self.is_leaf(term) || self.nodes[(term - self.leaves) as usize].comb
    }

    /// The operands of a term from left to right, the first `limit` of them.
    pub fn operands(&self, term: Term, limit: usize) -> Vec<(Rank, usize)> {
        let (mut operands, mut rest) = (Vec::new(), vec![term]);
        while let Some(term) = rest.pop() {
            if operands.len() == limit {
                break;
            }
            if self.is_leaf(term) {
                operands.push(self.source_of(term));
            } else {
                let node = &self.nodes[(term - self.leaves) as usize];
                rest.extend([node.right, node.left]);
            }
        }
        operands
    }
}

/// Hash maps whose keys are single words.
pub(super) type WordMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// Mixes one word (Fibonacci hashing).
#[derive(Default)]
pub(super) struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9).rotate_left(31);
    }
}
