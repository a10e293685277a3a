//! The cost of a strategy, counted from the schedules of all PEs without running them. Invariant: rounds are
//! reported only for schedules that the schedule checker has verified, and pairs of PEs are those of all
//! roots.
//!
//! A word is a synchronisation word of 8 bytes. An array has the words of the operation that needs most, and
//! those of the synchronisation that frees the arrays. A pair has slots at the receiver, and a word at the
//! sender for acknowledgements; all of them are counted, although PEs that signal each other in turn use
//! two. In the steady state a receiver that never signals back sends one acknowledgement for each half of
//! its slots.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use anyhow::anyhow;
use pelago::coll::MAILBOX_BYTES;
use pelago::coll::check::{CheckOptions, check};
use pelago::coll::schedule::{Schedule, Step};
use pelago::coll::shape::{Operation, Shape};
use pelago::coll::sync_memory::PAIR_SLOTS;
use pelago::coll::table::Algorithm;
use serde::Serialize;

use super::strategy::{Parameters, Reuse, STRATEGIES, Strategy};

/// Size of a synchronisation word, in bytes.
pub const WORD_BYTES: u64 = 8;

/// The cost of an operation under a strategy. It is the average of many calls with the same root: messages
/// are counted for root 0, rounds for the worst root.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Communication {
    /// The operation.
    pub operation: &'static str,
    /// The algorithm.
    pub algorithm: &'static str,
    /// The longest chain of messages of the operation alone, for the worst root; releases are not on this
    /// chain.
    pub rounds: usize,
    /// The maximum number of messages of the operation that one PE sends.
    pub own_max: usize,
    /// The maximum number of messages that one PE sends, including releases and acknowledgements.
    pub messages_max: f64,
    /// The number of messages of all PEs, including releases and acknowledgements.
    pub messages_total: f64,
}

/// The cost of a strategy.
#[derive(Clone, Debug, Serialize)]
pub struct Count {
    /// Its name.
    pub strategy: &'static str,
    /// The number of PEs.
    pub pes: usize,
    /// The operations.
    pub operations: Vec<Communication>,
    /// The maximum number of PEs that signal one PE, over all operations and roots.
    pub in_neighbours_max: u64,
    /// The same for all PEs together.
    pub pairs: u64,
    /// The maximum number of synchronisation words of a PE.
    pub words_max: u64,
    /// The number of synchronisation words of all PEs.
    pub words_total: u64,
}

impl Count {
    /// The ratio of the words of all PEs to the paper's order.
    pub fn to_bound(&self, strategy: &Strategy, parameters: Parameters) -> f64 {
        self.words_total as f64 / (strategy.bound)(parameters, [self.pes as f64, log2(self.pes) as f64])
    }
}

/// The counts of all strategies for a number of PEs, two or more.
///
/// # Errors
/// If a schedule has a defect.
pub fn count(pes: usize, parameters: Parameters) -> anyhow::Result<Vec<Count>> {
    let mut known = HashMap::new();
    STRATEGIES.iter().map(|strategy| of_strategy(strategy, pes, parameters, &mut known)).collect()
}

/// The totals of the schedules of an algorithm, by rank for root 0, and over all roots.
#[derive(Clone)]
struct Amounts {
    rounds: usize,
    slots: usize,
    own: Vec<usize>,
    acknowledgements: Vec<f64>,
    pairs: Pairs,
}

