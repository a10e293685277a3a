//! `pelago tune simulate`: a tuning file for a modelled machine.
//!
//! Invariant: the file and the check are functions of the machine file and the arguments; nothing is
//! measured.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use pelago::coll::candidates::Candidate;
use pelago::coll::shape::Operation;
use pelago::coll::tuning::{self, Rule};
use pelago_boot::outln;
use pelago_model::Machine;
use pelago_model::tuner::{Bounds, Cell, Trial, choose};
use pelago_report::{Bytes, Table, figure};
use serde::Serialize;

use crate::model::operation;
use crate::size::bytes;
use crate::whole_file::WholeFile;

/// Find the best algorithms on a modelled machine, and write them to a tuning file
///
/// All candidates of an operation are ranked by an estimate from the machine's LogGP values; the best few are
/// simulated, and the quickest is chosen. A simulation with more messages than --limit is left out, so that
/// the estimate decides: all-to-alls of 4096 PEs have 17 million messages, of which each takes about a
/// microsecond. The rules of the file hold for teams of up to the numbers of PEs given, on one node or
/// several.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Simulate {
    /// The machine: a built-in one, or the path of a machine file
    #[arg(long, value_name = "MACHINE")]
    machine: String,
    /// Numbers of PEs, with commas
    #[arg(short, value_name = "N", value_delimiter = ',', required = true,
        value_parser = clap::value_parser!(u32).range(2..=1 << 20))]
    n: Vec<u32>,
    /// PEs of a node; default: that of the machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pes_per_node: Option<u32>,
    /// Operations, with commas; default: all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = operation())]
    operations: Vec<Operation>,
    /// Block sizes, with commas: the contribution of a PE, or the data for each PE
    #[arg(long, value_delimiter = ',', value_parser = bytes, default_value = "8,64,512,4K,32K,128K,512K,1M")]
    bytes: Vec<usize>,
    /// Candidates that are simulated, the best by the estimate
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    best: u32,
    /// Most messages of a simulation, in millions
    #[arg(long, value_name = "MILLIONS", default_value_t = 3.0)]
    limit: f64,
    /// Path of the file to write
    #[arg(long, value_name = "FILE", default_value = "pelago-tuning.toml", conflicts_with = "check")]
    output: PathBuf,
    /// Simulate all candidates within --limit, and say how often the choice and the first guess are within 10
    /// % of the best; writes no file
    #[arg(long)]
    check: bool,
    /// Print one JSON object per operation, number of PEs and size
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pelago tune simulate --machine hdr-fat-tree -n 64,512,4096 --output hdr.toml
  pelago tune simulate --machine mine.toml -n 16 --operations all-reduce,broadcast --bytes 8,64K
  pelago tune simulate --machine tcp-veth -n 8,64 --check
  PELAGO_COLL_TUNING=hdr.toml pelago run --hosts a:64,b:64 ./my-program";

/// Within this part of the best time a choice is right.
const WITHIN: f64 = 1.1;

/// The result for an operation, a number of PEs and a size.
struct Found {
    cell: Cell,
    trials: Vec<Trial>,
    chosen: Trial,
    usual: Option<Trial>,
    /// The best of all that were simulated, if all within the limit were; and the candidates beyond it.
    best: Option<Trial>,
    left_out: usize,
}

/// The same for a program to read. Times in seconds.
#[derive(Serialize)]
struct Line {
    operation: &'static str,
    pes: usize,
    bytes: usize,
    chosen: String,
    seconds: f64,
    simulated: bool,
    first_guess: String,
    first_guess_seconds: f64,
    without_file: Option<String>,
    without_file_seconds: Option<f64>,
    best: Option<String>,
    best_seconds: Option<f64>,
    left_out: usize,
}

/// The shares of a check.
#[derive(Serialize)]
struct Shares {
    cells: usize,
    not_checked: usize,
    chosen_within_10_percent: f64,
    first_guess_within_10_percent: f64,
}

