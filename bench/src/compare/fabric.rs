//! `cargo xtask compare fabric`: one-sided operations over libfabric beside libfabric alone (fabric/bare.c),
//! which the compiler of the system builds.
//!
//! Invariant: both sides do the same operations over the same provider and domain, which each says itself,
//! between two processes that are placed alike, in as many blocks; they take turns row by row. A ratio is the
//! median over the rounds of ours to theirs in the same round.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args as Arguments;
use serde::Deserialize;

use super::programs::Side;
use super::report::{Files, Report};
use super::rows::{Cell, Collected, Gate, Row};
use super::table;
use crate::hosts::namespaces;
use crate::workspace::{cargo, metadata, output_of, root};

/// The rows, as both programs name them, and how much more time than theirs ours may take, if that is bound.
const ROWS: [(&str, Option<f64>); 6] = [
    ("put", Some(1.05)),
    ("get", Some(1.05)),
    ("fetch-add", None),
    ("put-rate", None),
    ("put-bandwidth", Some(1.0 / 0.97)),
    ("get-bandwidth", Some(1.0 / 0.97)),
];
/// Both sides' blocks: some ten operations long, and many, so that some are undisturbed. No time is set that
/// could end a run before: the more blocks, the shorter the shortest.
const EFFORT: [&str; 6] = ["--block-us", "500", "--blocks", BLOCKS, "--budget-ms", "60000"];
const BLOCKS: &str = "301";

/// How to compare.
#[derive(Arguments)]
pub struct Args {
    /// Number of rounds; in each, both sides do every row
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rows (default: all): put, get, fetch-add, put-rate, put-bandwidth, get-bandwidth
    #[arg(long, value_delimiter = ',', value_parser = row_name)]
    rows: Vec<String>,
    /// Libfabric's provider
    #[arg(long, default_value = "tcp;ofi_rxm")]
    provider: String,
    /// Its domain (default: the first that libfabric names)
    #[arg(long)]
    domain: Option<String>,
    /// Put the two processes of a side into these network namespaces (`ip netns`); needs root
    #[arg(long, value_name = "A,B", value_parser = namespaces)]
    netns: Option<[String; 2]>,
    /// Keep each process, with the threads that libfabric starts in it, on a core of its own
    #[arg(long)]
    bind: bool,
    /// Let libfabric's side yield its core while it waits, as a PE does; by default it spins
    #[arg(long)]
    r#yield: bool,
    /// Let libfabric's side have neither atomics nor progress by the provider, as Pelago does where its own
    /// thread makes progress; fetch-add is left out
    #[arg(long)]
    calls: bool,
    /// Take the middle block of a run in place of the shortest
    #[arg(long)]
    middle: bool,
    #[command(flatten)]
    files: Files,
}

/// Builds both programs, runs them round after round, prints how they compare, and fails if a gate does.
pub fn run(args: &Args) -> Result<()> {
    let programs = Programs::build()?;
    let (collected, fabric) = measure(&programs, args)?;
    let rows = collected.rows(2);
    // They are for the program that can leave its targets alone.
    let gates: Vec<_> = rows.iter().filter_map(gate).filter(|_| !args.calls).collect();
    let judged = if gates.is_empty() { String::new() } else { table::gates(&gates) };
    let text = heading(&fabric, args) + &table::rows(&rows) + &judged;
    Report { title: "One-sided operations over libfabric", rows: &rows, gates: &gates, text: &text }
        .finish(&args.files)
}

fn heading(fabric: &str, args: &Args) -> String {
    let place = match &args.netns {
        Some([first, second]) => format!("in network namespaces {first} and {second}"),
        None => "on one machine".to_owned(),
    };
    let binding = if args.bind { "bound to cores" } else { "not bound" };
    let waiting = if args.r#yield { "yields its core" } else { "spins" };
    let waiting = if args.calls { format!("{waiting}, and moves data in calls") } else { waiting.to_owned() };
    let figure = if args.middle { "middle" } else { "shortest" };
    format!(
        "{fabric}, two processes {place}, {binding}; libfabric's side {waiting}.\n\
         Microseconds an operation: the {figure} of many short blocks, the median over the rounds;\n\
         in brackets the median of the ratios (ours to theirs). put: 8 bytes and quiet, each; put-rate: 64\n\
         puts and a quiet; bandwidth: 8 transfers of 1 MiB, then complete.\n\n"
    )
}

fn gate(row: &Row) -> Option<Gate> {
    let (_, bound) = ROWS.iter().find(|(name, _)| *name == row.operation)?;
    Some(Gate { name: row.name(), ratio: row.ratio_to_best?, bound: (*bound)? })
}

