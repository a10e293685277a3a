//! `cargo xtask compare mpi`: the MPI library, with Open MPI and MPICH.
//!
//! Invariant: all sides run the same C programs (c/*_mpi.c), each compiled by its own wrapper and started by
//! its own launcher. Ratios are of the same round.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, ValueEnum};

use crate::base::peers::{self, Printed, Side};
use crate::base::prelude::*;
use crate::base::rounds::{self, Files, Gate, Row, cores, gates_table, placement};

/// The operations of `coll_mpi.c` that are compared.
const COLLECTIVE: &str = "barrier,broadcast,all-reduce,all-to-all,all-gather";
/// Bytes of a block of theirs.
const COLLECTIVE_BYTES: &str = "8,1024,65536,1048576";

/// A program that all sides run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Half a round trip, and windows of messages
    Messages,
    /// Collective operations on private buffers
    Collectives,
    /// Puts, gets and fetch-and-op in a window, with a flush
    Windows,
    /// Accesses to small pieces of a file, which are dealt out to the ranks in turn
    Files,
    /// Some 40 operations with 8 B to 4 MiB, as common benchmarks time them; takes minutes
    Sweep,
}

impl Part {
    fn source(self) -> &'static str {
        match self {
            Part::Messages => "messages_mpi.c",
            Part::Collectives => "coll_mpi.c",
            Part::Windows => "rma_mpi.c",
            Part::Files => "file_mpi.c",
            Part::Sweep => SWEEP,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Part::Messages => "messages",
            Part::Collectives => "collectives",
            Part::Windows => "windows",
            Part::Files => "files",
            Part::Sweep => "sweep",
        }
    }
}

/// The program of the sweep, on a node and between nodes.
pub const SWEEP: &str = "sweep_mpi.c";

/// The rows of a sweep.
#[derive(Args)]
pub struct Sweep {
    /// Of the sweep, operations whose names contain this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Of the sweep, calls of at most this number of bytes
    #[arg(long, value_name = "BYTES")]
    largest: Option<usize>,
}

impl Sweep {
    /// The arguments of the program.
    pub fn words(&self, is_crowded: bool) -> Vec<String> {
        let largest = self.largest.map(|bytes| bytes.to_string());
        let block_us = is_crowded.then(|| "5000".to_owned());
        let of = |name: &str, value: &Option<String>| value.clone().map(|value| [name.to_owned(), value]);
        let all = [of("--only", &self.only), of("--largest", &largest), of("--block-us", &block_us)];
        all.into_iter().flatten().flatten().collect()
    }
}

/// The options of the comparison.
#[derive(Args)]
pub struct Compare {
    /// Number of PEs
    #[arg(short, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=64))]
    n: u32,
    #[command(flatten)]
    sweep: Sweep,
    /// Number of rounds; in each, every library runs every row
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The programs to run
    #[arg(long, value_enum, value_delimiter = ',', default_value = "messages,collectives,windows,files")]
    parts: Vec<Part>,
    /// The libraries to compare with: open-mpi, mpich
    #[arg(long, value_enum, value_delimiter = ',', default_value = "open-mpi,mpich")]
    against: Vec<Side>,
    #[command(flatten)]
    files: Files,
}

