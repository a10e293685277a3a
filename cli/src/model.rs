//! `pelago model`: collective operations on modelled machines, in virtual time.
//!
//! Invariant: times are those of the model. Nothing is executed, so they are the same on every machine.

mod compare;
mod run;

use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use pelago::coll::shape::Operation;
use pelago::coll::table::{Algorithm, algorithms, find};
use pelago_apps::nearest;
use pelago_boot::{out, outln};
use pelago_model::Machine;
use pelago_model::action::Collective;
use pelago_model::machine::{BUILT_IN, Contention};
use serde::Serialize;

/// Simulate collective operations on modelled machines with many PEs, in virtual time
///
/// The schedules are those that the runtime executes. A machine is a file, or one that is built in: its
/// LogGP parameters, its nodes and its links. docs/model.md describes the files and the models. `pelago sim`
/// runs whole applications over a simulated network instead, as threads.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Model {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Machines(Machines),
    Show(Show),
    Run(run::Run),
    Compare(compare::Compare),
}

const EXAMPLES: &str = "\
Examples:
  pelago model machines                              the machines that are built in
  pelago model show bluegene-p > mine.toml           a machine file to change
  pelago model run --machine bluegene-p --op all-reduce --algorithm recursive-doubling --pes 100000
  pelago model run --machine mine.toml --op barrier --pes 4096 --json
  pelago model compare --machine hdr-fat-tree --op broadcast --pes 4096    which algorithm for which size";

const MACHINES_EXAMPLES: &str = "\
Examples:
  pelago model machines            names and sizes
  pelago model machines --json     for a program to read";

const SHOW_EXAMPLES: &str = "\
Examples:
  pelago model show hdr-fat-tree               its values, with their sources
  pelago model show bluegene-p > mine.toml     the start of a machine file of your own";

/// List the machines that are built in
#[derive(Args)]
#[command(after_help = MACHINES_EXAMPLES)]
struct Machines {
    /// Print one JSON object a machine
    #[arg(long)]
    json: bool,
}

/// Print the file of a built-in machine
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct Show {
    /// Its name
    #[arg(
        value_name = "MACHINE",
        value_parser = PossibleValuesParser::new(BUILT_IN.map(|machine| machine.name))
    )]
    machine: String,
}

/// The simulated machine and operation, in all subcommands that simulate.
#[derive(Args)]
struct Subject {
    /// The machine: a built-in one, or the path of a machine file
    #[arg(long, value_name = "MACHINE")]
    machine: String,
    /// The operation
    #[arg(long = "op", value_name = "OPERATION", value_parser = operation())]
    operation: Operation,
    /// Number of PEs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pes: u32,
    /// PEs of a node; default: that of the machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pes_per_node: Option<u32>,
    /// How messages share links, from the fastest simulation to the slowest; default: that of the machine
    #[arg(long, value_name = "MODEL", value_parser = contention())]
    contention: Option<Contention>,
    /// Most messages of a simulation: each takes about a microsecond of this machine, with packets 10
    #[arg(long, value_name = "MILLIONS", default_value = "50")]
    limit: u32,
}

/// A machine, as `machines` lists it.
#[derive(Serialize)]
struct Row {
    name: String,
    about: String,
    pes_per_node: usize,
    cards_per_node: usize,
    latency_ns: f64,
    bytes_per_second: f64,
}

impl Model {
    /// Executes the subcommand; returns the exit status.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::Machines(machines) => machines.execute(),
            Action::Show(show) => show.execute(),
            Action::Run(run) => run.execute(),
            Action::Compare(compare) => compare.execute(),
        }
    }
}

