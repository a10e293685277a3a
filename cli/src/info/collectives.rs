//! `pelago info --collectives`: the algorithms of collective operations, and the present choices. Invariant:
//! all information comes from the runtime's own table and selection; nothing is duplicated here.

use std::fmt::Write;

use pelago::coll::select::{Preferences, Reason, preferences};
use pelago::coll::shape::{Blocks, Operation, Shape, Tuning};
use pelago::coll::table::{Algorithm, Fold, Graph, algorithms};
use pelago::{Combiner, ReduceOp};
use pelago_boot::{CollFormKind, Settings};
use pelago_report::{Bytes, Table};
use serde::Serialize;

/// The block sizes in bytes for which choices are shown.
const SIZES: [usize; 4] = [8, 1 << 10, 64 << 10, 1 << 20];

/// The report.
#[derive(Serialize)]
pub struct Report {
    pes: usize,
    /// Whether blocking operations between PEs of one node use direct forms.
    direct_on_a_node: bool,
    deterministic: bool,
    /// The choices for teams on one node, for sums of doubles.
    chosen: Vec<Chosen>,
    algorithms: Vec<Row>,
}

#[derive(Serialize)]
struct Chosen {
    operation: &'static str,
    bytes: usize,
    algorithm: &'static str,
    radix: usize,
    segment_bytes: usize,
    /// The source of the choice.
    by: &'static str,
}

#[derive(Serialize)]
struct Row {
    operation: &'static str,
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    fold: &'static str,
    graph: &'static str,
    cannot: Vec<Restriction>,
}

#[derive(Serialize)]
struct Restriction {
    /// The shapes that it does not support, among those that were tried.
    shape: &'static str,
    reason: &'static str,
}

impl Report {
    /// Gathers the report for teams of `pes` PEs, with these settings.
    ///
    /// # Errors
    /// If the settings name an operation or algorithm that does not exist, or if the tuning file is not
    /// valid.
    pub fn gather(pes: usize, settings: &Settings) -> anyhow::Result<Self> {
        let preferences = preferences(settings)?;
        let sizes = |operation| if operation == Operation::Barrier { &SIZES[..1] } else { &SIZES[..] };
        let all = Operation::ALL.into_iter();
        let chosen = all.flat_map(|operation| sizes(operation).iter().map(move |bytes| (operation, *bytes)));
        Ok(Report {
            pes,
            direct_on_a_node: settings.coll_form == CollFormKind::Auto,
            deterministic: settings.deterministic,
            chosen: chosen
                .filter_map(|(operation, bytes)| choose(&preferences, operation, pes, bytes))
                .collect(),
            algorithms: algorithms().map(row).collect(),
        })
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let form = match self.direct_on_a_node {
            true => {
                "Blocking operations between PEs of one node take direct forms, which have no choice of\n\
                 algorithm. Schedules are what runs otherwise: between nodes, for operations that do not\n\
                 block or are persistent, for all_gather and all_to_all with blocks of different sizes,\n\
                 for exclusive_scan in place of more than a page, and everywhere with\n\
                 PELAGO_COLL_FORM=schedule."
            }
            false => "All operations run as schedules (PELAGO_COLL_FORM=schedule).",
        };
        let order = match self.deterministic {
            true => {
                "\nElements whose combination is rounded are combined in the order of PEs \
                     (PELAGO_DETERMINISTIC=on)."
            }
            false => "",
        };
        format!("{form}{order}\n\n{}\n{}", self.chosen(), self.table())
    }

    fn chosen(&self) -> Table {
        let title = format!(
            "Chosen at present among {} PEs of one node, by bytes of a block (doubles, their sum)",
            self.pes
        );
        let sizes = SIZES.map(|bytes| Bytes(bytes as u64).to_string());
        let mut table = Table::new(title, 1 + SIZES.len(), &format!("operation|{}", sizes.join("|")));
        for operation in Operation::ALL {
            let cell = |bytes: usize| {
                let is_it = |chosen: &&Chosen| (chosen.operation, chosen.bytes) == (operation.name(), bytes);
                self.chosen.iter().find(is_it).map(Chosen::cell).unwrap_or_default()
            };
            table.row((operation.name(), SIZES.map(cell)));
        }
        table
    }

    fn table(&self) -> Table {
        let title = "Algorithms, the order in which they combine elements, and what they cannot do";
        let mut table = Table::new(title, 5, "operation|algorithm|order|how|cannot do");
        for row in &self.algorithms {
            let cannot: Vec<_> = row.cannot.iter().map(|found| found.shape).collect();
            table.row(([row.operation, row.name, row.fold, row.summary], cannot.join(", ")));
        }
        table
    }
}

impl Chosen {
    fn cell(&self) -> String {
        let (plain, mut cell) = (Tuning::default(), self.algorithm.to_owned());
        if self.radix != plain.radix {
            write!(cell, ", radix {}", self.radix).expect("a string has room");
        }
        if self.segment_bytes != plain.segment_bytes {
            let pieces = Bytes(self.segment_bytes as u64);
            write!(cell, ", pieces of {pieces}").expect("a string has room");
        }
        match self.by {
            "thresholds" => cell,
            by => format!("{cell} ({by})"),
        }
    }
}

