//! Comparisons by rounds: in each round, all sides run all rows in turn, and the sides rotate. A row is an
//! operation and a size; gates are bounds for rows.
//!
//! All sides of a row run at the same distance of the processors in a round (`distance.rs`).
//!
//! Invariant: a ratio compares results of one round only; the best of the others is the best of this round.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use pelago_report::chart::{Axis, Line, Point, Scale, Series};
use pelago_report::page::Figure;
use pelago_report::{Table, figure, joined, page};
use serde::Serialize;

use super::across::size;
use super::distance::Distances;
use super::peers::{Printed, Side};
use super::stats::Summary;

/// An operation of a size; a barrier has none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The operation.
    pub operation: String,
    /// Bytes of a block.
    pub bytes: usize,
}

/// The results of all rounds.
#[derive(Default)]
pub struct Collected {
    /// In the order in which they were added.
    cells: Vec<(Cell, BTreeMap<Side, Taken>)>,
}

/// The results of one side, by round.
#[derive(Default)]
struct Taken {
    figures_ns: BTreeMap<usize, f64>,
    min_ns: Option<f64>,
}

/// An operation of a size, with a number of PEs.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The operation.
    pub operation: String,
    /// Bytes of a block; 0 for a barrier.
    pub bytes: usize,
    /// Number of PEs.
    pub pes: usize,
    /// The results by side.
    pub sides: BTreeMap<Side, Figures>,
    /// The ratio of our time to that of the best other side.
    pub ratio_to_best: Option<f64>,
}

/// The times of one side for an operation.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// The median of the rounds.
    pub ns: f64,
    /// The shortest block of all rounds.
    pub min_ns: f64,
    /// The ratio of our time to this side's: below 1, Pelago is faster.
    pub ratio: Option<f64>,
    /// The times of the rounds.
    pub rounds_ns: Vec<f64>,
}

/// A bound of a ratio.
#[derive(Clone, Debug, Serialize)]
pub struct Gate {
    /// The name of the comparison.
    pub name: String,
    /// The ratio of our time to theirs.
    pub ratio: f64,
    /// The maximum of the ratio.
    pub bound: f64,
}

impl Gate {
    /// Whether the ratio is within its bound.
    pub fn is_kept(&self) -> bool {
        self.ratio <= self.bound
    }
}

/// Measures all rows: `run` returns the output of a side for a row, whose `figure_ns` is used.
///
/// # Errors
/// Errors of `run`.
pub fn measure<R: AsRef<str>>(
    job: &str,
    rounds: u32,
    sides: &[Side],
    rows: &[R],
    figure_ns: impl Fn(&Printed) -> f64,
    mut run: impl FnMut(Side, &str) -> Result<Vec<Printed>>,
) -> Result<Collected> {
    let (mut collected, mut distances) = (Collected::default(), Distances::default());
    for round in 0..rounds as usize {
        eprint!("{job}round {} of {rounds}:", round + 1);
        for row in rows {
            eprint!(" {}", row.as_ref());
            std::io::stderr().flush()?;
            distances.start_row();
            for side in order(sides, round) {
                for printed in distances.run(|| run(side, row.as_ref()))? {
                    let (side, ns) = (printed.side(side), figure_ns(&printed));
                    let cell = Cell { operation: printed.operation, bytes: printed.bytes };
                    collected.add(cell, side, round, ns, printed.min);
                }
            }
        }
        eprintln!();
    }
    if let Some(said) = distances.summary() {
        eprintln!("{said}");
    }
    Ok(collected)
}

/// The sides in the order of a round, which rotates.
fn order(sides: &[Side], round: usize) -> Vec<Side> {
    let mut sides = sides.to_vec();
    let count = sides.len();
    sides.rotate_left(round % count);
    sides
}

impl Collected {
    /// Records the time of a side in a round.
    pub fn add(&mut self, cell: Cell, side: Side, round: usize, ns: f64, min_ns: f64) {
        let at = self.cells.iter().position(|(known, _)| *known == cell).unwrap_or_else(|| {
            self.cells.push((cell, BTreeMap::new()));
            self.cells.len() - 1
        });
        let taken = self.cells[at].1.entry(side).or_default();
        taken.figures_ns.insert(round, ns);
        taken.min_ns = Some(taken.min_ns.map_or(min_ns, |min| min.min(min_ns)));
    }

