//! The choice of an algorithm: the one that is set by hand, else one that suits the synchronisation memory,
//! else the one that was measured to be best, else one by bytes and members. If an algorithm cannot perform
//! an operation, the next one in this order is tried.
//!
//! Invariant: all members make the same choice, from data that they all have: the shape, the settings and
//! the tuning file, which are the same in the whole job.

use crate::algorithm::{Algorithm, Fold, Graph};
use crate::fnv::fnv1a;
use crate::nodes::Nodes;
use crate::schedule::Schedule;
use crate::shape::{Blocks, Operation, Shape, Tuning};
use crate::table::{algorithms, find};
use crate::tuning::Rules;
use std::collections::BTreeMap;
use std::fmt;

/// The name of algorithms in two levels, and of the form in two levels of blocking operations.
const HIERARCHICAL: &str = "hierarchical";
/// Up to this size a block is small: rounds matter more than bytes.
const SMALL_BYTES: usize = 4 << 10;
/// From this size on bytes matter most.
const LARGE_BYTES: usize = 64 << 10;
/// From this size on, and from this number of ranks on a node on, an all-reduce goes in lanes: before, its
/// messages are short, and their number decides.
const LANES_BYTES: usize = 256 << 10;
const LANES: usize = 4;
/// From this size on an all-reduce of two ranks exchanges halves.
const HALVED_BYTES: usize = 512 << 10;

/// The input of the choice beside the shape; the same at all members.
#[derive(Debug, Default)]
pub struct Preferences {
    /// The algorithms that are set by hand; see [`forced`].
    pub forced: BTreeMap<Operation, &'static Algorithm>,
    /// Whether results must not depend on the algorithm.
    pub is_deterministic: bool,
    /// The graph that suits the synchronisation memory, if not every graph does.
    pub graph: Option<Graph>,
    /// The rules that were measured.
    pub rules: Rules,
}

/// The laws that hold for the function that combines two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Laws {
    /// Whether the result is the same, bit for bit, however operands are grouped.
    pub is_associative: bool,
    /// Whether operands may change places.
    pub is_commutative: bool,
}

/// An algorithm that was chosen, with the numbers that tune it.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// The numbers of the tuning file if it names this algorithm, for every [`Reason`].
    pub tuning: Tuning,
    /// The reason for the choice.
    pub reason: Reason,
}

/// The reason why an algorithm was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `PELAGO_COLL` names it.
    Forced,
    /// Its graph is that of `PELAGO_SYNC_MEMORY`.
    Graph,
    /// The file that `PELAGO_COLL_TUNING` names has a rule for it.
    Measured,
    /// By bytes and members, with the thresholds of the runtime.
    BuiltIn,
    /// It can take the place of the choice; see [`Preferences::candidates`].
    Alternative,
}

impl Choice {
    /// The schedule of a rank. A mailbox holds `mailbox_bytes` bytes.
    pub fn schedule(&self, shape: &Shape, mailbox_bytes: usize) -> Schedule {
        match self.tuning == shape.tuning {
            true => self.algorithm.schedule(shape, mailbox_bytes),
            false => {
                let tuned = Shape { tuning: self.tuning, ..shape.clone() };
                self.algorithm.schedule(&tuned, mailbox_bytes)
            }
        }
    }
}

impl Preferences {
    /// A number that differs, most likely, if preferences do, or `others`: members with others would choose
    /// algorithms that do not fit together.
    pub fn fingerprint(&self, others: &dyn fmt::Debug) -> u64 {
        let Preferences { forced, is_deterministic, graph, rules } = self;
        let forced = forced.iter().map(|(operation, algorithm)| format!("{operation} {} ", algorithm.name));
        let text =
            format!("{others:?} {is_deterministic} {graph:?} {}{}", forced.collect::<String>(), rules.text());
        fnv1a(text.bytes())
    }

    /// Whether a blocking operation of a team that spans nodes is done in two levels, directly within nodes,
    /// and not by a schedule of all members. This is the case unless another algorithm is set or was
    /// measured to be better.
    pub fn wants_levels(&self, shape: &Shape) -> bool {
        let is_hierarchical = |algorithm: &Algorithm| algorithm.name == HIERARCHICAL;
        // An algorithm that cannot do the call decides nothing.
        let serves = |algorithm: &&'static Algorithm| (algorithm.restriction)(shape).is_none();
        let forced = self.forced.get(&shape.operation).copied().filter(serves);
        match (forced, self.rules.find(shape).map(|rule| rule.algorithm).filter(serves)) {
            (Some(algorithm), _) => is_hierarchical(algorithm),
            (None, Some(algorithm)) => self.graph.is_none() && is_hierarchical(algorithm),
            (None, None) => self.graph.is_none(),
        }
    }