impl Machines {
    fn execute(&self) -> anyhow::Result<ExitCode> {
        let mut rows = Vec::new();
        for built_in in BUILT_IN {
            let machine = built_in.machine()?;
            rows.push(Row {
                name: machine.name,
                about: machine.about,
                pes_per_node: machine.pes_per_node,
                cards_per_node: machine.cards_per_node,
                latency_ns: machine.network.latency as f64 / 1e3,
                bytes_per_second: machine.network.bytes_per_second,
            });
        }
        if self.json {
            for row in &rows {
                outln!("{}", serde_json::to_string(row)?)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        for row in &rows {
            outln!("{:width$}  {}", row.name, row.about)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Show {
    fn execute(&self) -> anyhow::Result<ExitCode> {
        let found = BUILT_IN.iter().find(|machine| machine.name == self.machine);
        out!("{}", found.context("no such machine")?.text)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Subject {
    /// The machine with the settings of the command line.
    fn machine(&self) -> anyhow::Result<Machine> {
        let mut machine = Machine::load(&self.machine).context("--machine")?;
        if let Some(pes_per_node) = self.pes_per_node {
            machine.pes_per_node = pes_per_node as usize;
            machine.cards_per_node = machine.cards_per_node.min(machine.pes_per_node);
        }
        machine.contention = self.contention.unwrap_or(machine.contention);
        if let Err(reason) = machine.topology(self.pes as usize) {
            bail!("--pes: {reason}");
        }
        Ok(machine)
    }

    /// The operation with blocks of `bytes` bytes.
    fn collective(&self, machine: &Machine, algorithm: &'static Algorithm, bytes: usize) -> Collective {
        let bytes = if self.operation == Operation::Barrier { 0 } else { bytes };
        Collective::world(algorithm, self.pes as usize, bytes, machine.pes_per_node)
    }

    /// The reason why an operation is not simulated: its algorithm does not take it, or it is too long.
    fn obstacle(&self, collective: &Collective) -> Option<String> {
        if let Some(reason) = (collective.algorithm.restriction)(&collective.shape) {
            return Some(format!("{}: {reason}", collective.algorithm.name));
        }
        let (messages, limit) = (collective.messages(), f64::from(self.limit) * 1e6);
        (messages > limit).then(|| {
            let millions = messages / 1e6;
            let name = collective.algorithm.name;
            format!("{name} has about {millions:.0} million messages; --limit {} allows less", self.limit)
        })
    }
}

/// Hyphens and underscores are the same in names of operations and algorithms.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

fn named(operation: Operation, name: &str) -> anyhow::Result<&'static Algorithm> {
    if let Some(found) = find(operation, &plain(name)) {
        return Ok(found);
    }
    let names = || algorithms().filter(|row| row.operation == operation).map(|row| row.name);
    let list = names().collect::<Vec<_>>().join(", ");
    let nearest = nearest(&plain(name), names()).unwrap_or_default();
    bail!("--algorithm: {operation} has no {name:?}; did you mean {nearest}? (there are {list})")
}

pub fn operation() -> impl TypedValueParser<Value = Operation> {
    |name: &str| {
        let found = Operation::from_name(&plain(name));
        let names = Operation::ALL.map(Operation::name);
        let hint = nearest(&plain(name), names).unwrap_or_default();
        found.ok_or_else(|| format!("did you mean {hint}? (there are {})", names.join(", ")))
    }
}

fn contention() -> impl TypedValueParser<Value = Contention> {
    let value = |name: String| Contention::ALL.into_iter().find(|(known, _)| *known == name);
    PossibleValuesParser::new(Contention::ALL.map(|(name, _)| name))
        .try_map(move |name| value(name).map(|(_, value)| value).ok_or("not a model"))
}

/// The algorithms that can perform an operation.
fn candidates(operation: Operation, chosen: &[String]) -> anyhow::Result<Vec<&'static Algorithm>> {
    if chosen.is_empty() {
        return Ok(algorithms().filter(|row| row.operation == operation).collect());
    }
    let found: Vec<_> = chosen.iter().map(|name| named(operation, name)).collect::<Result<_, _>>()?;
    ensure!(!found.is_empty(), "--algorithm: no algorithm is named");
    Ok(found)
}
