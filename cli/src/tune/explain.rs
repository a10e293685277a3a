//! `pelago tune explain`: why an algorithm is chosen, and what the others would take.
//!
//! Invariant: the choice is that of the runtime, with the settings of the environment; nothing is measured.

use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::Args;
use pelago::coll::candidates::Candidate;
use pelago::coll::estimate::Costs;
use pelago::coll::nodes::Nodes;
use pelago::coll::select::{Choice, Laws, Preferences, Reason, preferences, size_class};
use pelago::coll::shape::{Operation, Shape};
use pelago::{Combiner, ReduceOp};
use pelago_boot::{CollFormKind, Settings, outln};
use pelago_model::Machine;
use pelago_model::tuner::Cell;
use pelago_report::{Bytes, Table, figure};
use serde::Serialize;

use crate::model::operation;
use crate::size::bytes;

/// Say why an algorithm is chosen, and compare the others
///
/// Names the setting, the rule of a tuning file with its line, or the threshold that decides; then lists the
/// other candidates with the reason why one is impossible, or with its estimated time. The settings are those
/// of the environment. Elements are doubles, which are summed where they are combined.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// The operation
    #[arg(value_name = "OPERATION", value_parser = operation())]
    operation: Operation,
    /// Size of a block: the contribution of a PE, or the data for each PE
    #[arg(long, value_name = "BYTES", default_value = "8", value_parser = bytes)]
    bytes: usize,
    /// Number of PEs
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    n: u32,
    /// Nodes, each with as many PEs; default: as many as the machine needs, otherwise 1
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    nodes: Option<u32>,
    /// The machine for times: a built-in one, or the path of a machine file; default: an average network
    #[arg(long, value_name = "MACHINE")]
    machine: Option<String>,
    /// Simulate all candidates on the machine as well
    #[arg(long, requires = "machine")]
    simulate: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pelago tune explain broadcast --bytes 64K -n 16
  pelago tune explain all-reduce --bytes 1M -n 512 --nodes 8 --machine hdr-fat-tree
  pelago tune explain all-to-all --bytes 4K -n 64 --machine mine.toml --simulate --json
  PELAGO_COLL_TUNING=best.toml pelago tune explain barrier -n 8";

/// Most messages of a simulation.
const MESSAGES: f64 = 3e6;

/// The explanation.
#[derive(Serialize)]
struct Explanation {
    operation: &'static str,
    bytes: usize,
    pes: usize,
    nodes: usize,
    machine: Option<String>,
    chosen: String,
    /// `PELAGO_COLL`, `PELAGO_SYNC_MEMORY`, `tuning file` or `thresholds`.
    by: &'static str,
    why: String,
    /// The file and the line of the rule.
    file: Option<String>,
    line: Option<usize>,
    form: Option<&'static str>,
    candidates: Vec<Row>,
}

/// A candidate.
#[derive(Serialize)]
struct Row {
    name: String,
    chosen: bool,
    impossible: Option<&'static str>,
    estimated_seconds: Option<f64>,
    simulated_seconds: Option<f64>,
}