impl Compare {
    /// Builds the library and the programs, runs all rounds, prints the comparison, and fails if a gate
    /// fails.
    pub fn run(&self) -> Result<()> {
        let prefix = peers::install("mpi")?;
        let sides: Vec<Side> = [Side::Pelago].into_iter().chain(self.against.iter().copied()).collect();
        let (pes, cores) = (self.n as usize, cores()?);
        let is_crowded = pes > cores;
        let figure_ns = |printed: &Printed| printed.figure_ns(pes, cores);
        let (mut rows, mut tables) = (Vec::new(), Vec::new());
        for &part in &self.parts {
            let program = |&side: &Side| Ok((side, compile(&prefix, side, part)?));
            let programs = sides.iter().map(program).collect::<Result<Vec<(Side, PathBuf)>>>()?;
            let run = |side, _: &str| {
                let (_, program) = programs.iter().find(|(other, _)| *other == side).expect("all are built");
                let mut command = match side {
                    Side::Pelago => launcher(&prefix, pes, is_crowded, program),
                    _ => peers::launcher(side, pes, is_crowded, program)?,
                };
                if part == Part::Collectives {
                    command.args(["--operations", COLLECTIVE, "--sizes", COLLECTIVE_BYTES]);
                    command.args(peers::effort(is_crowded));
                } else if part == Part::Sweep {
                    command.args(self.sweep.words(is_crowded));
                }
                Printed::of(&mut command)
            };
            let job = format!("{}, ", part.name());
            let collected = rounds::measure(&job, self.rounds, &sides, &["all rows"], figure_ns, run)?;
            let of_these = collected.rows(pes);
            tables.push(rounds::table(&heading(part, pes, cores), &of_these));
            rows.extend(of_these);
        }
        let gates: Vec<Gate> = rows.iter().filter_map(gate).collect();
        tables.push(gates_table(&gates));
        rounds::finish("The MPI library", &rows, &gates, &tables, &self.files)
    }
}

/// The program of a side.
fn compile(prefix: &Path, side: Side, part: Part) -> Result<PathBuf> {
    match side {
        Side::Pelago => peers::compile(&prefix.join("bin/mpicc"), part.source(), "pelago-mpi", &[]),
        _ => peers::compile_by(side, part.source(), &[]),
    }
}

/// The command that starts a program by our launcher.
fn launcher(prefix: &Path, pes: usize, is_crowded: bool, program: &Path) -> Command {
    let words = program.to_string_lossy();
    peers::run_of(&prefix.join("bin/pelago"), pes, is_crowded, &[&words])
}

/// The description of a table.
fn heading(part: Part, pes: usize, cores: usize) -> String {
    let (placement, block) = placement(pes, cores);
    let what = match part {
        Part::Messages => {
            "one-way, half a round trip; send, one message of a window of 64 (from 64 KiB on 16)"
        }
        Part::Collectives => "an operation; the size is that of a block; every rank is the root in turn",
        Part::Windows => "an operation and its flush, from rank 0 to rank 1",
        Part::Files => "an access to 512 KiB of each rank; the size is that of a piece",
        Part::Sweep => {
            "a call, or a window of 16 messages; collective operations each alone, the mean of all"
        }
    };
    format!(
        "{placement}; private buffers, the same C program with each library.\n\
         Microseconds: {what}.\n\
         The {block} of many short blocks, the median over the rounds; in brackets the median of the\n\
         ratios (ours to theirs).\n"
    )
}

/// The bound of a row, to the better of the others.
fn gate(row: &Row) -> Option<Gate> {
    let bound = match (row.operation.as_str(), row.bytes) {
        ("one-way", 8) => 0.65,
        ("send", 8) => 1.0 / 1.4,
        ("one-way" | "send", 65_536..) => 1.0,
        ("barrier", _) | ("broadcast" | "all-reduce" | "all-to-all", 8) => 0.7,
        ("broadcast" | "all-reduce" | "all-to-all", 65_536..) => 0.9,
        ("put", 8) => 0.5,
        _ => return None,
    };
    Some(Gate { name: format!("{}, the better library", row.name()), ratio: row.ratio_to_best?, bound })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rounds::{Cell, Collected};

    #[test]
    fn rows_with_bounds_are_compared_with_the_better_library() {
        let rows = [("one-way", 8), ("one-way", 1024), ("barrier", 0), ("put", 8), ("get", 8)];
        let mut collected = Collected::default();
        for (operation, bytes) in rows {
            for (side, ns) in [(Side::Pelago, 50.0), (Side::OpenMpi, 100.0), (Side::Mpich, 200.0)] {
                collected.add(Cell { operation: operation.to_owned(), bytes }, side, 0, ns, ns);
            }
        }
        let gates: Vec<_> = collected.rows(2).iter().filter_map(gate).collect();
        let bounds: Vec<_> = gates.iter().map(|gate| (gate.ratio, gate.bound)).collect();
        assert_eq!(bounds, [(0.5, 0.65), (0.5, 0.7), (0.5, 0.5)]);
    }
}
