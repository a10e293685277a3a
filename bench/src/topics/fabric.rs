//! One-sided operations of a fabric (`perf fabric`), and `cargo xtask compare fabric`: the same compared with
//! a program over libfabric alone (c/fabric.c), which the system's compiler builds.
//!
//! Invariant: each operation is complete when it is counted, a put when it is delivered; windows are
//! completed one by one. Both sides run the same operations over the same provider and domain, which each of
//! them reports, between two processes with the same placement, in the same number of blocks, and alternate
//! row by row.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};

use super::rma;
use crate::base::effort::EffortOptions;
use crate::base::hosts::namespaces;
use crate::base::peers::{self, Printed, Side};
use crate::base::prelude::*;
use crate::base::rounds::{self, Files, Gate, gates_table};

/// The target PE.
const TARGET: Pe = 1;
/// The number of puts of 8 bytes between two completions.
const RATE_WINDOW: usize = 64;
/// The number of large transfers between two completions.
const BANDWIDTH_WINDOW: usize = 8;
/// The size of a large transfer, in bytes.
const LARGE_BYTES: usize = 1 << 20;
const WORD_BYTES: usize = size_of::<u64>();

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Row {
    /// A put of 8 bytes and quiet
    Put,
    /// A get of 8 bytes
    Get,
    /// fetch_add of a u64
    FetchAdd,
    /// Windows of 64 puts of 8 bytes, with a quiet after each window
    PutRate,
    /// Windows of 8 puts of 1 MiB
    PutBandwidth,
    /// Windows of 8 gets of 1 MiB
    GetBandwidth,
}

/// The measurements, and their duration.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Measurements (default: all)
    #[arg(long, value_delimiter = ',')]
    rows: Vec<Row>,
    #[command(flatten)]
    effort: EffortOptions,
}

/// Collective, for two PEs or more: measures each row separately.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for a large transfer.
pub fn all(world: &World, options: &Options, effort: Effort, sink: Sink<'_>) -> Result<()> {
    let memory = Memory::new(world)?;
    let mut suite = Suite::new(world, options.effort.effort(effort));
    let rows = if options.rows.is_empty() { Row::value_variants() } else { &options.rows };
    for &row in rows {
        let (bench, operation, bytes, window) = match row {
            Row::Put => (Bench::Latency, Operation::Put, WORD_BYTES, None),
            Row::Get => (Bench::Latency, Operation::Get, WORD_BYTES, None),
            Row::FetchAdd => (Bench::AtomicLatency, Operation::FetchAdd, WORD_BYTES, None),
            Row::PutRate => (Bench::Rate, Operation::Put, WORD_BYTES, Some(RATE_WINDOW)),
            Row::PutBandwidth => (Bench::Flood, Operation::Put, LARGE_BYTES, Some(BANDWIDTH_WINDOW)),
            Row::GetBandwidth => (Bench::Flood, Operation::Get, LARGE_BYTES, Some(BANDWIDTH_WINDOW)),
        };
        let label = suite.label(bench, operation, bytes);
        let label = window.map_or(label, |window| label.with_window(window));
        let label = if row == Row::FetchAdd { label.in_place(Place::Other) } else { label };
        suite.add([(label, memory.part(row))]);
    }
    suite.run(sink)
}

/// The memory of the rows.
struct Memory<'w> {
    words: Symmetric<'w, u64>,
    large: Symmetric<'w, u64>,
    /// The source of puts and target of gets, with a place for each transfer of a window.
    private: RefCell<Vec<u64>>,
}

impl<'w> Memory<'w> {
    /// Collective.
    fn new(world: &'w World) -> pelago::Result<Self> {
        let large_words = LARGE_BYTES / WORD_BYTES;
        let len = if world.my_pe() == 0 { BANDWIDTH_WINDOW * large_words } else { 0 };
        let private = RefCell::new(vec![1; len]);
        Ok(Memory {
            words: world.alloc_zeroed(RATE_WINDOW)?,
            large: world.alloc_zeroed(large_words)?,
            private,
        })
    }