    /// The rows, with the sizes of an operation one after the other.
    pub fn rows(&self, pes: usize) -> Vec<Row> {
        self.cells.iter().map(|(cell, sides)| row(cell, sides, pes)).collect()
    }
}

fn row(cell: &Cell, sides: &BTreeMap<Side, Taken>, pes: usize) -> Row {
    let ours = sides.get(&Side::Pelago).map(|taken| &taken.figures_ns);
    let ratio_to = |theirs: &dyn Fn(usize) -> Option<f64>| {
        let rounds = ours.into_iter().flatten();
        let ratios: Vec<_> = rounds.filter_map(|(round, ns)| Some(ns / theirs(*round)?)).collect();
        (!ratios.is_empty()).then(|| Summary::of(&ratios).median)
    };
    let others = || sides.iter().filter(|(side, _)| side.is_other()).map(|(_, taken)| taken);
    let best = |round: usize| {
        let figures: Vec<_> = others().filter_map(|taken| taken.figures_ns.get(&round).copied()).collect();
        (!figures.is_empty()).then(|| Summary::of(&figures).min)
    };
    let figures = |side: Side, taken: &Taken| {
        let rounds_ns: Vec<_> = taken.figures_ns.values().copied().collect();
        let ratio = ratio_to(&|round| taken.figures_ns.get(&round).copied());
        let ratio = ratio.filter(|_| side != Side::Pelago);
        Figures {
            ns: Summary::of(&rounds_ns).median,
            min_ns: taken.min_ns.unwrap_or(f64::NAN),
            ratio,
            rounds_ns,
        }
    };
    Row {
        operation: cell.operation.clone(),
        bytes: cell.bytes,
        pes,
        sides: sides.iter().map(|(side, taken)| (*side, figures(*side, taken))).collect(),
        ratio_to_best: ratio_to(&best),
    }
}

impl Row {
    /// The operation and the size as text.
    pub fn name(&self) -> String {
        match self.bytes {
            0 => self.operation.clone(),
            bytes => format!("{} {}", self.operation, size(bytes)),
        }
    }
}

/// The placement of PEs, and which block of a run is its result.
pub fn placement(pes: usize, cores: usize) -> (String, &'static str) {
    let (binding, figure) = match pes <= cores {
        true => ("bound to cores", "shortest"),
        false => ("not bound, Open MPI yielding (mpi_yield_when_idle)", "middle"),
    };
    (format!("{pes} PEs on {cores} cores, {binding}"), figure)
}

/// The cores that programs may use.
pub fn cores() -> Result<usize> {
    Ok(std::thread::available_parallelism().context("cannot count the cores")?.get())
}

/// The rows below a heading, in microseconds.
pub fn table(heading: &str, rows: &[Row]) -> Table {
    let mut sides: Vec<_> = rows.iter().flat_map(|row| row.sides.keys().copied()).collect();
    sides.sort_unstable();
    sides.dedup();
    let name = |side: &Side| match side {
        Side::Pelago => format!("|{}", side.name()),
        _ => format!("|{} (ratio)", side.name()),
    };
    let names: String = sides.iter().map(name).collect();
    let mut table = Table::new(heading, 1, &format!("operation|size{names}"));
    for row in rows {
        let cell = |side: &Side| match row.sides.get(side) {
            None => "-".to_owned(),
            Some(Figures { ns, ratio: None, .. }) => figure(ns / 1e3),
            Some(Figures { ns, ratio: Some(ratio), .. }) => format!("{} ({ratio:.2})", figure(ns / 1e3)),
        };
        let bytes = if row.bytes == 0 { String::new() } else { size(row.bytes) };
        table.row((row.operation.as_str(), bytes, sides.iter().map(cell).collect::<Vec<_>>()));
    }
    table
}