impl Explain {
    /// Prints the explanation.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        let settings = Settings::from_env()?;
        let explanation = self.explain(&settings, &preferences(&settings)?)?;
        match self.json {
            true => outln!("{}", serde_json::to_string(&explanation)?)?,
            false => outln!("{}", explanation.text())?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The machine with the PEs of a node that follow from --nodes.
    fn machine(&self) -> anyhow::Result<Option<Machine>> {
        let Some(name) = &self.machine else { return Ok(None) };
        let mut machine = Machine::load(name).context("--machine")?;
        if let Some(nodes) = self.nodes {
            machine.pes_per_node = self.n.div_ceil(nodes) as usize;
            machine.cards_per_node = machine.cards_per_node.min(machine.pes_per_node);
        }
        Ok(Some(machine))
    }

    fn shape(&self, machine: Option<&Machine>) -> Shape {
        let pes = self.n as usize;
        let bytes = if self.operation == Operation::Barrier { 0 } else { self.bytes };
        let element = if bytes.is_multiple_of(8) { 8 } else { 1 };
        let shape = Shape::new(self.operation, 0, pes, bytes / element, element);
        let of_node = match (machine, self.nodes) {
            (Some(machine), _) => machine.pes_per_node,
            (None, nodes) => pes.div_ceil(nodes.unwrap_or(1) as usize),
        };
        if pes <= of_node {
            return shape;
        }
        Shape { nodes: Nodes::from_iter((0..pes).map(|rank| (rank / of_node) as u32)), ..shape }
    }

    fn explain(&self, settings: &Settings, preferences: &Preferences) -> anyhow::Result<Explanation> {
        if let Some(nodes) = self.nodes {
            let pes = self.n;
            ensure!(pes.is_multiple_of(nodes), "--nodes: {nodes} nodes cannot have equal parts of {pes} PEs");
        }
        let machine = self.machine()?;
        let shape = self.shape(machine.as_ref());
        let sum = Combiner::of::<f64>(ReduceOp::Sum).filter(|_| self.operation.combines());
        let laws = sum.as_ref().map(Combiner::laws);
        let Some(choice) = preferences.choose(&shape, laws) else {
            bail!("no algorithm can do this (`pelago coll list`); unset PELAGO_DETERMINISTIC");
        };
        let is_measured = choice.reason == Reason::Measured;
        Ok(Explanation {
            operation: self.operation.name(),
            bytes: shape.block_bytes(),
            pes: shape.n,
            nodes: shape.groups().len(),
            machine: machine.as_ref().map(|machine| machine.name.clone()),
            chosen: Candidate::from(choice).to_string(),
            by: setting(choice.reason),
            why: self.why(settings, preferences, &shape, choice, laws),
            file: settings.coll_tuning.clone().filter(|_| is_measured),
            line: preferences.rules.line(&shape).filter(|_| is_measured),
            form: form(settings, preferences, &shape),
            candidates: self.rows(preferences, machine.as_ref(), &shape, (choice, laws))?,
        })
    }

    /// The reason in a sentence; the settings that come first and do not apply are named, too.
    fn why(
        &self,
        settings: &Settings,
        preferences: &Preferences,
        shape: &Shape,
        choice: Choice,
        laws: Option<Laws>,
    ) -> String {
        let file = settings.coll_tuning.as_deref().unwrap_or_default();
        let rule = preferences.rules.find(shape);
        let line = preferences.rules.line(shape).unwrap_or_default();
        let mut why = match choice.reason {
            Reason::Forced => "PELAGO_COLL names it".to_owned(),
            Reason::Graph => "it communicates along the graph that PELAGO_SYNC_MEMORY asks for".to_owned(),
            Reason::Measured => format!("the rule at line {line} of {file} (PELAGO_COLL_TUNING) names it"),
            Reason::BuiltIn | Reason::Alternative => {
                format!("by the runtime's thresholds: a block of this size is {}", size_class(shape))
            }
        };
        let mut passed_over = |name: &str, whose: String| {
            if let Some(algorithm) = pelago::coll::table::find(shape.operation, name)
                && let Some(reason) = preferences.obstacle(algorithm, shape, laws)
            {
                why += &format!("; {whose} names {name}, which cannot do it: {reason}");
            }
        };
        if let Some(forced) = preferences.forced.get(&shape.operation) {
            passed_over(forced.name, "PELAGO_COLL".to_owned());
        }
        if let Some(rule) = rule {
            passed_over(rule.algorithm.name, format!("the rule at line {line} of {file}"));
        }
        why
    }

    /// The candidates: the chosen one, then the others by their times, then the impossible ones.
    fn rows(
        &self,
        preferences: &Preferences,
        machine: Option<&Machine>,
        shape: &Shape,
        (choice, laws): (Choice, Option<Laws>),
    ) -> anyhow::Result<Vec<Row>> {
        let costs = machine.map_or_else(|| Ok(Costs::default()), |machine| machine.costs(shape.n))?;
        let chosen = Candidate::from(choice);
        let cell = Cell { operation: self.operation, pes: shape.n, bytes: shape.block_bytes() };
        let mut all: Vec<_> = Candidate::all(self.operation).collect();
        // The numbers of a rule may be none of those that are usually tried.
        all.extend((!all.contains(&chosen)).then_some(chosen));
        let row = |candidate: Candidate| {
            let impossible = preferences.obstacle(candidate.algorithm, shape, laws);
            let estimated = impossible.is_none().then(|| costs.estimate(&candidate, shape) / 1e9);
            let simulated = match machine.filter(|_| self.simulate && impossible.is_none()) {
                Some(machine) => cell.simulate(machine, &candidate, MESSAGES)?.map(|ns| ns / 1e9),
                None => None,
            };
            Ok(Row {
                name: candidate.to_string(),
                chosen: candidate == chosen,
                impossible,
                estimated_seconds: estimated,
                simulated_seconds: simulated,
            })
        };
        let mut rows = all.into_iter().map(row).collect::<anyhow::Result<Vec<_>>>()?;
        let time = |row: &Row| row.simulated_seconds.or(row.estimated_seconds).unwrap_or(f64::INFINITY);
        rows.sort_by(|a, b| b.chosen.cmp(&a.chosen).then(time(a).total_cmp(&time(b))));
        Ok(rows)
    }
}

fn setting(reason: Reason) -> &'static str {
    match reason {
        Reason::Forced => "PELAGO_COLL",
        Reason::Graph => "PELAGO_SYNC_MEMORY",
        Reason::Measured => "tuning file",
        Reason::BuiltIn | Reason::Alternative => "thresholds",
    }
}

