//! What comes out: a row for each operation and size, and the gates that the rows must keep.
//!
//! Invariant: a ratio compares figures of one round only; the best of the others is the best of that round.

use std::collections::BTreeMap;

use serde::Serialize;

use super::programs::Side;
use crate::compare::{median, minimum};

/// Up to so many bytes an operation counts as small.
const SMALL_BYTES: usize = 8;
/// From so many bytes on it counts as large.
const LARGE_BYTES: usize = 64 << 10;
/// The operations that gates are about.
const GATED: [&str; 4] = ["barrier", "broadcast", "all-to-all", "all-reduce"];

/// An operation of a size; a barrier has none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The operation.
    pub operation: String,
    /// Bytes of a block.
    pub bytes: usize,
}

/// The figures of all rounds.
#[derive(Default)]
pub struct Collected {
    /// In the order in which they came.
    cells: Vec<(Cell, BTreeMap<Side, Taken>)>,
}

/// The figures of one side, by round.
#[derive(Default)]
struct Taken {
    figures_ns: BTreeMap<usize, f64>,
    min_ns: Option<f64>,
}

/// An operation of a size, with so many PEs.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The operation.
    pub operation: String,
    /// Bytes of a block; 0 for a barrier.
    pub bytes: usize,
    /// Number of PEs.
    pub pes: usize,
    /// By side.
    pub sides: BTreeMap<Side, Figures>,
    /// Ours to the best of the others.
    pub ratio_to_best: Option<f64>,
}

/// What one side takes for an operation.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// The median of the rounds.
    pub ns: f64,
    /// The shortest block of all rounds.
    pub min_ns: f64,
    /// Ours to this one's: below 1, Pelago is faster.
    pub ratio: Option<f64>,
    /// The rounds.
    pub rounds_ns: Vec<f64>,
}

/// A bound of a ratio.
#[derive(Clone, Debug, Serialize)]
pub struct Gate {
    /// What is compared.
    pub name: String,
    /// Ours to theirs.
    pub ratio: f64,
    /// The most that it may be.
    pub bound: f64,
}

impl Gate {
    /// Whether the ratio is within its bound.
    pub fn is_kept(&self) -> bool {
        self.ratio <= self.bound
    }
}

impl Collected {
    /// Takes note of what a side took in a round.
    pub fn add(&mut self, cell: Cell, side: Side, round: usize, ns: f64, min_ns: f64) {
        let at = self.cells.iter().position(|(known, _)| *known == cell).unwrap_or_else(|| {
            self.cells.push((cell, BTreeMap::new()));
            self.cells.len() - 1
        });
        let taken = self.cells[at].1.entry(side).or_default();
        taken.figures_ns.insert(round, ns);
        taken.min_ns = Some(taken.min_ns.map_or(min_ns, |min| min.min(min_ns)));
    }

    /// The rows, sizes of an operation one after the other.
    pub fn rows(&self, pes: usize) -> Vec<Row> {
        self.cells.iter().map(|(cell, sides)| row(cell, sides, pes)).collect()
    }
}

fn row(cell: &Cell, sides: &BTreeMap<Side, Taken>, pes: usize) -> Row {
    let ours = sides.get(&Side::Pelago).map(|taken| &taken.figures_ns);
    let ratio_to = |theirs: &dyn Fn(usize) -> Option<f64>| {
        let rounds = ours.into_iter().flatten();
        let ratios: Vec<_> = rounds.filter_map(|(round, ns)| Some(ns / theirs(*round)?)).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    };
    let others = || sides.iter().filter(|(side, _)| side.is_other()).map(|(_, taken)| taken);
    let best = |round: usize| {
        let figures: Vec<_> = others().filter_map(|taken| taken.figures_ns.get(&round).copied()).collect();
        (!figures.is_empty()).then(|| minimum(&figures))
    };
    let figures = |side: Side, taken: &Taken| {
        let rounds_ns: Vec<_> = taken.figures_ns.values().copied().collect();
        let ratio = ratio_to(&|round| taken.figures_ns.get(&round).copied());
        let ratio = ratio.filter(|_| side != Side::Pelago);
        Figures { ns: median(&rounds_ns), min_ns: taken.min_ns.unwrap_or(f64::NAN), ratio, rounds_ns }
    };
    Row {
        operation: cell.operation.clone(),
        bytes: cell.bytes,
        pes,
        sides: sides.iter().map(|(side, taken)| (*side, figures(*side, taken))).collect(),
        ratio_to_best: ratio_to(&best),
    }
}