fn of_strategy(
    strategy: &Strategy,
    pes: usize,
    parameters: Parameters,
    known: &mut HashMap<(&'static str, &'static str), Amounts>,
) -> anyhow::Result<Count> {
    let log = log2(pes);
    let is_pairwise = strategy.reuse == Reuse::Pairs;
    let release = match strategy.reuse {
        Reuse::Additional => log as f64,
        Reuse::Barrier => (parameters.releases() * log) as f64 / (parameters.collectives + 1) as f64,
        Reuse::Pairs => 0.0,
    };
    let mut pairs = Pairs::new(pes);
    let (mut operations, mut slots) = (Vec::new(), 0);
    for algorithm in strategy.algorithms() {
        let key = (algorithm.operation.name(), algorithm.name);
        let amounts = match known.entry(key) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => place.insert(amounts(algorithm, pes)?),
        };
        pairs.add(&amounts.pairs);
        slots = slots.max(amounts.slots);
        let acknowledgements = |rank: usize| if is_pairwise { amounts.acknowledgements[rank] } else { 0.0 };
        let messages = |rank: usize| amounts.own[rank] as f64 + release + acknowledgements(rank);
        operations.push(Communication {
            operation: key.0,
            algorithm: key.1,
            rounds: amounts.rounds,
            own_max: amounts.own.iter().copied().max().unwrap_or(0),
            messages_max: (0..pes).map(messages).fold(0.0, f64::max),
            messages_total: (0..pes).map(messages).sum(),
        });
    }
    let (received, sent) = (pairs.in_degrees(), pairs.out_degrees());
    let array = (slots + log) as u64;
    let words: Vec<u64> = match strategy.reuse {
        Reuse::Additional => vec![parameters.arrays as u64 * array; pes],
        Reuse::Barrier => vec![parameters.arrays_to_barrier() as u64 * array; pes],
        Reuse::Pairs => {
            received.iter().zip(&sent).map(|(received, sent)| received * PAIR_SLOTS as u64 + sent).collect()
        }
    };
    Ok(Count {
        strategy: strategy.name,
        pes,
        operations,
        in_neighbours_max: received.iter().copied().max().unwrap_or(0),
        pairs: received.iter().sum(),
        words_max: words.iter().copied().max().unwrap_or(0),
        words_total: words.iter().sum(),
    })
}

fn amounts(algorithm: &Algorithm, pes: usize) -> anyhow::Result<Amounts> {
    let element_bytes = size_of::<f64>();
    let shape = |rank, root| Shape { root, ..Shape::new(algorithm.operation, rank, pes, 1, element_bytes) };
    let roots = if algorithm.operation.is_rooted() { pes } else { 1 };
    let report = check(algorithm, &|rank| shape(rank, 0), &CheckOptions::default())
        .map_err(|defect| anyhow!("{} of {pes} PEs by {}: {defect}", algorithm.operation, algorithm.name))?;
    let mut rounds = report.rounds;
    let mut parents = vec![None; pes];
    let mut pairs = Pairs::new(pes);
    let mut signals = HashMap::<(usize, usize), usize>::new();
    let mut own = vec![0; pes];
    for root in 0..roots {
        parents.fill(None);
        for (rank, own) in own.iter_mut().enumerate() {
            let schedule = algorithm.schedule(&shape(rank, root), MAILBOX_BYTES);
            for to in signalled(&schedule) {
                pairs.insert(rank, to);
                parents[to] = Some(rank);
                if root == 0 {
                    *signals.entry((rank, to)).or_default() += 1;
                }
            }
            if root == 0 {
                *own = schedule.counts().messages;
            }
        }
        if algorithm.operation == Operation::Broadcast {
            rounds = rounds.max(depth(&parents));
        }
    }
    let mut acknowledgements = vec![0.0; pes];
    for (&(from, to), &count) in &signals {
        if !signals.contains_key(&(to, from)) {
            acknowledgements[to] += count as f64 / (PAIR_SLOTS / 2) as f64;
        }
    }
    Ok(Amounts { rounds, slots: report.slots_end, own, acknowledgements, pairs })
}

/// The depth of a tree, which is given by each rank's parent.
fn depth(parents: &[Option<usize>]) -> usize {
    let mut depths = vec![None; parents.len()];
    let mut way = Vec::new();
    for rank in 0..parents.len() {
        let mut at = rank;
        while let (None, Some(parent)) = (depths[at], parents[at]) {
            way.push(at);
            at = parent;
        }
        let mut reached = *depths[at].get_or_insert(0);
        while let Some(below) = way.pop() {
            reached += 1;
            depths[below] = Some(reached);
        }
    }
    depths.into_iter().flatten().max().unwrap_or(0)
}

/// The ranks that a schedule signals, once for each signal.
pub fn signalled(schedule: &Schedule) -> impl Iterator<Item = usize> {
    schedule.steps.iter().filter_map(|step| match *step {
        Step::Put { to, signal: Some(_), .. } | Step::Signal { to, .. } => Some(to),
        _ => None,
    })
}

/// Rounds of a dissemination among `n`.
pub fn log2(n: usize) -> usize {
    n.next_power_of_two().trailing_zeros() as usize
}

/// A set of ordered pairs of PEs, as bits.
#[derive(Clone)]
pub struct Pairs {
    pes: usize,
    words: usize,
    bits: Vec<u64>,
}

impl Pairs {
    /// The empty set of pairs of `pes` PEs.
    pub fn new(pes: usize) -> Self {
        let words = pes.div_ceil(64);
        Pairs { pes, words, bits: vec![0; pes * words] }
    }

