//! The choice of an algorithm: what is set by hand, else what was measured, else by bytes and members.
//!
//! Invariant: all members choose alike, from what they all know: the shape, the settings and the file of
//! measurements, which are those of the whole job.

use super::reduction::Combiner;
use super::shape::{Blocks, Operation, Shape};
use super::table::{Algorithm, Fold, Graph, algorithms, find};
use crate::error::{ErrorKind, Result};
use crate::world::World;
use pelago_boot::{SettingError, Settings, SyncMemoryKind};
use std::collections::BTreeMap;

/// Up to here a block is small: rounds count more than bytes.
const SMALL_BYTES: usize = 4 << 10;
/// From here on bytes count more than anything.
const LARGE_BYTES: usize = 64 << 10;

/// What the choice depends on beside the shape.
#[derive(Debug, Default)]
pub(crate) struct Preferences {
    forced: BTreeMap<Operation, &'static Algorithm>,
    is_deterministic: bool,
    graph: Option<Graph>,
}

impl Preferences {
    /// What the settings say.
    ///
    /// # Errors
    /// If `PELAGO_COLL` names what does not exist.
    pub(crate) fn new(settings: &Settings) -> Result<Preferences, SettingError> {
        let forced = forced(settings.coll_algorithms.as_deref().unwrap_or(""))?;
        let graph = match settings.sync_memory {
            SyncMemoryKind::PairwiseStructure => Some(Graph::TreeStructure),
            SyncMemoryKind::PairwiseEdges => Some(Graph::TreeEdges),
            _ => None,
        };
        Ok(Preferences { forced, is_deterministic: settings.deterministic, graph })
    }

    /// The algorithm for a shape, and for what it combines elements with; the same at all members.
    pub(crate) fn choose(&self, shape: &Shape, combiner: Option<&Combiner>) -> Option<&'static Algorithm> {
        // What is associative and commutative has the same result in any order.
        let is_rounded = combiner.is_some_and(|combiner| !combiner.is_associative());
        let needs_ranks = self.is_deterministic && is_rounded;
        let needs_order = combiner.is_some_and(|combiner| !combiner.is_commutative());
        let is_possible = |algorithm: &&'static Algorithm| {
            let is_right = match algorithm.fold {
                Fold::None | Fold::Ranks => true,
                Fold::Tree => !needs_ranks,
                Fold::Any => !needs_ranks && !needs_order,
            };
            is_right && (algorithm.restriction)(shape).is_none()
        };
        let forced = self.forced.get(&shape.operation).copied().filter(is_possible);
        let named = names(shape).iter().filter_map(|name| find(shape.operation, name)).find(is_possible);
        let with_graph = algorithms()
            .filter(|algorithm| algorithm.operation == shape.operation && Some(algorithm.graph) == self.graph)
            .find(is_possible);
        let any =
            || algorithms().filter(|algorithm| algorithm.operation == shape.operation).find(is_possible);
        forced.or(with_graph).or(named).or_else(any)
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
            variable: "PELAGO_COLL",
            value: text.to_owned(),
            accepts: "operation=algorithm, several with commas, as `pelago coll list` names them",
        })?;
        forced.insert(algorithm.operation, algorithm);
    }
    Ok(forced)
}

/// The names of the algorithms to try, the best first.
fn names(shape: &Shape) -> &'static [&'static str] {
    let (n, bytes) = (shape.n, shape.block_bytes());
    let has_nodes = !shape.nodes.is_empty();
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
        Operation::AllReduce if is_small => &["recursive_doubling"],
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
pub(crate) fn choose(
    world: &World,
    shape: &Shape,
    combiner: Option<&Combiner>,
) -> Result<&'static Algorithm> {
    world.collectives.preferences().choose(shape, combiner).ok_or_else(|| {
        let operation = shape.operation.name();
        let reason = "no algorithm can do this (`pelago coll list`); unset PELAGO_DETERMINISTIC".to_owned();
        ErrorKind::BadCollective { me: world.my_pe(), operation, reason }.into()
    })
}
