//! The choice of an algorithm: what is set by hand, else what suits the synchronisation memory, else what was
//! measured, else by bytes and members. What an algorithm cannot do is left to the next in this order.
//!
//! Invariant: all members choose alike, from what they all know: the shape, the settings and the file of
//! measurements, which are those of the whole job.

use super::reduction::Combiner;
use super::schedule::Schedule;
use super::shape::{Blocks, Operation, Shape, Tuning};
use super::table::{Algorithm, Fold, Graph, algorithms, find};
use super::tuning::Rules;
use crate::error::{ErrorKind, Result};
use crate::world::World;
use pelago_boot::{SettingError, Settings, SyncMemoryKind, settings_table};
use std::collections::BTreeMap;

/// The name of algorithms in two levels, and of the form of blocking operations that is.
const HIERARCHICAL: &str = "hierarchical";
/// The setting that names algorithms.
const FORCED: &str = "PELAGO_COLL";
/// Up to here a block is small: rounds count more than bytes.
const SMALL_BYTES: usize = 4 << 10;
/// From here on bytes count more than anything.
const LARGE_BYTES: usize = 64 << 10;

/// What the choice depends on beside the shape.
#[derive(Debug, Default)]
pub struct Preferences {
    forced: BTreeMap<Operation, &'static Algorithm>,
    is_deterministic: bool,
    graph: Option<Graph>,
    rules: Rules,
}

/// An algorithm that was chosen, with the numbers that tune it.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Those of the tuning file if it names this algorithm, whoever chose it.
    pub tuning: Tuning,
    /// Who chose it.
    pub reason: Reason,
}

/// Why an algorithm was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `PELAGO_COLL` names it.
    Forced,
    /// Its graph is that of `PELAGO_SYNC_MEMORY`.
    Graph,
    /// The file that `PELAGO_COLL_TUNING` names has it.
    Measured,
    /// By bytes and members, as thresholds in the runtime have it.
    BuiltIn,
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
    /// What the settings say.
    ///
    /// # Errors
    /// If `PELAGO_COLL` names what does not exist, and those of [`Rules::load`].
    pub fn new(settings: &Settings) -> Result<Preferences, SettingError> {
        let forced = forced(settings.coll_algorithms.as_deref().unwrap_or(""))?;
        let rules = Rules::load(settings.coll_tuning.as_deref())?;
        let graph = match settings.sync_memory {
            SyncMemoryKind::PairwiseStructure => Some(Graph::TreeStructure),
            SyncMemoryKind::PairwiseEdges => Some(Graph::TreeEdges),
            _ => None,
        };
        Ok(Preferences { forced, is_deterministic: settings.deterministic, graph, rules })
    }

    /// Whether a blocking operation of a team that spans nodes is done in two levels, directly within nodes,
    /// and not by a schedule of all members: unless another algorithm is set or was measured to be better.
    pub(crate) fn wants_levels(&self, shape: &Shape) -> bool {
        let is_hierarchical = |algorithm: &Algorithm| algorithm.name == HIERARCHICAL;
        match (self.forced.get(&shape.operation), self.rules.find(shape)) {
            (Some(algorithm), _) => is_hierarchical(algorithm),
            (None, Some(rule)) => self.graph.is_none() && is_hierarchical(rule.algorithm),
            (None, None) => self.graph.is_none(),
        }
    }

    /// Whether elements must be combined in the order of ranks, so that results do not depend on the form.
    pub(crate) fn keeps_ranks(&self, combiner: &Combiner) -> bool {
        self.is_deterministic && !combiner.is_associative()
    }

    /// Whether `PELAGO_SYNC_MEMORY` asks for algorithms of a certain graph.
    pub(super) fn has_graph(&self) -> bool {
        self.graph.is_some()
    }

    /// The algorithm for a shape, and for what it combines elements with; the same at all members.
    pub fn choose(&self, shape: &Shape, combiner: Option<&Combiner>) -> Option<Choice> {
        // What is associative and commutative has the same result in any order.
        let needs_ranks = combiner.is_some_and(|combiner| self.keeps_ranks(combiner));
        let needs_order = combiner.is_some_and(|combiner| !combiner.is_commutative());
        let is_possible = |algorithm: &&'static Algorithm| {
            let is_right = match algorithm.fold {
                Fold::None | Fold::Ranks => true,
                Fold::Tree => !needs_ranks,
                Fold::Any => !needs_ranks && !needs_order,
            };
            is_right && (algorithm.restriction)(shape).is_none()
        };
        let of_operation = || algorithms().filter(|algorithm| algorithm.operation == shape.operation);
        let rule = self.rules.find(shape);
        let forced = || self.forced.get(&shape.operation).copied().filter(is_possible);
        let with_graph = || {
            let graph = self.graph?;
            of_operation().filter(|algorithm| algorithm.graph == graph).find(is_possible)
        };
        let measured = || rule.map(|rule| rule.algorithm).filter(is_possible);
        let named = || names(shape).iter().filter_map(|name| find(shape.operation, name)).find(is_possible);
        let because = |reason| move |algorithm| (algorithm, reason);
        let (algorithm, reason) = forced()
            .map(because(Reason::Forced))
            .or_else(|| with_graph().map(because(Reason::Graph)))
            .or_else(|| measured().map(because(Reason::Measured)))
            .or_else(|| named().or_else(|| of_operation().find(is_possible)).map(because(Reason::BuiltIn)))?;
        let tuned = rule.filter(|rule| rule.algorithm.name == algorithm.name);
        Some(Choice { algorithm, tuning: tuned.map_or(shape.tuning, |rule| rule.tuning), reason })
    }
}