impl Simulate {
    /// Simulates, prints a table, and writes the file or the shares.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        let output = (!self.check).then(|| WholeFile::create(&self.output)).transpose()?;
        let machine = self.machine()?;
        let found = self.found(&machine)?;
        if let Some(output) = output {
            output.finish(&self.text(&machine, &found))?;
        }
        if self.json {
            found.iter().try_for_each(|found| {
                Ok::<_, anyhow::Error>(outln!("{}", serde_json::to_string(&found.line())?)?)
            })?;
        } else {
            outln!("{}", self.table(&machine, &found))?;
        }
        let path = self.output.display();
        match (self.check, self.json) {
            (true, true) => outln!("{}", serde_json::to_string(&shares(&found))?)?,
            (true, false) => outln!("{}", shares(&found))?,
            (false, true) => (),
            (false, false) => outln!("Written to {path}. To use it, set {}={path}", tuning::VARIABLE)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn machine(&self) -> anyhow::Result<Machine> {
        let mut machine = Machine::load(&self.machine).context("--machine")?;
        if let Some(pes_per_node) = self.pes_per_node {
            machine.pes_per_node = pes_per_node as usize;
            machine.cards_per_node = machine.cards_per_node.min(machine.pes_per_node);
        }
        ensure!(self.limit >= 0.0, "--limit: a number of millions is not negative");
        Ok(machine)
    }

    /// The cells, by operation, PEs and size, in ascending order.
    fn cells(&self) -> Vec<Cell> {
        let sorted = |values: &mut Vec<usize>| {
            values.sort_unstable();
            values.dedup();
        };
        let (mut numbers, mut sizes) =
            (self.n.iter().map(|n| *n as usize).collect::<Vec<_>>(), self.bytes.clone());
        sorted(&mut numbers);
        sorted(&mut sizes);
        let mut operations = match self.operations.is_empty() {
            true => Operation::ALL.to_vec(),
            false => self.operations.clone(),
        };
        operations.sort_unstable();
        operations.dedup();
        let of = |operation: Operation| {
            let sizes = if operation == Operation::Barrier { vec![0] } else { sizes.clone() };
            let numbers = numbers.clone();
            numbers.into_iter().flat_map(move |pes| {
                let cell = move |bytes| Cell { operation, pes, bytes };
                sizes.clone().into_iter().map(cell)
            })
        };
        operations.iter().flat_map(|operation| of(*operation)).collect()
    }

    fn found(&self, machine: &Machine) -> anyhow::Result<Vec<Found>> {
        let cells = self.cells();
        let bar = progress_bar(cells.len())?;
        let found = cells.into_iter().map(|cell| {
            bar.set_message(format!("{}, {} PEs, {} B", cell.operation, cell.pes, cell.bytes));
            let found = self.one(machine, cell);
            bar.inc(1);
            found.with_context(|| format!("{} of {} PEs", cell.operation, cell.pes))
        });
        let found = found.collect();
        bar.finish_and_clear();
        found
    }

    fn one(&self, machine: &Machine, cell: Cell) -> anyhow::Result<Found> {
        let bounds = Bounds { best: self.best as usize, messages: self.limit * 1e6 };
        let mut trials = cell.trials(machine, bounds)?;
        let usual = cell.usual(machine, &trials).copied();
        // The choice without a file is simulated as well, so that the file changes it for a reason.
        if let Some(usual) = usual
            && let Some(trial) = trials.iter_mut().find(|trial| trial.candidate == usual.candidate)
            && trial.simulated.is_none()
        {
            trial.simulated = cell.simulate(machine, &trial.candidate, bounds.messages)?;
        }
        let usual = cell.usual(machine, &trials).copied();
        let chosen = choose(&trials, usual.as_ref(), bounds).copied().context("no algorithm can do it")?;
        let mut best = None;
        if self.check {
            for trial in trials.iter_mut().filter(|trial| trial.simulated.is_none()) {
                trial.simulated = cell.simulate(machine, &trial.candidate, bounds.messages)?;
            }
            let simulated = trials.iter().filter(|trial| trial.simulated.is_some());
            best = simulated.min_by(|a, b| a.time().total_cmp(&b.time())).copied();
        }
        // In a check the choice may have been simulated only now.
        let again = trials.iter().find(|trial| trial.candidate == chosen.candidate);
        let chosen = again.copied().unwrap_or(chosen);
        let left_out = trials.iter().filter(|trial| trial.simulated.is_none()).count();
        Ok(Found { cell, trials, chosen, usual, best, left_out })
    }

    /// The text of the tuning file.
    fn text(&self, machine: &Machine, found: &[Found]) -> String {
        let mut text = format!(
            "# Written by pelago tune simulate {} for the machine {}, {} PEs a node.\n\n\
             nodes = \"any\"\n",
            env!("CARGO_PKG_VERSION"),
            machine.name,
            machine.pes_per_node
        );
        let team = |found: &Found| (found.cell.operation, found.cell.pes);
        for found in found.chunk_by(|a, b| team(a) == team(b)) {
            let best = |found: &Found| {
                let Candidate { algorithm, tuning } = found.chosen.candidate;
                (found.cell.bytes, algorithm, tuning)
            };
            let rules = Rule::by_bytes(found[0].cell.pes, &found.iter().map(best).collect::<Vec<_>>());
            rules.iter().for_each(|rule| text += &rule.text());
        }
        text
    }

    fn table(&self, machine: &Machine, found: &[Found]) -> Table {
        let title = format!(
            "Times on {}, {} PEs a node, ns; the first {} candidates of each estimate are simulated",
            machine.name, machine.pes_per_node, self.best
        );
        let names = match self.check {
            true => {
                "operation|PEs|block|chosen|first guess|best|chosen|first guess|best|chosen / best|\
                 guess / best|left out"
            }
            false => {
                "operation|PEs|block|chosen|without file|chosen|without file|without file / chosen|simulated"
            }
        };
        let mut table = Table::new(title, if self.check { 6 } else { 5 }, names);
        found.iter().for_each(|found| table.row(found.cells(self.check)));
        table
    }
}

impl Found {
    fn first_guess(&self) -> Trial {
        self.trials[0]
    }