fn choose(preferences: &Preferences, operation: Operation, pes: usize, bytes: usize) -> Option<Chosen> {
    let words = if operation == Operation::Barrier { 0 } else { bytes / size_of::<f64>() };
    let shape = Shape::new(operation, 0, pes, words, size_of::<f64>());
    let sum = Combiner::of::<f64>(ReduceOp::Sum).filter(|_| operation.combines());
    let choice = preferences.choose(&shape, sum.as_ref().map(Combiner::laws))?;
    let by = match choice.reason {
        Reason::Forced => "PELAGO_COLL",
        Reason::Graph => "PELAGO_SYNC_MEMORY",
        Reason::Measured => "tuning file",
        Reason::BuiltIn => "thresholds",
        Reason::Alternative => "a candidate",
    };
    let Tuning { radix, segment_bytes } = choice.tuning;
    Some(Chosen {
        operation: operation.name(),
        bytes,
        algorithm: choice.algorithm.name,
        radix,
        segment_bytes,
        by,
    })
}

fn row(algorithm: &'static Algorithm) -> Row {
    let fold = match algorithm.fold {
        Fold::None => "",
        Fold::Ranks => "of PEs",
        Fold::Tree => "a tree",
        Fold::Any => "any",
    };
    let graph = match algorithm.graph {
        Graph::Doubling => "doubling",
        Graph::TreeStructure => "tree at the root",
        Graph::TreeEdges => "fixed tree",
        Graph::TreeAtRankZero => "tree at PE 0",
        Graph::Other => "other",
    };
    let Algorithm { operation, name, summary, source, .. } = *algorithm;
    Row { operation: operation.name(), name, summary, source, fold, graph, cannot: restrictions(algorithm) }
}

/// The typical shapes that an algorithm does not support.
fn restrictions(algorithm: &Algorithm) -> Vec<Restriction> {
    let plain = |n| Shape::new(algorithm.operation, 0, n, 4, 8);
    let of = |blocks| Shape { blocks, ..plain(8) };
    let mut cases = vec![
        ("8 PEs", plain(8)),
        ("an even number of PEs that is no power of two", plain(6)),
        ("an odd number of PEs", plain(7)),
    ];
    match algorithm.operation {
        Operation::AllGather => {
            cases.push(("blocks of different sizes", of(Blocks::Counts((1..9).collect()))))
        }
        Operation::AllToAll => {
            let exchanged = Blocks::Exchanged {
                source: (0..8).map(|rank| (rank * 4, 1 + rank % 4)).collect(),
                target: (0..8).map(|rank| (rank * 4, 1)).collect(),
            };
            cases.push(("blocks of different sizes", of(exchanged)));
            cases.push(("strided blocks", of(Blocks::Strided { source: 2, target: 3 })));
        }
        _ => (),
    }
    if algorithm.operation != Operation::Barrier {
        cases.push(("source and target in one place", Shape { in_place: true, ..plain(8) }));
    }
    let refused = |(what, shape): (&'static str, Shape)| {
        (algorithm.restriction)(&shape).map(|reason| Restriction { shape: what, reason })
    };
    cases.into_iter().filter_map(refused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(pairs: &[(&str, &str)]) -> Report {
        let pairs = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Report::gather(8, &Settings::from_pairs(pairs).unwrap()).unwrap()
    }

    #[test]
    fn every_algorithm_and_every_choice_is_shown() {
        let report = report(&[]);
        let text = report.text();
        for algorithm in algorithms() {
            assert!(text.contains(algorithm.name) && text.contains(algorithm.summary), "{}", algorithm.name);
        }
        assert_eq!(report.chosen.len(), 10 * SIZES.len() + 1);
        assert!(text.contains("take direct forms") && !text.contains("order of PEs ("), "{text}");
        let doubling = |row: &&Row| (row.operation, row.name) == ("all_gather", "recursive_doubling");
        let row = report.algorithms.iter().find(doubling).unwrap();
        let cannot: Vec<_> = row.cannot.iter().map(|found| found.shape).collect();
        let [even, odd] = ["an even number of PEs that is no power of two", "an odd number of PEs"];
        assert!(cannot.contains(&even) && cannot.contains(&odd) && !cannot.contains(&"8 PEs"), "{cannot:?}");
    }

    #[test]
    fn settings_are_followed_and_named() {
        let text = report(&[("PELAGO_COLL", "reduce=linear"), ("PELAGO_COLL_FORM", "schedule")]).text();
        assert!(text.contains("linear (PELAGO_COLL)") && text.contains("All operations run as"), "{text}");
        let report = report(&[("PELAGO_DETERMINISTIC", "on")]);
        assert!(report.text().contains("PELAGO_DETERMINISTIC=on"));
        let reduce = report.chosen.iter().find(|chosen| chosen.operation == "reduce").unwrap();
        let is_it = |row: &&Row| (row.operation, row.name) == (reduce.operation, reduce.algorithm);
        assert_eq!(report.algorithms.iter().find(is_it).unwrap().fold, "of PEs");
    }
}
