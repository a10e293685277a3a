//! `cargo xtask compare gups`: random updates of one table, by Pelago and by Debian's hpcc.
//!
//! Invariant: both update a table of the same size on the same number of PEs, verify it, and alternate. The
//! result of hpcc is the better of its two variants in each round; a ratio is that of the medians over all
//! rounds.

mod hpcc;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use pelago_report::Table;
use serde::{Deserialize, Serialize};

use self::hpcc::Hpcc;
use crate::base::peers;
use crate::base::rounds::cores;
use crate::base::stats::Summary;
use crate::base::workspace::output_of;

/// The method of the gate, and its bound: the minimum ratio to the rate of hpcc.
const GATE_METHOD: &str = "messages";
const GATE: f64 = 2.0;
/// The name of the other side in the table.
const PEER: &str = "hpcc";

/// The options of the comparison.
#[derive(Args)]
pub struct Compare {
    /// Number of rounds; in each, hpcc and every method update every table
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Binary logarithms of the number of words of 8 bytes of the whole table
    #[arg(long, value_delimiter = ',', default_value = "20,23,26",
          value_parser = clap::value_parser!(u32).range(10..=34))]
    table_log2: Vec<u32>,
    /// Our methods, with the names of `pelago run gups --method`
    #[arg(long, value_delimiter = ',', default_value = GATE_METHOD)]
    methods: Vec<String>,
    /// Number of PEs, and of processes of hpcc
    #[arg(long, default_value_t = 2)]
    pes: usize,
    /// Print one JSON array instead of the table
    #[arg(long)]
    json: bool,
}

/// The output of our application.
#[derive(Debug, Deserialize)]
struct Printed {
    gups: f64,
    errors: u64,
    updates: u64,
    pes: usize,
    table_words: u64,
}

/// One side's rates with one table.
#[derive(Clone, Debug, Serialize)]
struct Side {
    /// `hpcc`, or our method.
    side: String,
    /// The rate of each round, in 10^9 updates per second.
    gups: Vec<f64>,
    /// The number of updates of the last round.
    updates: u64,
}

/// All sides with one table.
#[derive(Debug, Serialize)]
struct Row {
    table_log2: u32,
    pes: usize,
    /// hpcc first.
    sides: Vec<Side>,
}

impl Compare {
    /// Runs both sides in turn, prints the comparison, and fails if the gate fails.
    pub fn run(&self) -> Result<()> {
        ensure!(!self.methods.is_empty() && self.pes > 0, "nothing to compare");
        let hpcc = Hpcc::find(peers::folder()?.join("hpcc"))?;
        let runner = Runner { pelago: peers::pelago()?, hpcc, is_crowded: self.pes > cores()? };
        let rows = self.table_log2.iter().map(|table_log2| runner.compare(*table_log2, self));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        match self.json {
            true => println!("{}", serde_json::to_string(&rows)?),
            false => print!("{}", table(&rows)),
        }
        check_gate(&rows)
    }
}

/// Both sides, ready to run.
struct Runner {
    pelago: PathBuf,
    hpcc: Hpcc,
    is_crowded: bool,
}

impl Runner {
    /// Runs all rounds with one table; the sides rotate, so that each goes first in turn.
    fn compare(&self, table_log2: u32, args: &Compare) -> Result<Row> {
        let names = [PEER].into_iter().chain(args.methods.iter().map(String::as_str));
        let side = |name: &str| Side { side: name.to_owned(), gups: Vec::new(), updates: 0 };
        let mut sides: Vec<_> = names.map(side).collect();
        for round in 0..args.rounds as usize {
            eprintln!("2^{table_log2} words on {}: round {} of {}", args.pes, round + 1, args.rounds);
            let count = sides.len();
            for turn in 0..count {
                let side = &mut sides[(round + turn) % count];
                let (gups, updates) = match side.side.as_str() {
                    PEER => self.run_hpcc(table_log2, args.pes)?,
                    method => self.run_pelago(table_log2, args.pes, method)?,
                };
                side.gups.push(gups);
                side.updates = updates;
            }
        }
        Ok(Row { table_log2, pes: args.pes, sides })
    }

    /// Runs hpcc; returns the better of its two variants.
    fn run_hpcc(&self, table_log2: u32, pes: usize) -> Result<(f64, u64)> {
        let sections = self.hpcc.run(table_log2, pes, self.is_crowded)?;
        eprintln!("  hpcc: {:.4} and {:.4} (LCG) GUP/s", sections[0].gups, sections[1].gups);
        let better = if sections[0].gups >= sections[1].gups { sections[0] } else { sections[1] };
        Ok((better.gups, better.updates))
    }

