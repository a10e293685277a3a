//! `pelago coll`: lists, draws and checks the algorithms of collective operations.
//!
//! Invariant: no algorithm is executed. The command shows and checks the schedules that the runtime would
//! execute.

use crate::size::bytes;
use std::io::IsTerminal;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use pelago::coll::check::cases::{Case, NodeMap};
use pelago::coll::check::{CheckOptions, Defect, Report, check};
use pelago::coll::draw;
use pelago::coll::schedule::Schedule;
use pelago::coll::shape::{Operation, Tuning};
use pelago::coll::table::{Algorithm, Fold, algorithms, find};
use pelago_apps::nearest;
use pelago_boot::{out, outln, print};
use pelago_report::{Bytes, Table};
use serde::Serialize;

/// The maximum number of PEs of a team that is shown or checked.
const TEAM_MAX: usize = 4096;
/// The width of drawings and texts, in characters.
const WIDTH: usize = 80;

/// List, draw and check the algorithms of collective operations
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Coll {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    List(List),
    Show(Show),
    Check(Check),
}

const EXAMPLES: &str = "\
Examples:
  pelago coll list                                   all algorithms, with what they cost 8 PEs
  pelago coll show broadcast --algorithm binomial    who sends what to whom, in rounds
  pelago coll show all_reduce -n 16 --svg ring.svg --algorithm ring
  pelago coll check -n 1..=64 --all-roots            proves all algorithms for these teams";

const LIST_EXAMPLES: &str = "\
Examples:
  pelago coll list                          what each algorithm costs 8 PEs
  pelago coll list reduce -n 1000           only one operation, for more PEs
  pelago coll list -n 64 --bytes 1M --json  for a program to read";

const SHOW_EXAMPLES: &str = "\
Examples:
  pelago coll show barrier                                the first algorithm of its table, 8 PEs
  pelago coll show broadcast --algorithm chain --bytes 64K --segment-bytes 16K
  pelago coll show reduce --algorithm hierarchical -n 12 --nodes 3 --root 5
  pelago coll show scatter -n 16 --svg scatter.svg        as a picture for a browser";

const CHECK_EXAMPLES: &str = "\
Examples:
  pelago coll check                                  all algorithms, 1 to 16 PEs
  pelago coll check broadcast -n 1..=64 --all-roots  one operation, more PEs, every root
  pelago coll check reduce --algorithm binomial -n 257";

/// List the algorithms with their costs
#[derive(Args)]
#[command(after_help = LIST_EXAMPLES)]
struct List {
    /// Only the algorithms of this operation
    #[arg(value_name = "OPERATION", value_parser = operation())]
    operation: Option<Operation>,
    /// Number of PEs
    #[arg(short, value_name = "N", default_value = "8", value_parser = team)]
    n: usize,
    /// Size of a block
    #[arg(long, value_name = "BYTES", default_value = "8", value_parser = bytes)]
    bytes: usize,
    /// Print one JSON object an algorithm
    #[arg(long)]
    json: bool,
}

/// Draw the messages of an algorithm
///
/// PEs are columns, time goes down. Arrows of the same round can be on their way at the same time.
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct Show {
    /// The operation
    #[arg(value_name = "OPERATION", value_parser = operation())]
    operation: Operation,
    /// The algorithm; default: the first one that supports the team
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Number of PEs
    #[arg(short, value_name = "N", default_value = "8", value_parser = team)]
    n: usize,
    /// The root
    #[arg(long, value_name = "PE", default_value_t = 0)]
    root: usize,
    /// Size of a block
    #[arg(long, value_name = "BYTES", default_value = "1K", value_parser = bytes)]
    bytes: usize,
    /// Number of nodes of the PEs; the PEs of a node are consecutive
    #[arg(long, value_name = "NODES", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    nodes: u32,
    /// Radix of k-nomial trees
    #[arg(long, value_name = "K", default_value_t = Tuning::default().radix as u64,
          value_parser = clap::value_parser!(u64).range(2..))]
    radix: u64,
    /// Size of a piece in pipelines
    #[arg(long, value_name = "BYTES", default_value = "32K", value_parser = bytes)]
    segment_bytes: usize,
    /// Write an SVG drawing to this file instead of a text
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Check that algorithms are correct, without running them
///
/// Checks contents, deadlock, races, and the use of memory and signals. Each team gets sizes, layouts, nodes
/// and tuning in turn; teams of up to 5 PEs get all combinations. The exit status is 1 if there is a defect.
#[derive(Args)]
#[command(after_help = CHECK_EXAMPLES)]
struct Check {
    /// Only the algorithms of this operation
    #[arg(value_name = "OPERATION", value_parser = operation())]
    operation: Option<Operation>,
    /// Only the algorithm of this name
    #[arg(long, value_name = "NAME", requires = "operation")]
    algorithm: Option<String>,
    /// Numbers of PEs: one, or a range such as 1..=64
    #[arg(short, value_name = "N", default_value = "1..=16", value_parser = teams)]
    n: RangeInclusive<usize>,
    /// Every PE in turn as the root, not only PE 0
    #[arg(long)]
    all_roots: bool,
    /// Number of signals from one PE to another that may be in flight before the next one has to wait
    #[arg(long, value_name = "COUNT", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..))]
    credits: u32,
}