/// The form of blocking operations, if it is another one than a schedule of all members.
fn form(settings: &Settings, preferences: &Preferences, shape: &Shape) -> Option<&'static str> {
    if settings.coll_form != CollFormKind::Auto {
        return None;
    }
    match (shape.nodes.is_empty(), shape.nodes.are_shared() && preferences.wants_levels(shape)) {
        (true, _) => Some(
            "Blocking operations on one node take direct forms, which have no choice of algorithm; this is \
             about others, and all with PELAGO_COLL_FORM=schedule.",
        ),
        (false, true) => Some(
            "Blocking operations are done in two levels: directly within nodes, by a schedule between their \
             leaders. This is about those that do not block.",
        ),
        _ => None,
    }
}

impl Explanation {
    fn text(&self) -> String {
        let block = match self.operation {
            "barrier" => String::new(),
            _ => format!(" of {}", Bytes(self.bytes as u64)),
        };
        let nodes = if self.nodes == 1 { "one node".to_owned() } else { format!("{} nodes", self.nodes) };
        let of = self.machine.as_deref().unwrap_or("an average network (15 us, 1.7 GB/s)");
        let title = format!("Candidates by their times on {of}, ns");
        let mut table = Table::new(title, 1, "algorithm|estimated|simulated|");
        for row in &self.candidates {
            let ns = |seconds: Option<f64>| seconds.map(|seconds| figure(seconds * 1e9)).unwrap_or_default();
            let said = match (row.impossible, row.chosen) {
                (Some(reason), _) => format!("impossible: {reason}"),
                (None, true) => "chosen".to_owned(),
                (None, false) => String::new(),
            };
            table.row(vec![row.name.clone(), ns(row.estimated_seconds), ns(row.simulated_seconds), said]);
        }
        let form = self.form.map(|form| format!("{form}\n")).unwrap_or_default();
        format!(
            "{}{block} among {} PEs on {nodes}: {}\n  {}\n{form}\n{table}",
            self.operation, self.pes, self.chosen, self.why
        )
    }
}