    /// Whether a trial is within 10 % of the best, if one was simulated. A trial beyond the limit counts by
    /// its estimate.
    fn is_right(&self, trial: &Trial) -> bool {
        self.best.is_some_and(|best| trial.time() <= best.time() * WITHIN)
    }

    fn cells(&self, is_check: bool) -> Vec<String> {
        let Found { cell, chosen, .. } = self;
        let block = match cell.operation {
            Operation::Barrier => String::new(),
            _ => Bytes(cell.bytes as u64).to_string(),
        };
        let mut row = vec![cell.operation.to_string(), cell.pes.to_string(), block];
        row.push(chosen.candidate.to_string());
        let name = |trial: Option<Trial>| trial.map(|one| one.candidate.to_string()).unwrap_or_default();
        let time = |trial: Option<Trial>| trial.map(|one| figure(one.time())).unwrap_or_default();
        let ratio = |a: Option<Trial>, b: Option<Trial>| {
            a.zip(b).map(|(a, b)| format!("{:.3}", a.time() / b.time())).unwrap_or_default()
        };
        let (chosen, guess, best, usual) =
            (Some(self.chosen), Some(self.first_guess()), self.best, self.usual);
        if is_check {
            row.extend([name(guess), name(best), time(chosen), time(guess), time(best)]);
            row.extend([ratio(chosen, best), ratio(guess, best), self.left_out.to_string()]);
        } else {
            row.extend([name(usual), time(chosen), time(usual), ratio(usual, chosen)]);
            row.push(if self.chosen.simulated.is_some() { "yes" } else { "no" }.to_owned());
        }
        row
    }

    fn line(&self) -> Line {
        let seconds = |trial: &Trial| trial.time() / 1e9;
        let (guess, usual, best) = (self.first_guess(), self.usual, self.best);
        Line {
            operation: self.cell.operation.name(),
            pes: self.cell.pes,
            bytes: self.cell.bytes,
            chosen: self.chosen.candidate.to_string(),
            seconds: seconds(&self.chosen),
            simulated: self.chosen.simulated.is_some(),
            first_guess: guess.candidate.to_string(),
            first_guess_seconds: seconds(&guess),
            without_file: usual.map(|usual| usual.candidate.to_string()),
            without_file_seconds: usual.as_ref().map(seconds),
            best: best.map(|best| best.candidate.to_string()),
            best_seconds: best.as_ref().map(seconds),
            left_out: self.left_out,
        }
    }
}

fn shares(found: &[Found]) -> Shares {
    let cells = found.iter().filter(|found| found.best.is_some()).count();
    let share = |is_right: fn(&Found) -> bool| {
        found.iter().filter(|found| is_right(found)).count() as f64 / cells.max(1) as f64
    };
    Shares {
        cells,
        not_checked: found.len() - cells,
        chosen_within_10_percent: share(|found| found.is_right(&found.chosen)),
        first_guess_within_10_percent: share(|found| found.is_right(&found.first_guess())),
    }
}

impl std::fmt::Display for Shares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Within 10 % of the best of all simulated: the choice in {:.1} %, the first guess in {:.1} % of \
             {} cells",
            100.0 * self.chosen_within_10_percent,
            100.0 * self.first_guess_within_10_percent,
            self.cells
        )?;
        match self.not_checked {
            0 => Ok(()),
            count => write!(f, "; --limit permits no simulation of {count} more cells"),
        }
    }
}

fn progress_bar(cells: usize) -> anyhow::Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("simulating [{bar:40}] {pos}/{len}, {eta} left, {msg}")?;
    Ok(ProgressBar::new(cells as u64).with_style(style))
}