    /// Adds a pair.
    pub fn insert(&mut self, from: usize, to: usize) {
        self.bits[from * self.words + to / 64] |= 1 << (to % 64);
    }

    /// Whether the set contains the pair.
    pub fn contains(&self, from: usize, to: usize) -> bool {
        self.bits[from * self.words + to / 64] & 1 << (to % 64) != 0
    }

    fn add(&mut self, other: &Pairs) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(own, bits)| *own |= bits);
    }

    /// For each PE, the number of other PEs that it sends to.
    pub fn out_degrees(&self) -> Vec<u64> {
        let ones = |row: &[u64]| row.iter().map(|word| u64::from(word.count_ones())).sum();
        self.bits.chunks(self.words).map(ones).collect()
    }

    /// For each PE, the number of other PEs that send to it.
    pub fn in_degrees(&self) -> Vec<u64> {
        let senders = |to| (0..self.pes).filter(|&from| self.contains(from, to)).count() as u64;
        (0..self.pes).map(senders).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: Parameters = Parameters { arrays: 8, collectives: 8 };

    fn counted(pes: usize) -> Vec<Count> {
        count(pes, PARAMETERS).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn memory_grows_as_the_schedules_say() {
        for pes in [2, 4, 8, 64, 256] {
            let log = log2(pes) as u64;
            let words: Vec<_> = counted(pes).iter().map(|count| count.words_max).collect();
            // All operations use the edges of the hypercube, in both directions.
            let doubling = (PAIR_SLOTS as u64 + 1) * log;
            assert_eq!(words[..3], [8 * 2 * log, 8 * 2 * log, doubling], "{pes} PEs");
            let edges = words[4];
            assert!(edges <= 3 * (PAIR_SLOTS as u64 + 1), "{pes} PEs: {edges}");
        }
    }

    /// A balanced tree at each root has edges over half of all distances; the tree at PE 0 of the operations
    /// without a root adds edges at few PEs. So the number of pairs is of the order n^2.
    #[test]
    fn a_tree_of_fixed_structure_needs_memory_of_order_n_squared() {
        for pes in [4, 16, 64, 256] {
            let Count { in_neighbours_max, pairs, .. } = &counted(pes)[3];
            let half = pes as u64 / 2;
            assert!((half..=half + 3).contains(in_neighbours_max), "{pes} PEs: {in_neighbours_max}");
            let of_trees = pes as u64 * half;
            assert!((of_trees..of_trees + 2 * pes as u64).contains(pairs), "{pes} PEs: {pairs} pairs");
        }
    }

    #[test]
    fn releases_and_acknowledgements_are_messages() {
        let counts = counted(64);
        let of = |strategy: usize, operation: usize| &counts[strategy].operations[operation];
        assert_eq!((of(0, 0).rounds, of(0, 0).messages_max), (6, 12.0));
        assert_eq!(of(1, 0).messages_max, 6.0 + 6.0 / 9.0);
        // An exchange signals in both directions and needs no acknowledgement.
        assert_eq!((of(2, 0).messages_max, of(2, 2).messages_max), (6.0, 6.0));
        // A broadcast: 63 puts, each with a quarter of an acknowledgement.
        assert_eq!(of(4, 1).messages_total, 63.0 * 1.25);
    }

    /// A tree that is the same for all roots is deeper for the other roots than for its own.
    #[test]
    fn rounds_are_those_of_the_worst_root() {
        for pes in [2, 4, 8, 16] {
            let edges = &counted(pes)[4].operations[1];
            let worst = (0..pes).map(|root| {
                let algorithm = STRATEGIES[4].algorithms().nth(1).unwrap();
                let shape = |rank| Shape { root, ..Shape::new(algorithm.operation, rank, pes, 1, 8) };
                check(algorithm, &shape, &CheckOptions::default()).unwrap().rounds
            });
            assert_eq!(Some(edges.rounds), worst.max(), "{pes} PEs");
        }
    }

    #[test]
    fn pairs_are_counted_from_both_ends() {
        let mut pairs = Pairs::new(70);
        for (from, to) in [(0, 69), (1, 69), (0, 69), (69, 0)] {
            pairs.insert(from, to);
        }
        assert_eq!((pairs.out_degrees()[0], pairs.in_degrees()[69], pairs.in_degrees()[0]), (1, 2, 1));
        assert!(pairs.contains(1, 69) && !pairs.contains(69, 1));
    }
}
