//! `pelago model run`: one collective operation.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::bail;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use pelago::coll::shape::Operation;
use pelago_boot::{out, outln};
use pelago_model::machine::Contention;
use pelago_model::time::{SECOND, text};
use pelago_model::{Machine, Outcome, run_reporting};
use pelago_report::Bytes;
use serde::Serialize;

use super::{Subject, named};
use crate::size::bytes;

/// Simulate one collective operation
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    subject: Subject,
    /// The algorithm; default: the fastest on this machine, for which all are simulated
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Size of a block
    #[arg(long, value_name = "BYTES", default_value = "8", value_parser = bytes)]
    bytes: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pelago model run --machine bluegene-p --op all-reduce --algorithm recursive-doubling --pes 100000
  pelago model run --machine bluegene-p --op all-to-all --pes 512 --bytes 4K
  pelago model run --machine slingshot-dragonfly --op barrier --pes 131072 --json
  pelago model run --machine bluegene-p --op broadcast --pes 64 --bytes 1M --contention packets";

/// The result, for a program to read.
#[derive(Serialize)]
struct Record<'a> {
    machine: &'a str,
    operation: &'static str,
    algorithm: &'static str,
    pes: u32,
    nodes: usize,
    bytes: usize,
    seconds: f64,
    first_end_seconds: f64,
    messages: u64,
    message_bytes: u64,
    /// `None` if links have no contention, and are not counted.
    busiest_link_seconds: Option<f64>,
    blocked: f64,
    computing: f64,
    events: u64,
}

/// Whether the simulation counts the data of each link.
fn counts_links(machine: &Machine) -> bool {
    machine.contention != Contention::None
}

impl Run {
    pub fn execute(&self) -> anyhow::Result<ExitCode> {
        let (subject, machine) = (&self.subject, self.subject.machine()?);
        let chosen: Vec<String> = self.algorithm.iter().cloned().collect();
        if let [name] = &chosen[..] {
            let algorithm = named(subject.operation, name)?;
            if let Some(reason) = subject.obstacle(&subject.collective(&machine, algorithm, self.bytes)) {
                bail!("--algorithm: {reason}");
            }
        }
        let start = Instant::now();
        let Some((algorithm, outcome)) = super::compare::fastest(subject, &machine, &chosen, self.bytes)?
        else {
            bail!("no algorithm is simulated; raise --limit, or take fewer PEs");
        };
        match self.json {
            true => {
                let record = self.record(&machine, algorithm, &outcome);
                outln!("{}", serde_json::to_string(&record)?)?;
            }
            false => out!("{}", self.text(&machine, algorithm, &outcome, start))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn record<'a>(&self, machine: &'a Machine, algorithm: &'static str, outcome: &Outcome) -> Record<'a> {
        let seconds = |time: u64| time as f64 / SECOND as f64;
        let total = (outcome.time as f64 * f64::from(self.subject.pes)).max(1.0);
        Record {
            machine: &machine.name,
            operation: self.subject.operation.name(),
            algorithm,
            pes: self.subject.pes,
            nodes: machine.nodes(self.subject.pes as usize),
            bytes: self.bytes,
            seconds: seconds(outcome.time),
            first_end_seconds: seconds(outcome.ends.iter().copied().min().unwrap_or(0)),
            messages: outcome.messages,
            message_bytes: outcome.bytes,
            busiest_link_seconds: counts_links(machine).then(|| seconds(outcome.busiest_link)),
            blocked: outcome.blocked as f64 / total,
            computing: outcome.computing as f64 / total,
            events: outcome.events,
        }
    }

    fn text(&self, machine: &Machine, algorithm: &'static str, outcome: &Outcome, start: Instant) -> String {
        let record = self.record(machine, algorithm, outcome);
        let elapsed = start.elapsed().as_secs_f64();
        let blocks = match self.subject.operation {
            Operation::Barrier => String::new(),
            _ => format!(", blocks of {}", Bytes(self.bytes as u64)),
        };
        let first = outcome.ends.iter().copied().min().unwrap_or(0);
        let link = 100.0 * outcome.busiest_link as f64 / (outcome.time as f64).max(1.0);
        let rows = [
            ("time", format!("{}; the first PE ends at {}", text(outcome.time), text(first))),
            ("messages", format!("{} with {} of data", outcome.messages, Bytes(outcome.bytes))),
            (
                "PEs",
                format!(
                    "{:.1} % of their time blocked, {:.1} % copying and combining",
                    100.0 * record.blocked,
                    100.0 * record.computing
                ),
            ),
            (
                "busiest link",
                match counts_links(machine) {
                    true => format!("{link:.1} % of the time carrying data"),
                    false => "not counted without contention".to_owned(),
                },
            ),
            ("simulation", format!("{} events, {elapsed:.1} s", outcome.events)),
        ];
        let mut lines = format!(
            "{} by {algorithm} on {}: {} PEs, {} nodes{blocks}\n",
            record.operation, machine.name, record.pes, record.nodes
        );
        for (name, value) in rows {
            lines += &format!("  {name:12}  {value}\n");
        }
        lines
    }
}

/// Simulates one operation, with a bar that shows the PEs that have ended.
pub fn simulate(machine: &Machine, collective: pelago_model::action::Collective) -> anyhow::Result<Outcome> {
    let bar = progress_bar(collective.shape.n, collective.algorithm.name)?;
    let mut report = |ended: usize, events: u64| {
        bar.set_position(ended as u64);
        bar.set_message(format!("{} million events", events / 1_000_000));
    };
    let outcome = run_reporting(machine, &Arc::new(collective), &mut report);
    bar.finish_and_clear();
    Ok(outcome?)
}

fn progress_bar(pes: usize, name: &'static str) -> anyhow::Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{prefix} [{bar:40}] {pos}/{len} PEs, {msg}")?;
    Ok(ProgressBar::new(pes as u64).with_style(style).with_prefix(name))
}