    /// Whether all operations of ranks on these nodes [want levels](Preferences::wants_levels): nothing was
    /// set or measured for any.
    pub fn always_wants_levels(&self, nodes: &Nodes) -> bool {
        self.forced.is_empty() && self.graph.is_none() && !self.rules.may_hold(nodes)
    }

    /// Whether elements must be combined in the order of ranks, so that results do not depend on the form.
    #[inline]
    pub fn keeps_ranks(&self, laws: Laws) -> bool {
        self.is_deterministic && !laws.is_associative
    }

    /// The algorithm for a shape, and for the laws of the function that combines elements, if there is one;
    /// the same at all members. `None` if no algorithm can perform the operation.
    pub fn choose(&self, shape: &Shape, laws: Option<Laws>) -> Option<Choice> {
        let is_possible = |algorithm: &&'static Algorithm| self.permits(algorithm, shape, laws);
        let of_operation = || algorithms().filter(|algorithm| algorithm.operation == shape.operation);
        let rule = self.rules.find(shape);
        let forced = || self.forced.get(&shape.operation).copied().filter(is_possible);
        let with_graph =
            |graph: Graph| of_operation().filter(|algorithm| algorithm.graph.serves(graph)).find(is_possible);
        // Trees are taken for every block. Recursive doubling comes after what was measured, and only where
        // rounds matter more than bytes. Of blocks that differ, ranks know different lengths.
        let with_tree = || self.graph.filter(|&graph| graph != Graph::Doubling).and_then(with_graph);
        let doubles = shape.blocks == Blocks::Equal && shape.block_bytes() <= SMALL_BYTES;
        let with_doubling =
            || self.graph.filter(|&graph| doubles && graph == Graph::Doubling).and_then(with_graph);
        let measured = || rule.map(|rule| rule.algorithm).filter(is_possible);
        let named = || names(shape).iter().filter_map(|name| find(shape.operation, name)).find(is_possible);
        let because = |reason| move |algorithm| (algorithm, reason);
        let (algorithm, reason) = forced()
            .map(because(Reason::Forced))
            .or_else(|| with_tree().map(because(Reason::Graph)))
            .or_else(|| measured().map(because(Reason::Measured)))
            .or_else(|| with_doubling().map(because(Reason::Graph)))
            .or_else(|| named().or_else(|| of_operation().find(is_possible)).map(because(Reason::BuiltIn)))?;
        let tuned = rule.filter(|rule| rule.algorithm.name == algorithm.name);
        Some(Choice { algorithm, tuning: tuned.map_or(shape.tuning, |rule| rule.tuning), reason })
    }

    /// Whether an algorithm can perform the operation of a shape, with a right result by the laws of the
    /// function that combines elements and by the settings.
    pub(crate) fn permits(&self, algorithm: &Algorithm, shape: &Shape, laws: Option<Laws>) -> bool {
        self.obstacle(algorithm, shape, laws).is_none()
    }

    /// The reason why an algorithm cannot perform the operation of a shape, or not with a right result by the
    /// laws of the function that combines elements and by the settings.
    pub fn obstacle(&self, algorithm: &Algorithm, shape: &Shape, laws: Option<Laws>) -> Option<&'static str> {
        // An associative and commutative function has the same result in any order.
        let needs_ranks = laws.is_some_and(|laws| self.keeps_ranks(laws));
        let needs_order = laws.is_some_and(|laws| !laws.is_commutative);
        match algorithm.fold {
            Fold::Tree | Fold::Any if needs_ranks => {
                Some("combines in another order than that of the PEs (PELAGO_DETERMINISTIC=on)")
            }
            Fold::Any if needs_order => Some("changes the places of operands, which are not commutative"),
            _ => (algorithm.restriction)(shape),
        }
    }
}

/// How the choice by thresholds counts a block of this shape.
pub fn size_class(shape: &Shape) -> String {
    match shape.block_bytes() {
        bytes if bytes <= SMALL_BYTES => format!("small (up to {SMALL_BYTES} B), so that rounds decide"),
        bytes if bytes >= LARGE_BYTES => format!("large (from {LARGE_BYTES} B), so that bytes decide"),
        _ => format!("between small (up to {SMALL_BYTES} B) and large (from {LARGE_BYTES} B)"),
    }
}

