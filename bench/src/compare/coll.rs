//! `cargo xtask compare coll`: collective operations by Pelago, by the OpenSHMEM and the MPI of Open MPI, and
//! by MPICH, as Debian has them.
//!
//! Invariant: all are timed by the same loop (coll/measure.h), take turns operation by operation, and check
//! their results. A ratio is the median over the rounds of ours to theirs in the same round.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use clap::{Args as Arguments, ValueEnum};

use super::programs::{Asked, Programs, Side};
use super::report::{Files, Report};
use super::rows::{Cell, Collected, gates};
use super::table;

/// The operations, as `perf coll` and the C programs name them.
const OPERATIONS: &str = "barrier,broadcast,scatter,gather,all-gather,all-to-all,reduce,all-reduce";
/// Bytes of a block.
const SIZES: &str = "8,64,512,4096,16384,65536,262144,1048576,4194304";

/// How to compare.
#[derive(Arguments)]
pub struct Args {
    /// Number of rounds; in each, every library does every operation
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Numbers of PEs; those that have no core each are not bound
    #[arg(long, value_delimiter = ',', default_value = "2,4")]
    pes: Vec<usize>,
    /// Operations
    #[arg(long, value_delimiter = ',', default_value = OPERATIONS)]
    operations: Vec<String>,
    /// Bytes of a block, multiples of 8: what one PE contributes, or sends to each one
    #[arg(long, value_delimiter = ',', default_value = SIZES)]
    sizes: Vec<usize>,
    /// Who is the root of operation after operation
    #[arg(long, value_enum, default_value_t = Root::Turn)]
    root: Root,
    /// The libraries to compare with
    #[arg(long, value_enum, value_delimiter = ',', default_value = "open-mpi,mpich,oshmem")]
    against: Vec<Side>,
    #[command(flatten)]
    files: Files,
}

/// Who is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Root {
    /// Every PE in turn, so that none runs ahead of the others: a latency
    Turn,
    /// PE 0, which may run ahead: a rate
    Fixed,
}

/// Builds the programs, runs them round after round, prints how they compare, and fails if a gate does.
pub fn run(args: &Args) -> Result<()> {
    ensure!(args.sizes.iter().all(|bytes| *bytes > 0 && bytes % 8 == 0), "sizes are multiples of 8");
    ensure!(args.pes.iter().all(|pes| *pes >= 2), "a comparison needs 2 PEs or more");
    let programs = Programs::build(&args.against)?;
    let cores = std::thread::available_parallelism().context("cannot count the cores")?.get();
    let mut rows = Vec::new();
    let mut text = String::new();
    for &pes in &args.pes {
        let (collected, one_way_ns) = measure(&programs, pes, cores, args)?;
        let of_these = collected.rows(pes);
        text += &table::heading(pes, cores, args.root, one_way_ns);
        text += &table::rows(&of_these);
        rows.extend(of_these);
    }
    let gates = gates(&rows, cores);
    text += &table::gates(&gates);
    Report { title: "Collective operations", rows: &rows, gates: &gates, text: &text }.finish(&args.files)
}

/// All rounds with so many PEs, and the one-way time of 8 bytes where each PE has a core.
fn measure(programs: &Programs, pes: usize, cores: usize, args: &Args) -> Result<(Collected, Option<f64>)> {
    let mut collected = Collected::default();
    let mut one_way_ns = Vec::new();
    for round in 0..args.rounds as usize {
        eprint!("{pes} PEs, round {} of {}:", round + 1, args.rounds);
        for operation in &args.operations {
            eprint!(" {operation}");
            std::io::stderr().flush()?;
            let asked = Asked { operation, sizes: &args.sizes, is_root_fixed: args.root == Root::Fixed };
            for side in order(programs.sides(), round) {
                for printed in programs.run(side, pes, cores, &asked)? {
                    let cell = Cell { operation: operation.clone(), bytes: printed.bytes };
                    collected.add(
                        cell,
                        printed.side(side),
                        round,
                        printed.figure_ns(pes, cores),
                        printed.min,
                    );
                }
            }
        }
        if pes <= cores {
            one_way_ns.push(programs.one_way_ns(pes)?);
        }
        eprintln!();
    }
    Ok((collected, (!one_way_ns.is_empty()).then(|| super::median(&one_way_ns))))
}

/// The sides in the order of a round: another one goes first in each.
fn order(sides: &[Side], round: usize) -> Vec<Side> {
    let mut sides = sides.to_vec();
    let count = sides.len();
    sides.rotate_left(round % count);
    sides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_side_goes_first_in_each_round() {
        let sides = [Side::Pelago, Side::OpenMpi, Side::Oshmem];
        let firsts = [0, 1, 2, 3].map(|round| order(&sides, round)[0]);
        assert_eq!(firsts, [Side::Pelago, Side::OpenMpi, Side::Oshmem, Side::Pelago]);
        assert_eq!(order(&sides, 1), [Side::OpenMpi, Side::Oshmem, Side::Pelago]);
    }
}
