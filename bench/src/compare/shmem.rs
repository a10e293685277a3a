//! `cargo xtask compare shmem`: the calls of our OpenSHMEM library beside those of Open MPI's (Debian), by
//! one C program (shmem/bench.c) that each side's oshcc builds.
//!
//! Invariant: the sides take turns row by row, and every row checks its result. A ratio is the median over
//! the rounds of ours to theirs in the same round.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args as Arguments;

use super::programs::{Printed, Side, launcher, parse};
use super::report::{Files, Report};
use super::rows::{Cell, Collected, Gate, Row};
use super::{find_program, table};
use crate::workspace::{metadata, output_of, root};

/// The rows of one-sided calls, as the program names them.
const ONE_SIDED: [&str; 22] = [
    "my_pe",
    "p",
    "g",
    "put",
    "get",
    "put-nbi",
    "get-nbi",
    "put-bandwidth",
    "iput",
    "iget",
    "fetch-add",
    "fetch-inc-int",
    "add",
    "inc",
    "swap",
    "compare-swap",
    "fetch",
    "set",
    "quiet",
    "fence",
    "lock",
    "ping-pong",
];
/// Those of collective calls.
const COLLECTIVE: [&str; 6] = ["barrier_all", "sync_all", "broadcast", "reduce", "fcollect", "alltoall"];
/// The rows that from `COPY_BYTES` bytes on are as fast as memory is copied.
const COPIES: [&str; 6] = ["put", "get", "put-bandwidth", "broadcast", "fcollect", "alltoall"];
const COPY_BYTES: usize = 4096;

/// How to compare.
#[derive(Arguments)]
pub struct Args {
    /// Number of rounds; in each, both libraries do every row
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Numbers of PEs; those that have no core each are not bound
    #[arg(long, value_delimiter = ',', default_value = "2,4")]
    pes: Vec<usize>,
    /// Rows (default: all; where PEs share cores, those of collective calls)
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    #[command(flatten)]
    files: Files,
}

/// Installs ours, builds the programs, runs them round after round, prints how they compare, and fails if a
/// gate does.
pub fn run(args: &Args) -> Result<()> {
    ensure!(args.pes.iter().all(|pes| *pes >= 2), "a comparison needs 2 PEs or more");
    let programs = Programs::build()?;
    let cores = std::thread::available_parallelism().context("cannot count the cores")?.get();
    let (mut rows, mut text) = (Vec::new(), String::new());
    for &pes in &args.pes {
        let of_these = measure(&programs, pes, cores, args)?.rows(pes);
        text += &heading(pes, cores);
        text += &table::rows(&of_these);
        rows.extend(of_these);
    }
    let gates: Vec<_> = rows.iter().filter_map(|row| gate(row, cores)).collect();
    let missed: Vec<_> = gates.iter().filter(|gate| !gate.is_kept()).cloned().collect();
    text += &format!("{} of {} rows are within their bounds.\n\n", gates.len() - missed.len(), gates.len());
    if !missed.is_empty() {
        text += &table::gates(&missed);
    }
    Report { title: "OpenSHMEM calls", rows: &rows, gates: &gates, text: &text }.finish(&args.files)
}

fn heading(pes: usize, cores: usize) -> String {
    let (binding, figure) = match pes <= cores {
        true => ("bound to cores", "shortest"),
        false => ("not bound, Open MPI yielding (mpi_yield_when_idle)", "middle"),
    };
    format!(
        "{pes} PEs on {cores} cores, {binding}.\n\
         Microseconds a call (put: with its quiet; lock: set and clear; ping-pong: the round trip): the\n\
         {figure} of many short blocks, the median over the rounds; in brackets the median of the ratios\n\
         (ours to theirs).\n\n"
    )
}

/// The bound of a row: ahead of the peer, or where both copy memory at least 0.97 of its speed; where PEs
/// share cores, at most 1.1 of its time.
fn gate(row: &Row, cores: usize) -> Option<Gate> {
    let is_copy = COPIES.contains(&row.operation.as_str()) && row.bytes >= COPY_BYTES;
    let bound = match (row.pes > cores, is_copy) {
        (true, _) => 1.1,
        (false, true) => 1.0 / 0.97,
        (false, false) => 1.0,
    };
    Some(Gate { name: format!("{} PEs, {}", row.pes, row.name()), ratio: row.ratio_to_best?, bound })
}