/// The gates with their verdicts.
pub fn gates_table<'a>(gates: impl IntoIterator<Item = &'a Gate>) -> Table {
    let mut table = Table::new("Gates: the most that a ratio may be", 1, "gate|ratio|bound|verdict");
    for gate in gates {
        let verdict = if gate.is_kept() { "PASS" } else { "FAIL" };
        table.row((gate.name.as_str(), [gate.ratio, gate.bound].map(|ratio| format!("{ratio:.3}")), verdict));
    }
    table
}

/// The files that a comparison writes besides its table.
#[derive(clap::Args)]
pub struct Files {
    /// Write rows and gates to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page of curves to this file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Prints the tables and writes the files; fails if a row exceeds its bound.
pub fn finish(title: &str, rows: &[Row], gates: &[Gate], tables: &[Table], files: &Files) -> Result<()> {
    let missed = gates.iter().filter(|gate| !gate.is_kept()).count();
    let (kept, all) = (gates.len() - missed, gates.len());
    let verdict = format!("\n{kept} of {all} rows with a bound are within it.\n");
    let text = joined(tables) + if all == 0 { "" } else { &verdict };
    print!("{text}");
    let write = |path: &Option<PathBuf>, text: &dyn Fn() -> String| match path {
        None => Ok(()),
        Some(path) => fs::write(path, text()).with_context(|| format!("cannot write {}", path.display())),
    };
    write(&files.json, &|| serde_json::json!({ "rows": rows, "gates": gates }).to_string())?;
    write(&files.plot, &|| page::html(title, "", &text, &figures(rows), ""))?;
    ensure!(missed == 0, "rows that are not within their bounds: {missed} of {all}");
    Ok(())
}

/// Curves of all operations that have more than one size, a line for each side.
fn figures(rows: &[Row]) -> Vec<Figure> {
    let of_one = rows.chunk_by(|a, b| (a.pes, &a.operation) == (b.pes, &b.operation));
    of_one.filter(|rows| rows.len() > 1).map(curves).collect()
}

fn curves(rows: &[Row]) -> Figure {
    let lines = Side::ALL.into_iter().map(|side| {
        let point = |row: &Row| {
            let us = row.sides.get(&side)?.ns / 1e3;
            let note = format!("{}, {}: {us:.3} us", side.name(), size(row.bytes));
            Some(Point { x: row.bytes.max(1) as f64, y: us, note })
        };
        let points: Vec<_> = rows.iter().filter_map(point).collect();
        let name = side.name().to_owned();
        (!points.is_empty()).then(|| Series { name, colour: side.colour(), line: Line::Solid, points })
    });
    let axes = [
        Axis { label: "size of a block", scale: Scale::Bytes },
        Axis { label: "us an operation", scale: Scale::Decades },
    ];
    Figure::new(format!("{}, {} PEs", rows[0].operation, rows[0].pes), axes, "", lines)
}

#[cfg(test)]
pub mod tests {
    use clap::Parser;

    use pelago_report::check::{assert_balanced, assert_stands_alone};

    use super::*;

    /// Rows of 2 and 4 PEs: our time is 100 ns in each round, Open MPI's 150, OSHMEM's 300, and in one slow
    /// round all are ten times as long. Copies for a gather take 50.
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
    fn another_side_goes_first_in_each_round() {
        let sides = [Side::Pelago, Side::OpenMpi, Side::Oshmem];
        let firsts = [0, 1, 2, 3].map(|round| order(&sides, round)[0]);
        assert_eq!(firsts, [Side::Pelago, Side::OpenMpi, Side::Oshmem, Side::Pelago]);
        assert_eq!(order(&sides, 1), [Side::OpenMpi, Side::Oshmem, Side::Pelago]);
        let mut run = Vec::new();
        let line = r#"{"operation":"a","bytes":8,"min":1.0,"median":2.0}"#;
        let collected = measure(
            "",
            2,
            &sides[..2],
            &["a"],
            |printed| printed.median,
            |side, row| {
                run.push((side, row.to_owned()));
                Ok(vec![Printed::read(line)?])
            },
        );
        assert_eq!(
            run.iter().map(|(side, _)| *side).collect::<Vec<_>>(),
            [sides[0], sides[1], sides[1], sides[0]]
        );
        assert_eq!(collected.unwrap().rows(2)[0].sides[&Side::OpenMpi].rounds_ns, [2.0, 2.0]);
    }

