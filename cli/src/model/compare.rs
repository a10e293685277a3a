//! `pelago model compare`: all algorithms of an operation, by size.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use pelago::coll::shape::Operation;
use pelago_boot::{out, outln, tell};
use pelago_model::time::{SECOND, Time, text};
use pelago_model::{Machine, Outcome};
use pelago_report::{Bytes, Table};
use serde::Serialize;

use super::run::simulate;
use super::{Subject, candidates};
use crate::size::bytes;

/// Compare the algorithms of a collective operation by size
///
/// The fastest of each size is marked with an asterisk. Algorithms that do not take the operation, or that
/// have more messages than --limit, are left out, and the reason is printed below the table.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Compare {
    #[command(flatten)]
    subject: Subject,
    /// The algorithms; default: all of the operation
    #[arg(long = "algorithm", value_name = "NAME", value_delimiter = ',')]
    algorithms: Vec<String>,
    /// The sizes of a block
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "8,256,4K,64K,1M",
        value_parser = bytes
    )]
    sizes: Vec<usize>,
    /// Print one JSON object a size and algorithm
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pelago model compare --machine bluegene-p --op broadcast --pes 4096
  pelago model compare --machine hdr-fat-tree --op all-to-all --pes 512 --sizes 8,1K,64K
  pelago model compare --machine bluegene-p --op all-reduce --pes 1024 --algorithm ring,rabenseifner --json";

/// A cell of the table, for a program to read.
#[derive(Serialize)]
struct Cell {
    bytes: usize,
    algorithm: &'static str,
    seconds: Option<f64>,
    best: bool,
}

impl Compare {
    pub fn execute(&self) -> anyhow::Result<ExitCode> {
        let machine = self.subject.machine()?;
        let barrier = [0];
        let sizes = if self.subject.operation == Operation::Barrier { &barrier[..] } else { &self.sizes };
        let names: Vec<&str> =
            candidates(self.subject.operation, &self.algorithms)?.iter().map(|row| row.name).collect();
        let (mut rows, mut reasons) = (Vec::new(), Vec::new());
        for &size in sizes {
            let mut row = Vec::new();
            for algorithm in candidates(self.subject.operation, &self.algorithms)? {
                let collective = self.subject.collective(&machine, algorithm, size);
                row.push(match self.subject.obstacle(&collective) {
                    None => Some(simulate(&machine, collective)?.time),
                    Some(reason) => {
                        reasons.extend((!reasons.contains(&reason)).then_some(reason));
                        None
                    }
                });
            }
            rows.push((size, row));
        }
        if rows.iter().all(|(_, row)| row.iter().all(Option::is_none)) {
            bail!("no algorithm is simulated: {}; raise --limit, or take fewer PEs", reasons.join("; "));
        }
        match self.json {
            true => print_json(&names, &rows)?,
            false => self.print_table(&machine, &names, &rows, &reasons)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print_table(
        &self,
        machine: &Machine,
        names: &[&str],
        rows: &[(usize, Vec<Option<Time>>)],
        reasons: &[String],
    ) -> anyhow::Result<()> {
        let (pes, operation) = (self.subject.pes, self.subject.operation);
        let (name, nodes) = (&machine.name, machine.nodes(pes as usize));
        let title = format!("{operation} of {pes} PEs on {name}, {nodes} nodes; * is the fastest of a size");
        let names: String = names.iter().map(|name| format!("|{name}  ")).collect();
        let mut table = Table::new(title, 0, &names).dense(0);
        for (size, row) in rows {
            let best = row.iter().flatten().min();
            let cell = |time: &Option<Time>| match time {
                Some(time) => format!("{}{}", text(*time), if Some(time) == best { " *" } else { "  " }),
                None => "-  ".to_owned(),
            };
            let first = match operation {
                Operation::Barrier => String::new(),
                _ => Bytes(*size as u64).to_string(),
            };
            table.row((first, row.iter().map(cell).collect::<Vec<_>>()));
        }
        out!("{table}")?;
        for reason in reasons {
            out!("- {reason}\n")?;
        }
        Ok(())
    }
}

fn print_json(names: &[&'static str], rows: &[(usize, Vec<Option<Time>>)]) -> anyhow::Result<()> {
    for (size, row) in rows {
        let best = row.iter().flatten().min();
        for (algorithm, time) in names.iter().zip(row) {
            let seconds = time.map(|time| time as f64 / SECOND as f64);
            let best = time.is_some() && time.as_ref() == best;
            let cell = Cell { bytes: *size, algorithm, seconds, best };
            outln!("{}", serde_json::to_string(&cell)?)?;
        }
    }
    Ok(())
}

/// The fastest of some algorithms, of all if none is named, with its result.
pub fn fastest(
    subject: &Subject,
    machine: &Machine,
    chosen: &[String],
    bytes: usize,
) -> anyhow::Result<Option<(&'static str, Outcome)>> {
    let mut best: Option<(&'static str, Outcome)> = None;
    for algorithm in candidates(subject.operation, chosen)? {
        let collective = subject.collective(machine, algorithm, bytes);
        if let Some(reason) = subject.obstacle(&collective) {
            tell(&format!("pelago model: left out: {reason}\n"));
            continue;
        }
        let outcome = simulate(machine, collective)?;
        if best.as_ref().is_none_or(|(_, other)| outcome.time < other.time) {
            best = Some((algorithm.name, outcome));
        }
    }
    Ok(best)
}