/// All rounds with so many PEs.
fn measure(programs: &Programs, pes: usize, cores: usize, args: &Args) -> Result<Collected> {
    let all: Vec<&str> = if pes <= cores {
        ONE_SIDED.iter().chain(&COLLECTIVE).copied().collect()
    } else {
        COLLECTIVE.to_vec()
    };
    let wanted: Vec<_> = match args.rows.is_empty() {
        true => all,
        false => args.rows.iter().map(String::as_str).collect(),
    };
    let mut collected = Collected::default();
    for round in 0..args.rounds as usize {
        eprint!("{pes} PEs, round {} of {}:", round + 1, args.rounds);
        for row in &wanted {
            eprint!(" {row}");
            std::io::stderr().flush()?;
            let mut sides = [Side::Pelago, Side::Oshmem];
            sides.rotate_left(round % 2);
            for side in sides {
                for printed in programs.run(side, pes, pes > cores, row)? {
                    let cell = Cell { operation: printed.operation.clone(), bytes: printed.bytes };
                    collected.add(cell, side, round, printed.figure_ns(pes, cores), printed.min);
                }
            }
        }
        eprintln!();
    }
    Ok(collected)
}

/// The program of each side, and our launcher.
struct Programs {
    programs: BTreeMap<Side, PathBuf>,
    oshrun: PathBuf,
}

impl Programs {
    fn build() -> Result<Programs> {
        let folder = metadata()?.target_directory.join("compare");
        let prefix = folder.join("prefix");
        super::install(&prefix)?;
        let help = "Open MPI's OpenSHMEM: sudo apt-get install openmpi-bin libopenmpi-dev";
        let theirs = find_program(&["oshcc"]).context(help)?;
        let compilers = [(Side::Pelago, prefix.join("bin/oshcc")), (Side::Oshmem, theirs)];
        let programs = compilers.map(|(side, compiler)| {
            let program = folder.join(format!("shmem-{}", side.name().to_lowercase()));
            compile(&compiler, &program).map(|()| (side, program))
        });
        let programs = programs.into_iter().collect::<Result<_>>()?;
        Ok(Programs { programs, oshrun: prefix.join("bin/oshrun") })
    }

    fn run(&self, side: Side, pes: usize, is_crowded: bool, row: &str) -> Result<Vec<Printed>> {
        let mut command = match side {
            Side::Pelago => {
                let mut command = Command::new(&self.oshrun);
                command.args((!is_crowded).then_some("--bind")).args(["-n", &pes.to_string()]);
                command
            }
            _ => launcher(side, pes, is_crowded)?,
        };
        let times = if is_crowded { ["5000", "21", "150"] } else { ["200", "101", "30"] };
        command.arg(&self.programs[&side]).args(["--rows", row]);
        for (name, value) in ["--block-us", "--blocks", "--budget-ms"].into_iter().zip(times) {
            command.args([name, value]);
        }
        let text = output_of(&mut command)?;
        text.lines().filter(|line| line.starts_with('{')).map(parse).collect()
    }
}

fn compile(compiler: &Path, program: &Path) -> Result<()> {
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-O3", "-march=native", "-Wall", "-Wextra", "-o"]).arg(program);
    command.arg(root().join("bench/src/compare/shmem/bench.c"));
    output_of(&mut command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_copy_have_another_bound() {
        let row = |operation: &str, bytes, pes| {
            let mut collected = Collected::default();
            for (side, ns) in [(Side::Pelago, 90.0), (Side::Oshmem, 100.0)] {
                let cell = Cell { operation: operation.to_owned(), bytes };
                collected.add(cell, side, 0, ns, ns);
            }
            gate(&collected.rows(pes)[0], 2).unwrap()
        };
        assert_eq!(row("put", 8, 2).bound, 1.0);
        assert!(row("put", 65536, 2).bound > 1.03 && row("reduce", 65536, 2).bound == 1.0);
        assert_eq!((row("alltoall", 65536, 4).bound, row("p", 0, 2).ratio), (1.1, 0.9));
    }
}
