//! `cargo xtask compare shmem`: the calls of our OpenSHMEM library and of Open MPI's (Debian), measured by
//! one C program (c/shmem.c) that each side's oshcc builds.
//!
//! Invariant: the sides alternate row by row, and every row checks its result. A ratio is the median, over
//! the rounds, of our time to theirs in the same round.

use std::process::Command;

use anyhow::{Result, ensure};
use clap::Args;

use crate::base::peers::{self, Printed, Side};
use crate::base::rounds::{self, Files, Gate, Row, cores, gates_table, placement};

/// The rows of one-sided calls, as the program names them.
const ONE_SIDED: &str = "my_pe p g put get put-nbi get-nbi put-bandwidth iput iget fetch-add \
                         fetch-inc-int add inc swap compare-swap fetch set quiet fence lock ping-pong";
/// The rows of collective calls.
const COLLECTIVE: &str = "barrier_all sync_all broadcast reduce fcollect alltoall";
/// The rows whose speed is that of copying memory, from `COPY_BYTES` bytes on.
const COPIES: [&str; 6] = ["put", "get", "put-bandwidth", "broadcast", "fcollect", "alltoall"];
const COPY_BYTES: usize = 4096;

/// The options of the comparison.
#[derive(Args)]
pub struct Compare {
    /// Number of rounds; in each, both libraries run every row
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Numbers of PEs; PEs are bound if each has a core
    #[arg(long, value_delimiter = ',', default_value = "2,4")]
    pes: Vec<usize>,
    /// Rows (default: all; if PEs share cores, those of collective calls)
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    #[command(flatten)]
    files: Files,
}

impl Compare {
    /// Installs our library, builds the programs, runs all rounds, prints the comparison, and fails if a gate
    /// fails.
    pub fn run(&self) -> Result<()> {
        ensure!(self.pes.iter().all(|pes| *pes >= 2), "a comparison needs 2 PEs or more");
        let prefix = peers::install("prefix")?;
        let ours = peers::compile(&prefix.join("bin/oshcc"), "shmem.c", Side::Pelago.name(), &[])?;
        let theirs = peers::compile_by(Side::Oshmem, "shmem.c", &[])?;
        let (oshrun, cores) = (prefix.join("bin/oshrun"), cores()?);
        let (mut rows, mut tables) = (Vec::new(), Vec::new());
        for &pes in &self.pes {
            let is_crowded = pes > cores;
            let run = |side, row: &str| {
                let mut command = match side {
                    Side::Pelago => {
                        let mut command = Command::new(&oshrun);
                        command
                            .args((!is_crowded).then_some("--bind"))
                            .args(["-n", &pes.to_string()])
                            .arg(&ours);
                        command
                    }
                    _ => peers::launcher(side, pes, is_crowded, &theirs)?,
                };
                Printed::of(command.args(["--rows", row]).args(peers::effort(is_crowded)))
            };
            let sides = [Side::Pelago, Side::Oshmem];
            let (job, wanted) = (format!("{pes} PEs, "), self.wanted(is_crowded));
            let figure_ns = |printed: &Printed| printed.figure_ns(pes, cores);
            let collected = rounds::measure(&job, self.rounds, &sides, &wanted, figure_ns, run)?;
            tables.push(rounds::table(&heading(pes, cores), &collected.rows(pes)));
            rows.extend(collected.rows(pes));
        }
        let gates: Vec<_> = rows.iter().filter_map(|row| gate(row, cores)).collect();
        let missed: Vec<_> = gates.iter().filter(|gate| !gate.is_kept()).collect();
        tables.push(gates_table(missed));
        rounds::finish("OpenSHMEM calls", &rows, &gates, &tables, &self.files)
    }

    /// The rows that are measured: if PEs share cores, the default is those of collective calls.
    fn wanted(&self, is_crowded: bool) -> Vec<&str> {
        let one_sided = if is_crowded { "" } else { ONE_SIDED };
        match self.rows.is_empty() {
            true => one_sided.split_whitespace().chain(COLLECTIVE.split_whitespace()).collect(),
            false => self.rows.iter().map(String::as_str).collect(),
        }
    }
}

fn heading(pes: usize, cores: usize) -> String {
    let (placement, block) = placement(pes, cores);
    format!(
        "{placement}.\n\
         Microseconds a call (put: with its quiet; lock: set and clear; ping-pong: the round trip): the\n\
         {block} of many short blocks, the median over the rounds; in brackets the median of the ratios\n\
         (ours to theirs).\n"
    )
}

/// The bound of a row: faster than the peer, or if both copy memory, at least 0.97 of its speed; if PEs share
/// cores, at most 1.1 times its time.
fn gate(row: &Row, cores: usize) -> Option<Gate> {
    let is_copy = COPIES.contains(&row.operation.as_str()) && row.bytes >= COPY_BYTES;
    let bound = match (row.pes > cores, is_copy) {
        (true, _) => 1.1,
        (false, true) => 1.0 / 0.97,
        (false, false) => 1.0,
    };
    Some(Gate { name: format!("{} PEs, {}", row.pes, row.name()), ratio: row.ratio_to_best?, bound })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rounds::tests::args;
    use crate::base::rounds::{Cell, Collected};

    #[test]
    fn pes_that_share_cores_do_collective_calls() {
        let compare: Compare = args("shmem");
        assert_eq!([compare.wanted(false).len(), compare.wanted(true).len()], [28, 6]);
        assert_eq!(args::<Compare>("shmem --rows p,put").wanted(true), ["p", "put"]);
    }

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