    fn part<'a>(&'a self, row: Row) -> Part<'a> {
        let world = self.words.world();
        match row {
            Row::Put => rma::put_quiet(&self.words),
            Row::Get => only_first(world, move |count| {
                let mut value = [0];
                (0..count).try_for_each(|_| self.words.get(TARGET, 0, &mut value))
            }),
            Row::FetchAdd => only_first(world, move |count| {
                (0..count).try_for_each(|_| self.words.fetch_add(TARGET, 0, 1).map(drop))
            }),
            Row::PutRate => only_first(world, move |count| {
                (0..count).try_for_each(|_| {
                    let mut places = 0..RATE_WINDOW;
                    places.try_for_each(|at| self.words.put(TARGET, at, &[at as u64 + 1]))?;
                    world.quiet();
                    Ok(())
                })
            }),
            Row::PutBandwidth => only_first(world, move |count| {
                let private = self.private.borrow();
                let source = &private[..self.large.len()];
                (0..count).try_for_each(|_| {
                    world.scope(|scope| {
                        (0..BANDWIDTH_WINDOW).try_for_each(|_| scope.put(&self.large, TARGET, 0, source))
                    })
                })
            }),
            Row::GetBandwidth => only_first(world, move |count| {
                let mut private = self.private.borrow_mut();
                (0..count).try_for_each(|_| {
                    world.scope(|scope| {
                        let mut targets = private.chunks_mut(self.large.len());
                        targets.try_for_each(|target| scope.get(&self.large, TARGET, 0, target))
                    })
                })
            }),
        }
    }
}

/// The maximum ratio of our time to theirs for a row, if it has a bound.
fn bound(row: &str) -> Option<f64> {
    match row {
        "put" | "get" => Some(1.05),
        "put-bandwidth" | "get-bandwidth" => Some(1.0 / 0.97),
        _ => None,
    }
}
/// The blocks of both sides: about ten operations long, and many of them, so that some are undisturbed. The
/// time limit is large, so that the number of blocks is the same: with more blocks, the shortest block is
/// shorter.
const EFFORT: [&str; 6] = ["--block-us", "500", "--blocks", BLOCKS, "--budget-ms", "60000"];
const BLOCKS: &str = "301";

/// The options of the comparison.
#[derive(Args)]
pub struct Compare {
    /// Number of rounds; in each, both sides run every row
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rows (default: all)
    #[arg(long, value_delimiter = ',')]
    rows: Vec<Row>,
    /// Libfabric's provider
    #[arg(long, default_value = "tcp;ofi_rxm")]
    provider: String,
    /// Its domain (default: the first that libfabric names)
    #[arg(long)]
    domain: Option<String>,
    /// Put the two processes of a side into these network namespaces (`ip netns`); needs root
    #[arg(long, value_name = "A,B", value_parser = namespaces)]
    netns: Option<[String; 2]>,
    /// Bind each process, with the threads that libfabric starts in it, to a separate core
    #[arg(long)]
    bind: bool,
    /// Let libfabric's side yield its core while it waits, like a PE; by default it spins
    #[arg(long)]
    r#yield: bool,
    /// Request neither atomics nor automatic progress on libfabric's side, like Pelago with its progress
    /// thread; fetch-add is left out
    #[arg(long)]
    calls: bool,
    /// Use the median block of a run in place of the shortest
    #[arg(long)]
    middle: bool,
    #[command(flatten)]
    files: Files,
}