    #[test]
    fn rows_stand_in_columns_with_their_ratios() {
        let text = table("heading", &examples()[..4]).to_string();
        let cells = |line: usize| text.lines().nth(line + 1).unwrap().split_whitespace().collect::<Vec<_>>();
        let names = "operation size Pelago Open MPI (ratio) OSHMEM (ratio) copies (ratio)";
        assert_eq!(cells(0).join(" "), names);
        assert_eq!(cells(2), ["all-reduce", "8", "B", "0.100", "0.150", "(0.67)", "0.300", "(0.33)", "-"]);
        assert_eq!(cells(4), ["gather", "8", "B", "0.100", "0.150", "(0.67)", "-", "0.050", "(2.00)"]);
        let widths: Vec<_> = text.lines().skip(1).map(str::len).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }

    #[test]
    fn gates_say_pass_or_fail() {
        let gate = |ratio| Gate { name: "2 PEs, barrier, best".to_owned(), ratio, bound: 0.9 };
        let text = gates_table(&[gate(0.5), gate(1.0)]).to_string();
        let ends: Vec<_> = text.lines().skip(1).map(|line| line.split_whitespace().last()).collect();
        assert_eq!(ends, [Some("verdict"), Some("PASS"), Some("FAIL")]);
    }

    #[test]
    fn only_pes_with_a_core_each_are_bound() {
        let (crowded, middle) = placement(4, 2);
        assert!(crowded.contains("not bound") && middle == "middle");
        let (bound, shortest) = placement(2, 2);
        assert!(bound.contains("bound to cores") && shortest == "shortest");
    }

    /// A subcommand alone.
    #[derive(Parser)]
    struct Cli<A: clap::Args> {
        #[command(flatten)]
        args: A,
    }

    /// Parses arguments from a command line, whose first word is the command.
    pub fn args<A: clap::Args>(words: &str) -> A {
        Cli::<A>::try_parse_from(words.split_whitespace()).unwrap_or_else(|error| panic!("{error}")).args
    }

    #[test]
    fn files_are_written_and_missed_bounds_are_told() {
        let folder = std::env::temp_dir().join(format!("report-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let of = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (json, plot) = (of("json"), of("html"));
        let files: Files = args(&format!("compare --json {json} --plot {plot}"));
        let rows = examples();
        let gate = |ratio| Gate { name: "barrier".to_owned(), ratio, bound: 1.0 };
        let report = |gates: &[Gate]| finish("calls", &rows, gates, &[], &files);
        report(&[gate(0.9)]).unwrap();
        let read: serde_json::Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!(read["gates"][0]["name"], "barrier");
        assert_eq!(read["rows"].as_array().map(Vec::len), Some(rows.len()));
        assert!(fs::read_to_string(&plot).unwrap().contains("<svg"));
        let said = report(&[gate(0.9), gate(1.1)]).unwrap_err().to_string();
        assert!(said.ends_with("1 of 2"), "{said}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_page_stands_alone_and_shows_every_side() {
        let page = page::html("Collective operations", "", "a < b & c\n", &figures(&examples()), "");
        // Charts of 2 and of 4 PEs for all-reduce; barrier and gather have one size.
        assert_eq!(assert_balanced(&page, &["meta"]).iter().filter(|name| **name == "svg").count(), 2);
        assert_eq!(
            page.matches("class=\"line\"").count(),
            2 * 3 * 2,
            "ours and two others, and their legend"
        );
        assert_eq!(page.matches("<circle").count(), 2 * 3 * (2 + 1), "two sizes of each, and their legend");
        assert!(page.contains("a &lt; b &amp; c") && page.contains("Open MPI, 64 KiB: 0.150 us"));
        assert!(page.contains(">8 B</text>") && page.contains(">32 KiB</text>"), "{page}");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
        assert_stands_alone(&page);
    }
}
