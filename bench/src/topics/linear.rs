//! `cargo xtask compare linear`: a matrix product and a Cholesky factorisation, by Pelago and by ScaLAPACK.
//!
//! Invariant: both compute with the same matrices in the same distribution, with one thread a rank, are bound
//! to the same number of cores, and are timed in the same way: from barrier to barrier on the slowest rank,
//! after one repetition that is not timed. Results that differ by more than rounding errors are an error. A
//! ratio is that of the rates, of the median and of the best time.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use pelago_report::Table;
use serde::{Deserialize, Serialize};

use crate::base::peers::{self, Side};
use crate::base::stats::Summary;
use crate::base::workspace::output_of;

/// The Debian packages of ScaLAPACK, its kernel and its launcher.
const PACKAGES: &str = "libscalapack-openmpi-dev libopenblas-dev openmpi-bin libopenmpi-dev";
/// The maximum relative difference of the two checksums.
const TOLERANCE: f64 = 1e-10;
/// The name of the other side in the table.
const PEER: &str = "ScaLAPACK";
/// The sides of the gate, and its bound: the minimum ratio of the median rates.
const GATE_SIDE: &str = "one-sided, rust";
const GATE: f64 = 1.0;

/// The options of the comparison.
#[derive(Args)]
pub struct Compare {
    /// Number of rounds; in each, every side runs once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Timed repetitions of each run, whose median is the result of the run
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// Orders of the matrices
    #[arg(long, value_delimiter = ',', default_value = "2048",
          value_parser = clap::value_parser!(u32).range(1..=65536))]
    n: Vec<u32>,
    /// Order of the blocks
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=65536))]
    block: u32,
    /// Rows and columns of the grid of ranks
    #[arg(long, default_value = "1x2", value_parser = grid)]
    grid: (usize, usize),
    /// The core for which OpenBLAS computes, on both sides, such as SKYLAKEX; its own choice if not given
    #[arg(long, value_name = "NAME")]
    openblas_core: Option<String>,
    /// Print one JSON array instead of the table
    #[arg(long)]
    json: bool,
}

fn grid(text: &str) -> Result<(usize, usize), String> {
    let sides: Vec<_> = text.split('x').map(|side| side.parse().unwrap_or(0_usize)).collect();
    match *sides {
        [rows, columns] if sides.iter().all(|side| (1..=1000).contains(side)) => Ok((rows, columns)),
        _ => Err("a grid is two numbers of ranks, rows and columns, as 1x2".to_owned()),
    }
}

/// The operations that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Operation {
    Matmul,
    Cholesky,
}

impl Operation {
    /// The name of our application, and the option that names its variants.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Operation::Matmul => ("matmul", "--variant"),
            Operation::Cholesky => ("cholesky", "--transport"),
        }
    }

    /// The number of operations with numbers.
    fn flops(self, n: u32) -> f64 {
        let n = f64::from(n);
        match self {
            Operation::Matmul => 2.0 * n * n * n,
            Operation::Cholesky => n * n * n / 3.0,
        }
    }
}

/// The output of one run of one program.
#[derive(Debug, Deserialize)]
struct Printed {
    seconds: Vec<f64>,
    #[serde(alias = "log_determinant")]
    checksum: f64,
    /// The core for which OpenBLAS computes; absent on our side, as are the others on the other side.
    core: Option<String>,
    #[serde(alias = "transport")]
    variant: Option<String>,
    kernel: Option<String>,
    verified: Option<bool>,
}

impl Printed {
    fn parse(line: &str) -> Result<Self> {
        let printed: Printed = serde_json::from_str(line).with_context(|| format!("cannot read {line:?}"))?;
        ensure!(!printed.seconds.is_empty(), "nothing was timed: {line:?}");
        Ok(printed)
    }

    /// The name of the side.
    fn side(&self) -> String {
        match (&self.variant, &self.kernel) {
            (Some(variant), Some(kernel)) => format!("{variant}, {kernel}"),
            _ => PEER.to_owned(),
        }
    }
}