/// The algorithms that a text such as `broadcast=chain,barrier=tree` names; `None` if it names an operation
/// or an algorithm that does not exist.
pub fn forced(text: &str) -> Option<BTreeMap<Operation, &'static Algorithm>> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let algorithm = |entry: &str| {
        let (operation, name) = entry.split_once('=')?;
        find(Operation::from_name(operation.trim())?, name.trim())
    };
    entries.map(|entry| algorithm(entry).map(|found| (found.operation, found))).collect()
}

/// The names of the algorithms to try, the best first.
fn names(shape: &Shape) -> &'static [&'static str] {
    let (n, bytes) = (shape.n, shape.block_bytes());
    let has_nodes = shape.nodes.are_shared();
    let (is_small, is_large) = (bytes <= SMALL_BYTES, bytes >= LARGE_BYTES);
    match shape.operation {
        Operation::Barrier if has_nodes => &["hierarchical", "dissemination"],
        Operation::Barrier => &["dissemination"],
        Operation::Broadcast if has_nodes => &["hierarchical", "binomial"],
        Operation::Broadcast if is_large && n > 8 => &["scatter_all_gather", "chain", "binomial"],
        Operation::Broadcast if is_large && n > 2 => &["chain", "binomial"],
        Operation::Broadcast => &["binomial"],
        Operation::Scatter | Operation::Gather if shape.blocks != Blocks::Equal => &["linear"],
        Operation::Scatter | Operation::Gather if is_small => &["binomial", "linear"],
        Operation::Scatter | Operation::Gather => &["linear"],
        Operation::AllGather if shape.blocks != Blocks::Equal => &["bruck", "ring", "linear"],
        Operation::AllGather if is_small => &["recursive_doubling", "bruck", "ring"],
        Operation::AllGather if has_nodes => &["lanes", "neighbour_exchange", "ring"],
        Operation::AllGather => &["neighbour_exchange", "ring"],
        Operation::AllToAll if bytes <= 256 && n > 4 => &["bruck", "linear"],
        // On a node nobody waits for a link.
        Operation::AllToAll if is_large && !shape.nodes.is_empty() => &["pairwise", "linear"],
        Operation::AllToAll => &["linear", "pairwise"],
        Operation::Reduce if has_nodes => &["hierarchical", "binomial"],
        Operation::Reduce => &["binomial", "linear"],
        Operation::AllReduce if has_nodes && bytes >= LANES_BYTES && shape.groups().most() >= LANES => {
            &["lanes", "hierarchical", "recursive_doubling"]
        }
        Operation::AllReduce if has_nodes => &["hierarchical", "recursive_doubling"],
        // Two ranks send as many bytes either way. Doubling has one round; halves stay in the cache.
        Operation::AllReduce if is_small || n == 2 && bytes < HALVED_BYTES => &["recursive_doubling"],
        // A rank of a ring waits for each of the others in turn.
        Operation::AllReduce if is_large && n > 8 && !(shape.nodes.is_empty() && n.is_power_of_two()) => {
            &["ring", "rabenseifner"]
        }
        Operation::AllReduce => &["rabenseifner", "recursive_doubling"],
        Operation::ReduceScatter => &["recursive_halving", "ring", "linear"],
        Operation::InclusiveScan | Operation::ExclusiveScan if has_nodes && shape.groups().suit_chains() => {
            &["linear", "recursive_doubling"]
        }
        Operation::InclusiveScan | Operation::ExclusiveScan => &["recursive_doubling", "linear"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(preferences: &Preferences, shape: &Shape) -> (&'static str, Reason, Tuning) {
        // The laws of sums of floating-point numbers.
        let sum = Laws { is_associative: false, is_commutative: true };
        let choice = preferences.choose(shape, shape.operation.combines().then_some(sum)).unwrap();
        (choice.algorithm.name, choice.reason, choice.tuning)
    }

    #[test]
    fn texts_name_algorithms_that_exist() {
        let named = forced(" broadcast=chain , barrier = tree,,broadcast=linear").unwrap();
        let named: Vec<_> = named.values().map(|algorithm| algorithm.name).collect();
        assert_eq!(named, ["tree", "linear"], "the last of an operation holds");
        assert!(forced("").unwrap().is_empty());
        for text in ["broadcast", "broadcast=ring", "broadcst=chain", "=", "barrier=tree;broadcast=chain"] {
            assert!(forced(text).is_none(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_left_to_the_next() {
        let rules = "[[all_gather]]\nalgorithm = 'recursive_doubling'\n[[reduce]]\nalgorithm = 'binomial'";
        let mut preferences = Preferences {
            forced: forced("all_gather=neighbour_exchange").unwrap(),
            rules: Rules::parse(rules).unwrap(),
            ..Preferences::default()
        };
        let all_gather = |n| Shape::new(Operation::AllGather, 0, n, 1 << 20, 8);
        assert_eq!(chosen(&preferences, &all_gather(6)).1, Reason::Forced);
        assert_eq!(chosen(&preferences, &all_gather(7)).0, "ring", "neither odd nor no power of two");
        let reduce = Shape::new(Operation::Reduce, 0, 4, 1, 8);
        assert_eq!(chosen(&preferences, &reduce).1, Reason::Measured);
        preferences.is_deterministic = true;
        assert_eq!(chosen(&preferences, &reduce), ("linear", Reason::BuiltIn, Tuning::default()));
    }

    #[test]
    fn each_graph_has_its_algorithms() {
        let names = |graph| {
            let preferences = Preferences { graph: Some(graph), ..Preferences::default() };
            [Operation::Barrier, Operation::Broadcast, Operation::Reduce, Operation::AllReduce]
                .map(|operation| chosen(&preferences, &Shape::new(operation, 0, 6, 1, 8)).0)
        };
        assert_eq!(names(Graph::Doubling), ["hypercube", "doubling", "binomial", "hypercube"]);
        assert_eq!(
            names(Graph::TreeStructure),
            ["fixed_tree", "balanced_tree", "balanced_tree", "fixed_tree"]
        );
        assert_eq!(names(Graph::TreeEdges), ["fixed_tree"; 4]);
        let doubling = Preferences { graph: Some(Graph::Doubling), ..Preferences::default() };
        let large = Shape::new(Operation::AllReduce, 0, 6, 1 << 20, 8);
        assert_eq!(chosen(&doubling, &large).1, Reason::BuiltIn, "bytes matter more than edges");
        let in_order = Laws { is_associative: true, is_commutative: false };
        let ordered = Shape::new(Operation::AllReduce, 0, 6, 1, 8);
        let choice = doubling.choose(&ordered, Some(in_order)).unwrap();
        assert_eq!(choice.algorithm.name, "recursive_doubling", "operands keep their order");
    }

    #[test]
    fn schedules_know_nodes_where_ranks_share_them() {
        let preferences = Preferences::default();
        let all_reduce = |nodes: &[u32], count: usize| Shape {
            nodes: nodes.iter().copied().collect(),
            ..Shape::new(Operation::AllReduce, 0, nodes.len(), count, 8)
        };
        let name = |nodes: &[u32]| chosen(&preferences, &all_reduce(nodes, 1 << 13)).0;
        let large = |nodes: &[u32]| chosen(&preferences, &all_reduce(nodes, 1 << 15)).0;
        assert_eq!(name(&[0, 0, 1, 1]), "hierarchical");
        assert_eq!(large(&[0, 0, 1, 1]), "hierarchical", "there are two lanes");
        assert_eq!(large(&[0, 0, 0, 0, 1, 1, 1, 1]), "lanes");
        assert_eq!(large(&[0, 0, 0, 0, 1, 1, 1]), "hierarchical", "the nodes differ in size");
        assert_eq!(name(&[0, 1, 2, 3]), "rabenseifner", "each rank has a node of its own");
        assert_eq!(name(&[0, 1]), "recursive_doubling", "two ranks have one round");
        let scan = |nodes: &[u32]| {
            let shape = Shape { operation: Operation::ExclusiveScan, ..all_reduce(nodes, 1) };
            chosen(&preferences, &shape).0
        };
        assert_eq!(scan(&[0, 0, 1, 1]), "linear", "one message goes from node to node");
        assert_eq!(scan(&[0, 1, 0, 1]), "recursive_doubling", "a chain would cross three times");
        assert_eq!(scan(&[0, 1, 2, 3]), "recursive_doubling");
        let blocks = |n: u32, size| (0..n).map(|rank| rank / size).collect::<Vec<_>>();
        assert_eq!(scan(&blocks(32, 8)), "linear");
        assert_eq!(scan(&blocks(64, 16)), "recursive_doubling", "a chain would be too long");
        assert_eq!(scan(&blocks(10, 2)), "recursive_doubling", "a chain would cross four times");
    }

    #[test]
    fn there_is_a_choice_for_every_operation_and_size() {
        let preferences = Preferences::default();
        for operation in Operation::ALL {
            for (n, count) in (1..20).flat_map(|n| [0, 1, 1 << 10, 1 << 20].map(|count| (n, count))) {
                assert_eq!(chosen(&preferences, &Shape::new(operation, 0, n, count, 8)).1, Reason::BuiltIn);
            }
        }
    }
}
