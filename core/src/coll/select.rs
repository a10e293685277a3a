//! The choice of an algorithm, as the settings and the synchronisation memory of the job have it. How it is
//! made from them: [`pelago_schedule::select`].
//!
//! Invariant: all members choose alike, from values that they all know: the shape, the settings and the file
//! of measurements, which are the same for the whole job.

use super::reduction::Combiner;
use super::shape::{Operation, Shape};
use super::table::{Algorithm, Graph};
use super::tuning;
use crate::base::error::{ErrorKind, Result};
use crate::coll::teams::Teams;
use pelago_boot::{CollFormKind, SettingError, Settings, SyncMemoryKind, settings_table};
use pelago_schedule::select;
use std::collections::BTreeMap;

pub use pelago_schedule::select::{Choice, Laws, Preferences, Reason, size_class};

/// The setting that names algorithms.
const FORCED: &str = "PELAGO_COLL";

/// The values of the settings.
///
/// # Errors
/// If `PELAGO_COLL` names an algorithm that does not exist, and the errors of [`tuning::load`].
pub fn preferences(settings: &Settings) -> Result<Preferences, SettingError> {
    let graph = match settings.sync_memory {
        // The default: where operations may take other forms, algorithms are chosen by their speed.
        SyncMemoryKind::PairwiseDoubling if settings.coll_form == CollFormKind::Schedule => {
            Some(Graph::Doubling)
        }
        SyncMemoryKind::PairwiseStructure => Some(Graph::TreeStructure),
        SyncMemoryKind::PairwiseEdges => Some(Graph::TreeEdges),
        _ => None,
    };
    Ok(Preferences {
        forced: forced(settings.coll_algorithms.as_deref().unwrap_or(""))?,
        is_deterministic: settings.deterministic,
        graph,
        rules: tuning::load(settings.coll_tuning.as_deref())?,
    })
}

/// The algorithms that a value of `PELAGO_COLL` names.
///
/// # Errors
/// If it names an algorithm that does not exist.
pub fn forced(text: &str) -> Result<BTreeMap<Operation, &'static Algorithm>, SettingError> {
    select::forced(text).ok_or_else(|| SettingError::Value {
        variable: FORCED,
        value: text.to_owned(),
        accepts: accepted(),
    })
}

/// The values that the setting accepts, as its row lists them.
fn accepted() -> &'static str {
    let row = settings_table().iter().find(|row| row.name == FORCED);
    row.map_or("operation=algorithm", |row| row.accepts)
}

/// The algorithm for an operation of a team.
///
/// # Errors
/// If there is none that can do it.
pub fn choose(world: &Teams, shape: &Shape, combiner: Option<&Combiner>) -> Result<Choice> {
    world.collectives.preferences().choose(shape, combiner.map(Combiner::laws)).ok_or_else(|| {
        let operation = shape.operation.name();
        let reason = "no algorithm can do this (`pelago coll list`); unset PELAGO_DETERMINISTIC".to_owned();
        ErrorKind::BadCollective { me: world.my_pe(), operation, reason }.into()
    })
}

#[cfg(test)]
mod tests {
    use super::super::reduction::ReduceOp;
    use super::super::shape::Tuning;
    use super::*;

    fn preferences(pairs: &[(&str, &str)]) -> Preferences {
        let pairs = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        super::preferences(&Settings::from_pairs(pairs).unwrap()).unwrap()
    }

    fn chosen(preferences: &Preferences, shape: &Shape) -> (&'static str, Reason, Tuning) {
        let sum = Combiner::of::<f64>(ReduceOp::Sum).filter(|_| shape.operation.combines());
        let choice = preferences.choose(shape, sum.as_ref().map(Combiner::laws)).unwrap();
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
}