/// All rounds, and over which fabric they went.
fn measure(programs: &Programs, args: &Args) -> Result<(Collected, String)> {
    let (mut collected, mut fabrics) = (Collected::default(), Vec::new());
    let is_wanted = |name: &str| match args.rows.is_empty() {
        true => !(args.calls && name == "fetch-add"),
        false => args.rows.iter().any(|row| row == name),
    };
    for round in 0..args.rounds as usize {
        eprint!("round {} of {}:", round + 1, args.rounds);
        for (row, _) in ROWS.iter().filter(|(row, _)| is_wanted(row)) {
            eprint!(" {row}");
            std::io::stderr().flush()?;
            let mut sides = [Side::Pelago, Side::Libfabric];
            sides.rotate_left(round % 2);
            for side in sides {
                let Measured { bytes, ns, min_ns, fabric } = programs.run(side, row, args)?;
                let figure_ns = if args.middle { ns } else { min_ns };
                collected.add(Cell { operation: (*row).to_owned(), bytes }, side, round, figure_ns, min_ns);
                if !fabrics.contains(&fabric) {
                    fabrics.push(fabric);
                }
            }
        }
        eprintln!();
    }
    match fabrics.as_slice() {
        [fabric] => Ok((collected, fabric.clone())),
        others => bail!("the sides did not use the same fabric: {}", others.join(", ")),
    }
}

/// What a run of a program says of its row.
#[derive(Debug, PartialEq)]
struct Measured {
    bytes: usize,
    /// The middle block.
    ns: f64,
    /// The shortest one.
    min_ns: f64,
    /// Provider and domain.
    fabric: String,
}

/// A line of either program; ours has units.
#[derive(Deserialize)]
struct Line {
    bytes: usize,
    fabric: String,
    #[serde(default = "nanoseconds")]
    unit: String,
    min: f64,
    median: f64,
    #[serde(default)]
    max: f64,
    samples: usize,
}

fn nanoseconds() -> String {
    "ns".to_owned()
}

impl Measured {
    /// In nanoseconds an operation, whatever the unit of the line.
    fn read(line: &str) -> Result<Measured> {
        let Line { bytes, fabric, unit, min, median, max, samples } =
            serde_json::from_str(line).with_context(|| format!("cannot read {line:?}"))?;
        let (ns, min_ns) = match unit.as_str() {
            "ns" => (median, min),
            "M/s" => (1e3 / median, 1e3 / max),
            "GB/s" => (bytes as f64 / median, bytes as f64 / max),
            other => bail!("cannot read the unit {other:?} in {line:?}"),
        };
        ensure!(0.0 < min_ns && min_ns <= ns && ns.is_finite(), "not the figures of blocks: {line:?}");
        ensure!(samples.to_string() == BLOCKS, "not {BLOCKS} blocks, as the other side: {line:?}");
        // Ours says by which of its own providers: `ofi (tcp;ofi_rxm on eth0)`.
        let bare = fabric.strip_prefix("ofi (").and_then(|names| names.strip_suffix(')'));
        Ok(Measured { bytes, ns, min_ns, fabric: bare.unwrap_or(&fabric).to_owned() })
    }
}

/// Our launcher, and the program over libfabric alone.
struct Programs {
    pelago: PathBuf,
    bare: PathBuf,
}

impl Programs {
    fn build() -> Result<Programs> {
        let target = metadata()?.target_directory;
        let folder = target.join("compare");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let bare = folder.join("fabric-bare");
        let mut command = Command::new("gcc");
        command.args(["-std=gnu11", "-O3", "-march=native", "-Wall", "-Wextra", "-o"]).arg(&bare);
        command.arg(root().join("bench/src/compare/fabric/bare.c")).arg("-lfabric");
        output_of(&mut command).context("libfabric's headers: sudo apt-get install gcc libfabric-dev")?;
        let status = cargo(&["build", "--release", "-p", "pelago-cli"]).status()?;
        ensure!(status.success(), "cannot build pelago: {status}");
        Ok(Programs { pelago: target.join("release/pelago"), bare })
    }

    fn run(&self, side: Side, row: &str, args: &Args) -> Result<Measured> {
        let mut command = match side {
            Side::Pelago => ours(&self.pelago, args),
            _ => theirs(&self.bare, args),
        };
        let text = output_of(command.args(["--rows", row]).args(EFFORT))?;
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with('{')).collect();
        let [line] = lines[..] else { bail!("{}: not one line for {row}: {text}", side.name()) };
        Measured::read(line)
    }
}