/// The algorithms that a value of `PELAGO_COLL` names.
///
/// # Errors
/// If it names what does not exist.
pub fn forced(text: &str) -> Result<BTreeMap<Operation, &'static Algorithm>, SettingError> {
    let mut forced = BTreeMap::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let found = entry
            .split_once('=')
            .and_then(|(operation, name)| find(Operation::from_name(operation.trim())?, name.trim()));
        let algorithm = found.ok_or_else(|| SettingError::Value {
            variable: FORCED,
            value: text.to_owned(),
            accepts: accepted(),
        })?;
        forced.insert(algorithm.operation, algorithm);
    }
    Ok(forced)
}

/// What the setting accepts, as its row has it.
fn accepted() -> &'static str {
    let row = settings_table().iter().find(|row| row.name == FORCED);
    row.map_or("operation=algorithm", |row| row.accepts)
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
        Operation::Scatter | Operation::Gather if is_small => &["binomial", "linear"],
        Operation::Scatter | Operation::Gather => &["linear"],
        Operation::AllGather if shape.blocks != Blocks::Equal => &["bruck", "ring", "linear"],
        Operation::AllGather if is_small => &["recursive_doubling", "bruck", "ring"],
        Operation::AllGather => &["neighbour_exchange", "ring"],
        Operation::AllToAll if bytes <= 256 && n > 4 => &["bruck", "linear"],
        Operation::AllToAll if is_large => &["pairwise", "linear"],
        Operation::AllToAll => &["linear", "pairwise"],
        Operation::Reduce if has_nodes => &["hierarchical", "binomial"],
        Operation::Reduce => &["binomial", "linear"],
        Operation::AllReduce if has_nodes => &["hierarchical", "recursive_doubling"],
        // Two ranks send as many bytes either way, and doubling has one round.
        Operation::AllReduce if is_small || n == 2 => &["recursive_doubling"],
        Operation::AllReduce if is_large && n > 8 => &["ring", "rabenseifner"],
        Operation::AllReduce => &["rabenseifner", "recursive_doubling"],
        Operation::ReduceScatter => &["recursive_halving", "ring", "linear"],
        Operation::InclusiveScan | Operation::ExclusiveScan => &["recursive_doubling", "linear"],
    }
}

/// The algorithm for an operation of a team.
///
/// # Errors
/// If there is none that can do it.
pub(crate) fn choose(world: &World, shape: &Shape, combiner: Option<&Combiner>) -> Result<Choice> {
    world.collectives.preferences().choose(shape, combiner).ok_or_else(|| {
        let operation = shape.operation.name();
        let reason = "no algorithm can do this (`pelago coll list`); unset PELAGO_DETERMINISTIC".to_owned();
        ErrorKind::BadCollective { me: world.my_pe(), operation, reason }.into()
    })
}

#[cfg(test)]
mod tests {
    use super::super::reduction::ReduceOp;
    use super::*;

    fn preferences(pairs: &[(&str, &str)]) -> Preferences {
        let pairs = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Preferences::new(&Settings::from_pairs(pairs).unwrap()).unwrap()
    }