    fn run_pelago(&self, table_log2: u32, pes: usize, method: &str) -> Result<(f64, u64)> {
        let log2 = table_log2.to_string();
        let words = ["gups", "--method", method, "--table-log2", &log2, "--json"];
        let mut command = peers::run_of(&self.pelago, pes, self.is_crowded, &words);
        let text = output_of(&mut command)?;
        let printed =
            read(&text, table_log2, pes).with_context(|| format!("{command:?} printed {text:?}"))?;
        eprintln!("  {method}: {:.4} GUP/s", printed.gups);
        Ok((printed.gups, printed.updates))
    }
}

/// Parses the output of our application; fails if the table differs or the result is wrong: at most one
/// percent of the words may be wrong, by the rules of the HPC Challenge.
fn read(text: &str, table_log2: u32, pes: usize) -> Result<Printed> {
    let printed: Printed = serde_json::from_str(text.trim()).context("no result")?;
    let is_same = (printed.table_words, printed.pes) == (1 << table_log2, pes);
    ensure!(is_same, "another table or number of PEs");
    ensure!(printed.errors <= printed.table_words / 100, "more than one word of a hundred is wrong");
    ensure!(printed.gups.is_finite() && printed.gups > 0.0, "no rate");
    Ok(printed)
}

impl Row {
    /// The ratio of a side's median to hpcc's.
    fn ratio(&self, side: &Side) -> f64 {
        Summary::of(&side.gups).median / Summary::of(&self.sides[0].gups).median
    }
}

/// The rows as a table, one line per side.
fn table(rows: &[Row]) -> Table {
    let title = "Random updates of a table of so many words, GUP/s (10^9 a second)";
    let mut table = Table::new(title, 1, "table|PEs|side|median|least|most|to hpcc");
    for row in rows {
        for side in &row.sides {
            let Summary { min, median, max, .. } = Summary::of(&side.gups);
            let rates = [median, min, max].map(|rate| format!("{rate:.5}"));
            let name = format!("2^{}", row.table_log2);
            table.row((name, row.pes, side.side.as_str(), rates, format!("{:.2}", row.ratio(side))));
        }
    }
    table
}

/// Fails if aggregated messages on two PEs do not reach the bound.
fn check_gate(rows: &[Row]) -> Result<()> {
    for row in rows.iter().filter(|row| row.pes == 2) {
        for side in row.sides.iter().filter(|side| side.side == GATE_METHOD) {
            let (ratio, table_log2) = (row.ratio(side), row.table_log2);
            ensure!(ratio >= GATE, "2^{table_log2} words: {ratio:.2} times hpcc, where {GATE} is the bound");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = r#"{"gups": 0.125, "errors": 10, "updates": 4096, "pes": 2, "table_words": 1024}"#;

    fn row(pes: usize, hpcc: &[f64], messages: &[f64]) -> Row {
        let side = |name: &str, gups: &[f64]| Side { side: name.to_owned(), gups: gups.to_vec(), updates: 1 };
        Row { table_log2: 20, pes, sides: vec![side(PEER, hpcc), side(GATE_METHOD, messages)] }
    }

    #[test]
    fn results_that_are_wrong_or_of_something_else_are_refused() {
        let printed = read(OURS, 10, 2).unwrap();
        assert_eq!((printed.gups, printed.updates), (0.125, 4096));
        for (part, other) in [
            ("\"errors\": 10", "\"errors\": 11"),
            ("1024", "2048"),
            ("\"pes\": 2", "\"pes\": 1"),
            ("0.125", "0.0"),
            ("0.125", "null"),
        ] {
            let text = OURS.replace(part, other);
            assert!(read(&text, 10, 2).is_err(), "{text}");
        }
        assert!(read(OURS, 11, 2).is_err() && read("", 10, 2).is_err());
    }

    #[test]
    fn the_gate_is_about_medians_on_two_pes() {
        let kept = row(2, &[0.01, 0.5, 0.02], &[0.04, 0.01, 0.1]);
        let missed = row(2, &[0.01, 0.5, 0.02], &[0.039, 0.01, 0.1]);
        let on_four = row(4, &[1.0], &[0.5]);
        assert!(check_gate(&[kept, on_four]).is_ok());
        let said = check_gate(&[row(2, &[1.0], &[3.0]), missed]).unwrap_err().to_string();
        assert!(said.contains("2^20 words: 1.95 times hpcc"), "{said}");
    }

    #[test]
    fn the_table_has_aligned_lines_and_ratios() {
        let text = table(&[row(2, &[0.02, 0.01, 0.03], &[0.05, 0.04, 0.06])]).to_string();
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        let cells = [1, 2].map(|line| lines[line].split_whitespace().collect::<Vec<_>>());
        assert_eq!(cells[0], ["2^20", "2", "hpcc", "0.02000", "0.01000", "0.03000", "1.00"], "{text}");
        assert_eq!(cells[1], ["2^20", "2", "messages", "0.05000", "0.04000", "0.06000", "2.50"], "{text}");
    }
}