/// The results of one side.
#[derive(Debug, Serialize)]
struct Figures {
    /// The rate of the median of the runs, in GFlop/s.
    median_gflops: f64,
    /// The rate of the shortest repetition.
    best_gflops: f64,
    /// The ratio of the median rates of this side and ScaLAPACK: above 1, Pelago is faster.
    ratio: f64,
    /// The ratio of the best rates.
    best_ratio: f64,
    /// The median of each run, in seconds.
    runs: Vec<f64>,
}

/// The comparison of one operation; sides by name.
#[derive(Debug, Serialize)]
struct Row {
    operation: Operation,
    n: u32,
    block: u32,
    grid: String,
    /// The core for which the OpenBLAS of ScaLAPACK computed.
    core: String,
    sides: BTreeMap<String, Figures>,
}

impl Compare {
    /// Builds both programs, runs them in turn, prints the comparison, and fails if the gate fails.
    pub fn run(&self) -> Result<()> {
        let libraries = ["-lscalapack-openmpi", "-lopenblas", "-lm"];
        let scalapack = peers::compile_by(Side::OpenMpi, "linear.c", &libraries)
            .with_context(|| format!("does this help? sudo apt-get install {PACKAGES}"))?;
        let programs = Programs { pelago: peers::pelago()?, scalapack };
        let mut rows = Vec::new();
        for &n in &self.n {
            for operation in [Operation::Matmul, Operation::Cholesky] {
                rows.push(programs.compare(operation, n, self)?);
            }
        }
        match self.json {
            true => println!("{}", serde_json::to_string(&rows)?),
            false => print!("{}", table(&rows)),
        }
        check_gate(&rows)
    }
}

/// The two programs.
struct Programs {
    pelago: PathBuf,
    scalapack: PathBuf,
}

impl Programs {
    /// All rounds of one operation; each side goes first in turn.
    fn compare(&self, operation: Operation, n: u32, args: &Compare) -> Result<Row> {
        let (mut runs, mut core) = (BTreeMap::<String, Vec<Vec<f64>>>::new(), String::new());
        for round in 0..args.rounds {
            eprintln!("{} of order {n}: round {} of {}", operation.words().0, round + 1, args.rounds);
            let (ours, theirs) = if round % 2 == 0 {
                let ours = self.run_pelago(operation, n, args)?;
                (ours, self.run_scalapack(operation, n, args)?)
            } else {
                let theirs = self.run_scalapack(operation, n, args)?;
                (self.run_pelago(operation, n, args)?, theirs)
            };
            agree(&ours, &theirs)?;
            core = theirs.core.clone().unwrap_or_default();
            for printed in ours.into_iter().chain([theirs]) {
                runs.entry(printed.side()).or_default().push(printed.seconds);
            }
        }
        let (rows, columns) = args.grid;
        let sides = figures(operation.flops(n), runs);
        Ok(Row { operation, n, block: args.block, grid: format!("{rows}x{columns}"), core, sides })
    }

    /// Runs our program in all variants with both kernels; returns one result for each.
    fn run_pelago(&self, operation: Operation, n: u32, args: &Compare) -> Result<Vec<Printed>> {
        let ((app, variants), (rows, columns)) = (operation.words(), args.grid);
        let line = format!(
            "{app} --n {n} --block {} --grid {rows}x{columns} {variants} all --kernel all --repeat {} --json",
            args.block, args.repeat
        );
        let words: Vec<_> = line.split(' ').collect();
        let mut command = peers::run_of(&self.pelago, rows * columns, is_crowded(args)?, &words);
        let text = output_of(one_thread(&mut command, args))?;
        text.lines().map(Printed::parse).collect()
    }

    fn run_scalapack(&self, operation: Operation, n: u32, args: &Compare) -> Result<Printed> {
        let (rows, columns) = args.grid;
        let mut command = peers::launcher(Side::OpenMpi, rows * columns, is_crowded(args)?, &self.scalapack)?;
        command.arg(operation.words().0);
        command.args(
            [n as usize, args.block as usize, rows, columns, args.repeat as usize].map(|n| n.to_string()),
        );
        Printed::parse(&output_of(one_thread(&mut command, args))?)
    }
}