/// A PE enters its namespace, which is its node, and becomes the program.
const ENTER: &str = "case $PMI_RANK in 0) place=$1 ;; *) place=$2 ;; esac; shift 2; \
                     export PELAGO_NODE_ID=$place; exec nsenter --net=/run/netns/$place \"$@\"";

fn ours(pelago: &Path, args: &Args) -> Command {
    let mut command = Command::new(pelago);
    command.args(["run", "-n", "2"]).args(args.bind.then_some("--bind"));
    let provider = format!("PELAGO_OFI_PROVIDER={}", args.provider);
    let domain = args.domain.as_ref().map(|domain| format!("PELAGO_OFI_INTERFACE={domain}"));
    for variable in ["PELAGO_ROUTE=net", "PELAGO_FABRIC=ofi", &provider].into_iter().chain(domain.as_deref())
    {
        command.args(["--env", variable]);
    }
    if let Some(places) = &args.netns {
        command.args(["sh", "-c", ENTER, "sh"]).args(places).arg(pelago).arg("app");
    }
    command.args(["perf", "fabric"]);
    command
}

fn theirs(bare: &Path, args: &Args) -> Command {
    let mut command = Command::new(bare);
    command.args(["--provider", &args.provider]);
    command.args(args.bind.then_some("--bind")).args(args.r#yield.then_some("--yield"));
    command.args(args.calls.then_some("--calls"));
    command.args(args.domain.iter().flat_map(|domain| ["--domain", domain]));
    command.args(args.netns.iter().flat_map(|places| ["--netns".to_owned(), places.join(",")]));
    command
}

fn row_name(text: &str) -> Result<String, String> {
    let names = ROWS.map(|(name, _)| name);
    match names.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("there is no such row; there are {}", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::report::tests::args;

    fn words(command: &Command) -> String {
        let all = [command.get_program()].into_iter().chain(command.get_args());
        all.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lines_of_both_programs_are_read_in_nanoseconds() {
        let figures = r#""samples":301,"min":2.0,"median":4.0"#;
        let bare = format!(r#"{{"operation":"put","bytes":8,"fabric":"tcp;ofi_rxm on lo",{figures}}}"#);
        let of = |bytes, ns, min_ns| Measured { bytes, ns, min_ns, fabric: "tcp;ofi_rxm on lo".to_owned() };
        assert_eq!(Measured::read(&bare).unwrap(), of(8, 4.0, 2.0));
        let ours = |bytes: usize, unit: &str| {
            let fabric = r#""fabric":"ofi (tcp;ofi_rxm on lo)""#;
            let figures = format!(r#""unit":"{unit}","min":1.0,"median":2.0,"max":4.0,"samples":301"#);
            Measured::read(&format!(r#"{{"bytes":{bytes},{fabric},{figures}}}"#))
        };
        assert_eq!(ours(8, "ns").unwrap(), of(8, 2.0, 1.0));
        assert_eq!(ours(8, "M/s").unwrap(), of(8, 500.0, 250.0));
        assert_eq!(ours(1000, "GB/s").unwrap(), of(1000, 500.0, 250.0));
        let not_figures = [bare.replace("2.0", "5.0"), bare.replace("301", "300")];
        assert!(ours(8, "s").is_err() && not_figures.iter().all(|line| Measured::read(line).is_err()));
    }

    #[test]
    fn both_sides_are_started_alike() {
        let plain = args("fabric --provider shm --domain lo --bind --yield");
        let env = "--env PELAGO_ROUTE=net --env PELAGO_FABRIC=ofi --env PELAGO_OFI_PROVIDER=shm";
        let expected = format!("p run -n 2 --bind {env} --env PELAGO_OFI_INTERFACE=lo perf fabric");
        assert_eq!(words(&ours(Path::new("p"), &plain)), expected);
        assert_eq!(words(&theirs(Path::new("b"), &plain)), "b --provider shm --bind --yield --domain lo");
        let apart = args("fabric --netns A,B");
        assert!(words(&ours(Path::new("p"), &apart)).ends_with(" sh A B p app perf fabric"));
        assert_eq!(words(&theirs(Path::new("b"), &apart)), "b --provider tcp;ofi_rxm --netns A,B");
    }

    #[test]
    fn what_is_bound_has_a_gate() {
        let mut collected = Collected::default();
        for (row, _) in ROWS {
            for (side, ns) in [(Side::Pelago, 104.0), (Side::Libfabric, 100.0)] {
                collected.add(Cell { operation: row.to_owned(), bytes: 8 }, side, 0, ns, ns);
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
        assert_eq!(args::<Args>("fabric --rows put,get-bandwidth").rows, ["put", "get-bandwidth"]);
        assert!(row_name("puts").is_err_and(|error| error.contains("fetch-add")));
    }
}