/// The gates that the rows have figures for. PEs with a core each: small operations beside each library,
/// large ones beside the best. PEs that share cores: both beside the best.
pub fn gates(rows: &[Row], cores: usize) -> Vec<Gate> {
    let mut gates = Vec::new();
    for row in rows.iter().filter(|row| GATED.contains(&row.operation.as_str())) {
        let (is_small, is_large) = (row.bytes <= SMALL_BYTES, row.bytes >= LARGE_BYTES);
        let mut gate = |than: &str, ratio: Option<f64>, bound| {
            let name = format!("{} PEs, {}, {than}", row.pes, row.name());
            gates.extend(ratio.map(|ratio| Gate { name, ratio, bound }));
        };
        if row.pes > cores && (is_small || is_large) {
            gate("best", row.ratio_to_best, 1.1);
        } else if row.pes <= cores && is_large {
            gate("best", row.ratio_to_best, 0.9);
        } else if row.pes <= cores && is_small {
            for (side, figures) in row.sides.iter().filter(|(side, _)| side.is_other()) {
                gate(side.name(), figures.ratio, if *side == Side::OpenMpi { 0.7 } else { 0.5 });
            }
        }
    }
    gates
}

impl Row {
    /// Operation and size in words.
    pub fn name(&self) -> String {
        match self.bytes {
            0 => self.operation.clone(),
            bytes => format!("{} {}", self.operation, size(bytes)),
        }
    }
}

/// `8 B`, `64 KiB`.
pub fn size(bytes: usize) -> String {
    match bytes {
        0 => String::new(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Rows of 2 and 4 PEs: ours takes 100 ns in each round, Open MPI 150, OSHMEM 300, and in one round,
    /// which is slower altogether, ten times as much. Copies for a gather take 50.
    pub fn examples() -> Vec<Row> {
        let rows = |pes| {
            let mut collected = Collected::default();
            for (operation, bytes) in
                [("barrier", 0), ("all-reduce", 8), ("all-reduce", 65_536), ("gather", 8)]
            {
                for (round, slowness) in [10.0, 1.0, 1.0].into_iter().enumerate() {
                    let others = [(Side::OpenMpi, 150.0), (Side::Oshmem, 300.0), (Side::Copies, 50.0)];
                    let sides = [(Side::Pelago, 100.0)].into_iter().chain(others);
                    let is_gather = operation == "gather";
                    let has = |side| match side {
                        Side::Oshmem => !is_gather,
                        Side::Copies => is_gather,
                        _ => true,
                    };
                    for (side, ns) in sides.filter(|(side, _)| has(*side)) {
                        let cell = Cell { operation: operation.to_owned(), bytes };
                        collected.add(cell, side, round, ns * slowness, ns * slowness / 2.0);
                    }
                }
            }
            collected.rows(pes)
        };
        [rows(2), rows(4)].into_iter().flatten().collect()
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let rows = examples();
        assert_eq!(rows.len(), 8);
        let figures = &rows[0].sides[&Side::OpenMpi];
        assert_eq!((figures.ns, figures.min_ns, figures.ratio), (150.0, 75.0, Some(100.0 / 150.0)));
        assert_eq!((rows[0].sides[&Side::Pelago].ratio, rows[0].ratio_to_best), (None, Some(100.0 / 150.0)));
        assert!(!rows[3].sides.contains_key(&Side::Oshmem), "it has no gather");
        assert_eq!(rows[3].sides[&Side::Copies].ratio, Some(2.0));
        assert_eq!(rows[3].ratio_to_best, Some(100.0 / 150.0), "copies are no library");
    }

    #[test]
    fn gates_follow_size_and_crowding() {
        let gates = gates(&examples(), 2);
        let found: Vec<_> =
            gates.iter().map(|gate| (gate.name.as_str(), gate.bound, gate.is_kept())).collect();
        assert_eq!(
            found,
            [
                ("2 PEs, barrier, Open MPI", 0.7, true),
                ("2 PEs, barrier, OSHMEM", 0.5, true),
                ("2 PEs, all-reduce 8 B, Open MPI", 0.7, true),
                ("2 PEs, all-reduce 8 B, OSHMEM", 0.5, true),
                ("2 PEs, all-reduce 64 KiB, best", 0.9, true),
                ("4 PEs, barrier, best", 1.1, true),
                ("4 PEs, all-reduce 8 B, best", 1.1, true),
                ("4 PEs, all-reduce 64 KiB, best", 1.1, true),
            ]
        );
        assert!(!Gate { name: String::new(), ratio: 0.91, bound: 0.9 }.is_kept());
    }

    #[test]
    fn sizes_are_in_words() {
        assert_eq!([8, 4096, 1 << 22].map(size), ["8 B", "4 KiB", "4 MiB"]);
    }
}