fn is_crowded(args: &Compare) -> Result<bool> {
    Ok(args.grid.0 * args.grid.1 > crate::base::rounds::cores()?)
}

/// The command with one thread a rank, and the requested core of OpenBLAS. Other settings of OpenBLAS in the
/// environment would make it slower than it is by itself, or faster.
fn one_thread<'c>(command: &'c mut Command, args: &Compare) -> &'c mut Command {
    let settings = env::vars_os().map(|(name, _)| name);
    for name in settings.filter(|name| name.to_string_lossy().starts_with("OPENBLAS_")) {
        command.env_remove(name);
    }
    command.env("OPENBLAS_NUM_THREADS", "1");
    command.envs(args.openblas_core.iter().map(|core| ("OPENBLAS_CORETYPE", core)))
}

/// Fails unless our results pass our own checks, and the checksums are equal up to rounding.
fn agree(ours: &[Printed], theirs: &Printed) -> Result<()> {
    ensure!(!ours.is_empty(), "pelago printed no result");
    for printed in ours {
        let is_equal = (printed.checksum - theirs.checksum).abs() <= TOLERANCE * theirs.checksum.abs();
        if printed.verified != Some(true) || !is_equal {
            bail!("{}: a wrong result: {printed:?}, where {PEER} has {theirs:?}", printed.side());
        }
    }
    Ok(())
}

/// The rates of all sides, whose runs are lists of seconds.
fn figures(flops: f64, runs: BTreeMap<String, Vec<Vec<f64>>>) -> BTreeMap<String, Figures> {
    let of = |runs: &[Vec<f64>]| {
        let medians: Vec<_> = runs.iter().map(|seconds| Summary::of(seconds).median).collect();
        let rate = |seconds: f64| flops / seconds / 1e9;
        (rate(Summary::of(&medians).median), rate(Summary::of(&runs.concat()).min), medians)
    };
    let (peer_median, peer_best, _) =
        runs.get(PEER).map_or((f64::NAN, f64::NAN, Vec::new()), |runs| of(runs));
    let side = |runs: &[Vec<f64>]| {
        let (median_gflops, best_gflops, runs) = of(runs);
        let (ratio, best_ratio) = (median_gflops / peer_median, best_gflops / peer_best);
        Figures { median_gflops, best_gflops, ratio, best_ratio, runs }
    };
    runs.iter().map(|(name, runs)| (name.clone(), side(runs))).collect()
}

/// The rows as a table, one line per side.
fn table(rows: &[Row]) -> Table {
    let title = "Linear algebra: median of the runs, best repetition, ratios of the rates to ScaLAPACK's";
    let mut table =
        Table::new(title, 1, "operation|order|block|grid|side|median, GFlop/s|ratio|best, GFlop/s|ratio");
    for row in rows {
        for (name, side) in &row.sides {
            let side_name = if name == PEER { format!("{name} ({})", row.core) } else { name.clone() };
            let figures = [side.median_gflops, side.ratio, side.best_gflops, side.best_ratio];
            let figures = figures.map(|of| format!("{of:.2}"));
            let (n, block) = (row.n as usize, row.block as usize);
            table.row((row.operation.words().0, n, block, row.grid.as_str(), side_name, figures));
        }
    }
    table
}