impl Compare {
    /// Builds both programs, runs all rounds, prints the comparison, and fails if a gate fails.
    pub fn run(&self) -> Result<()> {
        let bare = peers::compile(Path::new("gcc"), "fabric.c", "bare", &["-lfabric"])
            .context("libfabric's headers: sudo apt-get install gcc libfabric-dev")?;
        let pelago = peers::pelago()?;
        let mut fabrics = Vec::new();
        let run = |side: Side, row: &str| {
            let mut command = if side == Side::Pelago { self.ours(&pelago) } else { self.theirs(&bare) };
            let lines = Printed::of(command.args(["--rows", row]).args(EFFORT))?;
            let Ok([line]) = <[Printed; 1]>::try_from(lines) else {
                bail!("{}: not one line for {row}", side.name())
            };
            let (line, fabric) = checked(line, row)?;
            if !fabrics.contains(&fabric) {
                fabrics.push(fabric);
            }
            Ok(vec![line])
        };
        let figure_ns = |printed: &Printed| if self.middle { printed.median } else { printed.min };
        let sides = [Side::Pelago, Side::Libfabric];
        let collected = rounds::measure("", self.rounds, &sides, &self.names(), figure_ns, run)?;
        let [fabric] = &fabrics[..] else {
            bail!("the sides did not use the same fabric: {}", fabrics.join(", "))
        };
        let rows = collected.rows(2);
        // The gates apply only if libfabric's side uses automatic progress.
        let gates: Vec<_> = rows.iter().filter_map(gate).filter(|_| !self.calls).collect();
        let tables = [rounds::table(&self.heading(fabric), &rows), gates_table(&gates)];
        rounds::finish("One-sided operations over libfabric", &rows, &gates, &tables, &self.files)
    }

    /// The selected rows.
    fn names(&self) -> Vec<String> {
        let is_wanted = |row: &&Row| match self.rows.is_empty() {
            true => !(self.calls && **row == Row::FetchAdd),
            false => self.rows.contains(row),
        };
        let name =
            |row: &Row| row.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
        Row::value_variants().iter().filter(is_wanted).map(name).collect()
    }

    fn heading(&self, fabric: &str) -> String {
        let place = match &self.netns {
            Some([first, second]) => format!("in network namespaces {first} and {second}"),
            None => "on one machine".to_owned(),
        };
        let binding = if self.bind { "bound to cores" } else { "not bound" };
        let waiting = if self.r#yield { "yields its core" } else { "spins" };
        let waiting =
            if self.calls { format!("{waiting}, and moves data in calls") } else { waiting.to_owned() };
        let figure = if self.middle { "middle" } else { "shortest" };
        format!(
            "{fabric}, two processes {place}, {binding}; libfabric's side {waiting}.\n\
         Microseconds an operation: the {figure} of many short blocks, the median over the rounds;\n\
         in brackets the median of the ratios (ours to theirs). put: 8 bytes and quiet, each; put-rate: 64\n\
         puts and a quiet; bandwidth: 8 transfers of 1 MiB, then complete.\n"
        )
    }

    fn ours(&self, pelago: &Path) -> Command {
        let mut command = Command::new(pelago);
        command.args(["run", "-n", "2"]).args(self.bind.then_some("--bind"));
        let provider = format!("PELAGO_OFI_PROVIDER={}", self.provider);
        let domain = self.domain.as_ref().map(|domain| format!("PELAGO_OFI_INTERFACE={domain}"));
        for variable in
            ["PELAGO_ROUTE=net", "PELAGO_FABRIC=ofi", &provider].into_iter().chain(domain.as_deref())
        {
            command.args(["--env", variable]);
        }
        match &self.netns {
            Some(places) => {
                command.args(["sh", "-c", ENTER, "sh"]).args(places).arg(pelago).args(["app", "perf"]);
            }
            None => {
                command.arg("app:perf");
            }
        }
        command.arg("fabric");
        command
    }