    fn chosen(preferences: &Preferences, shape: &Shape) -> (&'static str, Reason, Tuning) {
        let sum = Combiner::of::<f64>(ReduceOp::Sum).filter(|_| shape.operation.combines());
        let choice = preferences.choose(shape, sum.as_ref()).unwrap();
        (choice.algorithm.name, choice.reason, choice.tuning)
    }

    #[test]
    fn what_is_set_goes_before_the_graph_the_file_and_the_thresholds() {
        let path = std::env::temp_dir().join(format!("pelago-select-{}.toml", std::process::id()));
        let text = "[[broadcast]]\npes = 4\nalgorithm = 'k_nomial'\nradix = 2\n";
        std::fs::write(&path, text).unwrap();
        let file = ("PELAGO_COLL_TUNING", path.to_str().unwrap());
        let set = ("PELAGO_COLL", "broadcast=linear");
        let same = ("PELAGO_COLL", "broadcast=k_nomial");
        let edges = ("PELAGO_SYNC_MEMORY", "pairwise-edges");
        let plain = Tuning::default();
        let tuned = Tuning { radix: 2, ..plain };
        let cases: [(&[_], _); 7] = [
            (&[], ("binomial", Reason::BuiltIn, plain)),
            (&[file], ("k_nomial", Reason::Measured, tuned)),
            (&[edges], ("fixed_tree", Reason::Graph, plain)),
            (&[file, edges], ("fixed_tree", Reason::Graph, plain)),
            (&[file, set], ("linear", Reason::Forced, plain)),
            (&[file, same], ("k_nomial", Reason::Forced, tuned)),
            (&[file, edges, set], ("linear", Reason::Forced, plain)),
        ];
        let shape = |n| Shape::new(Operation::Broadcast, 0, n, 1, 8);
        for (pairs, expected) in cases {
            assert_eq!(chosen(&preferences(pairs), &shape(4)), expected, "{pairs:?}");
        }
        let of_file = preferences(&[file]);
        assert_eq!(chosen(&of_file, &shape(5)).1, Reason::BuiltIn, "the rule is for four PEs at most");
        let choice = of_file.choose(&shape(4), None).unwrap();
        let expected = choice.algorithm.schedule(&Shape { tuning: tuned, ..shape(4) }, 240);
        let with_default = choice.algorithm.schedule(&shape(4), 240);
        let found = choice.schedule(&shape(4), 240);
        assert_eq!(found.steps, expected.steps, "the schedule is made with the radix of the file");
        assert_ne!(found.steps, with_default.steps);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_cannot_be_done_is_left_to_the_next() {
        let mut preferences = preferences(&[("PELAGO_COLL", "all_gather=neighbour_exchange")]);
        preferences.rules = Rules::parse(
            "[[all_gather]]\nalgorithm = 'recursive_doubling'\n[[reduce]]\nalgorithm = 'binomial'",
        )
        .unwrap();
        let all_gather = |n| Shape::new(Operation::AllGather, 0, n, 1 << 20, 8);
        assert_eq!(chosen(&preferences, &all_gather(6)).1, Reason::Forced);
        assert_eq!(chosen(&preferences, &all_gather(7)).0, "ring", "neither odd nor no power of two");
        let reduce = Shape::new(Operation::Reduce, 0, 4, 1, 8);
        assert_eq!(chosen(&preferences, &reduce).1, Reason::Measured);
        preferences.is_deterministic = true;
        assert_eq!(chosen(&preferences, &reduce), ("linear", Reason::BuiltIn, Tuning::default()));
    }

    #[test]
    fn schedules_know_nodes_where_ranks_share_them() {
        let preferences = Preferences::default();
        let all_reduce = |nodes: &[u32]| Shape {
            nodes: nodes.iter().copied().collect(),
            ..Shape::new(Operation::AllReduce, 0, nodes.len(), 1 << 13, 8)
        };
        let name = |nodes: &[u32]| chosen(&preferences, &all_reduce(nodes)).0;
        assert_eq!(name(&[0, 0, 1, 1]), "hierarchical");
        assert_eq!(name(&[0, 1, 2, 3]), "rabenseifner", "each rank has a node of its own");
        assert_eq!(name(&[0, 1]), "recursive_doubling", "two ranks have one round");
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