impl Coll {
    /// Runs the command; returns the exit status.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::List(list) => list.execute(),
            Action::Show(show) => show.execute(),
            Action::Check(check) => check.execute(),
        }
    }
}

/// A row of the list.
#[derive(Serialize)]
struct Row {
    operation: &'static str,
    algorithm: &'static str,
    summary: &'static str,
    source: &'static str,
    /// The order in which it combines elements.
    fold: &'static str,
    #[serde(flatten)]
    cost: Option<Cost>,
    /// Why it does not support this team, if it does not.
    restriction: Option<&'static str>,
}

/// The costs of an algorithm for a team.
#[derive(Serialize)]
struct Cost {
    messages: usize,
    bytes: usize,
    rounds: usize,
    messages_max: usize,
    slots_total: usize,
    in_neighbours_max: usize,
}

impl List {
    fn execute(&self) -> anyhow::Result<ExitCode> {
        let chosen =
            algorithms().filter(|row| self.operation.is_none_or(|operation| row.operation == operation));
        let rows = chosen.map(|algorithm| self.row(algorithm)).collect::<anyhow::Result<Vec<_>>>()?;
        if self.json {
            for row in &rows {
                outln!("{}", serde_json::to_string(row)?)?;
            }
        } else {
            print(&self.text(&rows))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn row(&self, algorithm: &'static Algorithm) -> anyhow::Result<Row> {
        let case = block(algorithm.operation, self.n, self.bytes);
        let restriction = (algorithm.restriction)(&case.shape(0));
        let cost = match restriction {
            Some(_) => None,
            None => Some(Cost::of(&prove(algorithm, &case, &CheckOptions::default())?)),
        };
        Ok(Row {
            operation: algorithm.operation.name(),
            algorithm: algorithm.name,
            summary: algorithm.summary,
            source: algorithm.source,
            fold: fold(algorithm.fold),
            cost,
            restriction,
        })
    }

    fn text(&self, rows: &[Row]) -> String {
        let (n, size) = (self.n, Bytes(self.bytes as u64));
        let title = format!("{n} PEs, blocks of {size}; messages and bytes of all PEs together");
        let names = "operation|algorithm|order|messages|bytes|rounds|<what it does";
        let mut table = Table::new(title, 3, names).dense(2);
        for row in rows {
            let figures = match &row.cost {
                Some(cost) => [cost.messages, cost.bytes, cost.rounds].map(|figure| figure.to_string()),
                None => ["-"; 3].map(str::to_owned),
            };
            let note = row.restriction.map_or(String::new(), |why| format!(" (not here: {why})"));
            let what = format!("{}{note}", row.summary);
            table.row(([row.operation, row.algorithm, row.fold], figures, what));
        }
        table.to_string()
    }
}

impl Cost {
    fn of(report: &Report) -> Cost {
        let Report { messages, bytes, rounds, messages_max, slots_total, in_neighbours_max, .. } = *report;
        Cost { messages, bytes, rounds, messages_max, slots_total, in_neighbours_max }
    }
}

impl Show {
    fn execute(&self) -> anyhow::Result<ExitCode> {
        ensure!(self.root < self.n, "--root {}: the PEs are 0 to {}", self.root, self.n - 1);
        ensure!(
            self.root == 0 || self.operation.is_rooted(),
            "--root {}: {} has no root; leave it away",
            self.root,
            self.operation
        );
        let case = Case {
            root: self.root,
            nodes: if self.nodes == 1 { NodeMap::One } else { NodeMap::Runs(self.nodes) },
            tuning: Tuning { radix: self.radix as usize, segment_bytes: self.segment_bytes.max(1) },
            ..block(self.operation, self.n, self.bytes)
        };
        let algorithm = match &self.algorithm {
            Some(name) => named(self.operation, name)?,
            None => first_fit(&case)?,
        };
        if let Some(why) = (algorithm.restriction)(&case.shape(0)) {
            bail!("{} does not take {case}: {why}", algorithm.name);
        }
        let options = CheckOptions::default();
        let shape = case.shapes();
        let schedule = |rank| algorithm.schedule(&shape(rank), options.mailbox_bytes);
        let schedules: Vec<Schedule> = (0..self.n).map(schedule).collect();
        let title = format!("{} / {}: {}", self.operation, algorithm.name, self.team());
        if let Some(file) = &self.svg {
            let picture = draw::svg(&title, &schedules);
            std::fs::write(file, picture)
                .with_context(|| format!("--svg: writing {} failed", file.display()))?;
            outln!("{title}, drawn in {}", file.display())?;
        } else {
            out!(
                "{title}\n{} ({})\n\n{}",
                algorithm.summary,
                algorithm.source,
                draw::text(&schedules, WIDTH)
            )?;
        }
        let checked = check(algorithm, &case.shapes(), &options);
        say(&checked)
    }

    /// The description of the team and its data.
    fn team(&self) -> String {
        let mut text = format!("{} PEs", self.n);
        if self.operation.is_rooted() {
            text += &format!(", root {}", self.root);
        }
        if self.operation != Operation::Barrier {
            text += &format!(", blocks of {}", Bytes(self.bytes as u64));
        }
        if self.nodes > 1 {
            text += &format!(", {} nodes", self.nodes);
        }
        text
    }
}

/// Prints the checker's result for schedules that were shown.
fn say(checked: &Result<Report, Defect>) -> anyhow::Result<ExitCode> {
    match checked {
        Ok(report) => {
            outln!(
                "\nmessages {}, bytes {}, rounds {}; a PE starts at most {}, waits for {},\n\
                 copies {}, combines {}; words to synchronise on {}, of a PE at most {},\n\
                 from neighbours {}",
                report.messages,
                Bytes(report.bytes as u64),
                report.rounds,
                report.messages_max,
                report.waits_max,
                Bytes(report.copied_bytes_max as u64),
                Bytes(report.reduced_bytes_max as u64),
                report.slots_total,
                report.slots_max,
                report.in_neighbours_max
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Err(defect) => {
            outln!("\nDEFECT: {defect}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

impl Check {
    fn execute(&self) -> anyhow::Result<ExitCode> {
        let chosen: Vec<&Algorithm> = match (self.operation, &self.algorithm) {
            (Some(operation), Some(name)) => vec![named(operation, name)?],
            (operation, _) => algorithms()
                .filter(|row| operation.is_none_or(|operation| row.operation == operation))
                .collect(),
        };
        let bar = progress_bar(chosen.iter().map(|algorithm| self.teams(algorithm).count()).sum())?;
        let width = chosen.iter().map(|algorithm| full_name(algorithm).len()).max().unwrap_or(0);
        let mut is_right = true;
        for algorithm in chosen {
            bar.set_message(full_name(algorithm));
            let name = full_name(algorithm);
            let line = match self.prove(algorithm, &bar) {
                Ok(cases) => format!("{name:width$}  right in {cases} cases"),
                Err((case, defect)) => {
                    is_right = false;
                    format!("{name:width$}  DEFECT in {case}:\n  {defect}")
                }
            };
            bar.suspend(|| outln!("{line}"))?;
        }
        bar.finish_and_clear();
        Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// The teams that an algorithm is checked for, with their roots.
    fn teams(&self, algorithm: &Algorithm) -> impl Iterator<Item = (usize, usize)> + use<> {
        let every = self.all_roots && algorithm.operation.is_rooted();
        self.n.clone().flat_map(move |n| (0..if every { n } else { 1 }).map(move |root| (n, root)))
    }

    /// Checks an algorithm; returns the number of cases.
    fn prove(&self, algorithm: &Algorithm, bar: &ProgressBar) -> Result<usize, (Case, Defect)> {
        let options = CheckOptions { credits: Some(self.credits as usize), ..CheckOptions::default() };
        let mut checked = 0;
        for (number, (n, root)) in self.teams(algorithm).enumerate() {
            let plain = Case { root, ..Case::new(algorithm.operation, n, 1) };
            let variants = if n <= 5 { plain.variants() } else { vec![plain, plain.variant(number)] };
            for case in variants {
                if (algorithm.restriction)(&case.shape(0)).is_none() {
                    check(algorithm, &case.shapes(), &options).map_err(|defect| (case, defect))?;
                    checked += 1;
                }
            }
            bar.inc(1);
        }
        Ok(checked)
    }
}

fn progress_bar(length: usize) -> anyhow::Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("teams [{bar:40}] {pos}/{len} {msg}")?;
    Ok(ProgressBar::new(length as u64).with_style(style))
}

fn full_name(algorithm: &Algorithm) -> String {
    format!("{}/{}", algorithm.operation, algorithm.name)
}

fn fold(fold: Fold) -> &'static str {
    match fold {
        Fold::None => "-",
        Fold::Ranks => "ranks",
        Fold::Tree => "tree",
        Fold::Any => "any",
    }
}

/// The case of blocks of `bytes` bytes: of elements of 8 bytes if that is possible.
fn block(operation: Operation, n: usize, bytes: usize) -> Case {
    match bytes % 8 {
        0 => Case::new(operation, n, bytes / 8),
        _ => Case { element_bytes: 1, ..Case::new(operation, n, bytes) },
    }
}

fn prove(algorithm: &Algorithm, case: &Case, options: &CheckOptions) -> anyhow::Result<Report> {
    check(algorithm, &case.shapes(), options)
        .with_context(|| format!("{} has a defect in {case}", full_name(algorithm)))
}

fn of(operation: Operation) -> impl Iterator<Item = &'static Algorithm> {
    algorithms().filter(move |algorithm| algorithm.operation == operation)
}

fn named(operation: Operation, name: &str) -> anyhow::Result<&'static Algorithm> {
    if let Some(algorithm) = find(operation, name) {
        return Ok(algorithm);
    }
    let names = || of(operation).map(|algorithm| algorithm.name);
    let list = names().collect::<Vec<_>>().join(", ");
    let nearest = nearest(name, names()).unwrap_or_default();
    bail!("{operation} has no algorithm {name:?}; did you mean {nearest}? (there are {list})")
}

fn first_fit(case: &Case) -> anyhow::Result<&'static Algorithm> {
    let fits = |algorithm: &&Algorithm| (algorithm.restriction)(&case.shape(0)).is_none();
    of(case.operation).find(fits).with_context(|| format!("no algorithm takes {case}"))
}

fn operation() -> impl TypedValueParser<Value = Operation> {
    PossibleValuesParser::new(Operation::ALL.map(Operation::name))
        .try_map(|name| Operation::from_name(&name).ok_or("not an operation"))
}

fn team(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=TEAM_MAX).contains(&n) => Ok(n),
        _ => Err(format!("a team has 1 to {TEAM_MAX} PEs")),
    }
}

fn teams(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (low, high) = match text.split_once("..") {
        Some((low, high)) => (team(low)?, team(high.trim_start_matches('='))?),
        None => (team(text)?, team(text)?),
    };
    if low > high { Err(format!("the range is empty; did you mean {high}..={low}?")) } else { Ok(low..=high) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_are_numbers_and_ranges() {
        assert_eq!((teams("7"), teams("1..=64"), teams("2..4")), (Ok(7..=7), Ok(1..=64), Ok(2..=4)));
        for bad in ["", "0", "5000", "3..=2", "..=4", "1..=", "a", "-1"] {
            assert!(teams(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn blocks_have_whole_elements() {
        let case = block(Operation::Broadcast, 4, 24);
        assert_eq!((case.count, case.element_bytes), (3, 8));
        let case = block(Operation::Broadcast, 4, 25);
        assert_eq!((case.count, case.element_bytes), (25, 1));
    }
}