    fn theirs(&self, bare: &Path) -> Command {
        let mut command = Command::new(bare);
        command.args(["--provider", &self.provider]);
        command.args(self.bind.then_some("--bind")).args(self.r#yield.then_some("--yield"));
        command.args(self.calls.then_some("--calls"));
        command.args(self.domain.iter().flat_map(|domain| ["--domain", domain]));
        command.args(self.netns.iter().flat_map(|places| ["--netns".to_owned(), places.join(",")]));
        command
    }
}

/// The shell script by which a PE enters its namespace, which is its node, and runs the program.
const ENTER: &str = "case $PMI_RANK in 0) place=$1 ;; *) place=$2 ;; esac; shift 2; \
                     export PELAGO_NODE_ID=$place; exec nsenter --net=/run/netns/$place \"$@\"";

/// Checks a line of a program for its row; returns it with the provider and domain that it names.
fn checked(mut line: Printed, row: &str) -> Result<(Printed, String)> {
    let samples = line.samples.unwrap_or(0);
    ensure!(samples.to_string() == BLOCKS, "not {BLOCKS} blocks, as the other side: {line:?}");
    let fabric = line.fabric.clone().with_context(|| format!("no fabric is named: {line:?}"))?;
    // Our side adds its own provider: `ofi (tcp;ofi_rxm on eth0)`.
    let bare = fabric.strip_prefix("ofi (").and_then(|names| names.strip_suffix(')'));
    let bare = bare.unwrap_or(&fabric).to_owned();
    row.clone_into(&mut line.operation);
    Ok((line, bare))
}

fn gate(row: &rounds::Row) -> Option<Gate> {
    Some(Gate { name: row.name(), ratio: row.ratio_to_best?, bound: bound(&row.operation)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ensemble::conduct;
    use crate::base::rounds::tests::args;
    use crate::base::rounds::{Cell, Collected};
    use crate::base::suite::tests::{EFFORT, reported};

    fn options(rows: &[Row]) -> Options {
        Options { rows: rows.to_vec(), effort: EffortOptions { blocks: Some(5), ..Default::default() } }
    }

    #[test]
    fn the_rows_do_what_they_are_called() {
        let done = spmd(2, |world| {
            let memory = Memory::new(world).unwrap();
            let mut parts: Vec<_> = Row::value_variants().iter().map(|row| memory.part(*row)).collect();
            let led = conduct(world, &mut parts, |leader| {
                let word = |at| memory.words.g(TARGET, at);
                leader.play(Row::Put as usize, 5)?;
                assert_eq!(word(0)?, 4, "the puts count from 0");
                leader.play(Row::FetchAdd as usize, 3)?;
                assert_eq!(word(0)?, 7);
                leader.play(Row::Get as usize, 3)?;
                leader.play(Row::PutRate as usize, 2)?;
                assert_eq!([word(0)?, word(RATE_WINDOW - 1)?], [1, RATE_WINDOW as u64]);
                leader.play(Row::PutBandwidth as usize, 1)?;
                let last = memory.large.len() - 1;
                assert_eq!([memory.large.g(TARGET, 0)?, memory.large.g(TARGET, last)?], [1, 1]);
                memory.large.put(TARGET, 0, &vec![9; memory.large.len()])?;
                world.quiet();
                leader.play(Row::GetBandwidth as usize, 1)?;
                assert!(memory.private.borrow().iter().all(|word| *word == 9));
                Ok(())
            });
            led.unwrap().is_some()
        });
        assert_eq!(done.unwrap(), [true, false]);
    }

    #[test]
    fn every_row_is_reported_in_its_unit() {
        let (records, progress) = reported(2, |world, sink| all(world, &options(&[]), EFFORT, sink));
        let found: Vec<_> = records.iter().map(|r| (r.label.bench, r.label.window, r.unit)).collect();
        let (time, flood) = (Unit::Nanoseconds, (Bench::Flood, Some(8), Unit::GigabytesPerSecond));
        let rate = (Bench::Rate, Some(64), Unit::MillionsPerSecond);
        let latency = (Bench::Latency, None, time);
        assert_eq!(found, [latency, latency, (Bench::AtomicLatency, None, time), rate, flood, flood]);
        assert_eq!(progress, (6, 6));
        let (records, _) = reported(2, |world, sink| all(world, &options(&[Row::Get]), EFFORT, sink));
        assert_eq!(records.len(), 1);
    }

    fn words(command: &Command) -> String {
        let all = [command.get_program()].into_iter().chain(command.get_args());
        all.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lines_of_both_programs_are_read_in_nanoseconds() {
        let figures = r#""samples":301,"min":2.0,"median":4.0"#;
        let bare = format!(r#"{{"operation":"put","bytes":8,"fabric":"tcp;ofi_rxm on lo",{figures}}}"#);
        let of = |bytes, ns, min_ns| (bytes, ns, min_ns, "row".to_owned(), "tcp;ofi_rxm on lo".to_owned());
        let read = |line: &str| {
            let (line, fabric) = checked(Printed::read(line)?, "row")?;
            anyhow::Ok((line.bytes, line.median, line.min, line.operation, fabric))
        };
        assert_eq!(read(&bare).unwrap(), of(8, 4.0, 2.0));
        let ours = |bytes: usize, unit: &str| {
            let fabric = r#""fabric":"ofi (tcp;ofi_rxm on lo)""#;
            let figures = format!(r#""unit":"{unit}","min":1.0,"median":2.0,"max":4.0,"samples":301"#);
            read(&format!(r#"{{"operation":"put","bytes":{bytes},{fabric},{figures}}}"#))
        };
        assert_eq!(ours(8, "ns").unwrap(), of(8, 2.0, 1.0));
        assert_eq!(ours(8, "M/s").unwrap(), of(8, 500.0, 250.0));
        assert_eq!(ours(1000, "GB/s").unwrap(), of(1000, 500.0, 250.0));
        let not_figures = [bare.replace("2.0", "5.0"), bare.replace("301", "300")];
        assert!(ours(8, "s").is_err() && not_figures.iter().all(|line| read(line).is_err()));
    }

    #[test]
    fn both_sides_are_started_alike() {
        let plain: Compare = args("fabric --provider shm --domain lo --bind --yield");
        let env = "--env PELAGO_ROUTE=net --env PELAGO_FABRIC=ofi --env PELAGO_OFI_PROVIDER=shm";
        let expected = format!("p run -n 2 --bind {env} --env PELAGO_OFI_INTERFACE=lo app:perf fabric");
        assert_eq!(words(&plain.ours(Path::new("p"))), expected);
        assert_eq!(words(&plain.theirs(Path::new("b"))), "b --provider shm --bind --yield --domain lo");
        let apart: Compare = args("fabric --netns A,B");
        assert!(words(&apart.ours(Path::new("p"))).ends_with(" sh A B p app perf fabric"));
        assert_eq!(words(&apart.theirs(Path::new("b"))), "b --provider tcp;ofi_rxm --netns A,B");
    }

    #[test]
    fn what_is_bound_has_a_gate() {
        let mut collected = Collected::default();
        for row in args::<Compare>("fabric").names() {
            for (side, ns) in [(Side::Pelago, 104.0), (Side::Libfabric, 100.0)] {
                collected.add(Cell { operation: row.clone(), bytes: 8 }, side, 0, ns, ns);
            }
        }
        let gates: Vec<_> = collected.rows(2).iter().filter_map(gate).collect();
        let kept: Vec<_> = gates.iter().map(|gate| (gate.name.as_str(), gate.is_kept())).collect();
        let expected = [
            ("put 8 B", true),
            ("get 8 B", true),
            ("put-bandwidth 8 B", false),
            ("get-bandwidth 8 B", false),
        ];
        assert_eq!(kept, expected);
    }

    #[test]
    fn rows_are_known_by_name() {
        let names = |words| args::<Compare>(words).names();
        assert_eq!(names("fabric --rows put,get-bandwidth"), ["put", "get-bandwidth"]);
        let all = ["put", "get", "fetch-add", "put-rate", "put-bandwidth", "get-bandwidth"];
        assert_eq!((names("fabric"), names("fabric --calls").len()), (all.map(str::to_owned).to_vec(), 5));
    }
}