/// Fails if our default is slower than ScaLAPACK.
fn check_gate(rows: &[Row]) -> Result<()> {
    for row in rows {
        let Some(side) = row.sides.get(GATE_SIDE) else { bail!("no result of {GATE_SIDE}") };
        let (ratio, name) = (side.ratio, row.operation.words().0);
        ensure!(
            ratio >= GATE,
            "{name} of order {} runs at {ratio:.2} of {PEER}; at least {GATE} is needed",
            row.n
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str =
        r#"{"variant":"one-sided","kernel":"rust","verified":true,"seconds":[0.5,0.25],"checksum":4.0}"#;
    const THEIRS: &str = r#"{"seconds":[0.5],"checksum":4.00000000001,"core":"Haswell"}"#;

    fn sides(ours: &[f64], theirs: &[f64]) -> BTreeMap<String, Figures> {
        let runs =
            [(GATE_SIDE, ours), (PEER, theirs)].map(|(name, runs)| (name.to_owned(), vec![runs.to_vec()]));
        figures(1e9, runs.into_iter().collect())
    }

    fn row(ours: &[f64], theirs: &[f64]) -> Row {
        let (grid, core) = ("1x2".to_owned(), "Haswell".to_owned());
        Row { operation: Operation::Matmul, n: 512, block: 64, grid, core, sides: sides(ours, theirs) }
    }

    #[test]
    fn equal_results_agree_and_others_do_not() {
        let theirs = Printed::parse(THEIRS).unwrap();
        assert_eq!(theirs.side(), PEER);
        agree(&[Printed::parse(OURS).unwrap()], &theirs).unwrap();
        for (from, to) in [("true", "false"), ("4.0", "4.00001"), ("4.0", "null"), ("[0.5,0.25]", "[]")] {
            let line = OURS.replace(from, to);
            let refused = Printed::parse(&line).and_then(|printed| agree(&[printed], &theirs)).is_err();
            assert!(refused, "{line}");
        }
        assert!(agree(&[], &theirs).is_err());
        let cholesky = OURS.replace("variant", "transport").replace("checksum", "log_determinant");
        assert_eq!(Printed::parse(&cholesky).unwrap().side(), GATE_SIDE);
    }

    #[test]
    fn rates_and_ratios_are_those_of_medians_and_best_times() {
        let sides = sides(&[0.5, 0.25, 0.125], &[0.5, 1.0, 0.5]);
        let ours = &sides[GATE_SIDE];
        assert_eq!((ours.median_gflops, ours.best_gflops), (4.0, 8.0));
        assert_eq!((ours.ratio, ours.best_ratio), (2.0, 4.0));
        assert_eq!(sides[PEER].ratio, 1.0);
        assert_eq!((Operation::Matmul.flops(10), Operation::Cholesky.flops(30)), (2000.0, 9000.0));
    }

    #[test]
    fn the_table_has_aligned_lines_and_the_gate_its_bound() {
        let text = table(&[row(&[0.25], &[0.5])]).to_string();
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        assert!(text.contains("ScaLAPACK (Haswell)") && text.contains("one-sided, rust"), "{text}");
        check_gate(&[row(&[0.5], &[0.5])]).unwrap();
        let message = check_gate(&[row(&[0.5], &[0.25])]).unwrap_err().to_string();
        assert!(message.starts_with("matmul of order 512 runs at 0.50 of ScaLAPACK"), "{message}");
    }

    #[test]
    fn all_programs_compute_with_one_thread_and_the_requested_core() {
        let args = Compare {
            rounds: 1,
            repeat: 1,
            n: vec![1],
            block: 1,
            grid: (1, 1),
            openblas_core: Some("ZEN".to_owned()),
            json: false,
        };
        let mut command = Command::new("true");
        one_thread(&mut command, &args);
        let set: Vec<_> = command.get_envs().filter_map(|(name, value)| Some((name, value?))).collect();
        let expected = [("OPENBLAS_CORETYPE", "ZEN"), ("OPENBLAS_NUM_THREADS", "1")];
        assert_eq!(set, expected.map(|(name, value)| (name.as_ref(), value.as_ref())));
    }

    #[test]
    fn wrong_grids_are_refused() {
        assert_eq!(grid("2x3"), Ok((2, 3)));
        for text in ["", "2", "0x2", "2x2x2", "ax2", "1x9999"] {
            assert!(grid(text).unwrap_err().contains("as 1x2"), "{text}");
        }
    }
}
