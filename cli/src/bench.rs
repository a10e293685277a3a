//! `pelago bench`: what this machine and this runtime do, measured, and held against its bounds.
//!
//! Invariant: figures come from jobs that this command starts of itself (the application `perf`); here they
//! are only put in order. A gate is a comparison within one run, never an absolute time.

mod gate;
mod job;
mod page;
mod start;
mod table;
mod text;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use pelago_apps::perf::Record;

/// Measure the runtime on this machine
///
/// With --gate it compares instead: eleven pairs a gate, and exit status 1 if the median of one misses its
/// bound.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub struct Bench {
    #[command(subcommand)]
    suite: Option<Suite>,
    /// Judge these gates, or all if none is named
    #[arg(long, value_name = "NAME", num_args = 0..)]
    gate: Option<Vec<String>>,
    /// Print one JSON object a gate instead of a table
    #[arg(long, requires = "gate")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pelago bench rma                        latencies, bandwidths, barriers, as tables
  pelago bench rma --html curves.html     the same as a page of curves
  pelago bench rma -n 16 --json           barriers of up to 16 PEs too; for programs
  pelago bench --gate                     is everything within its bounds?
  pelago bench --gate barrier-2 put-4k    only these";

#[derive(Subcommand)]
enum Suite {
    Rma(Rma),
}

/// Put, get, memcpy beside them, and the barrier
///
/// Two PEs for put and get; for the barrier one job for each number of PEs up to 8, and fewer in between
/// above that.
#[derive(Args)]
struct Rma {
    /// The most PEs; the cores that this command may use, and at least 2, unless given
    #[arg(short, value_name = "N", value_parser = two_or_more, allow_negative_numbers = true)]
    n: Option<usize>,
    /// Keep PEs on cores of their own, or in turn if there are too few; the default where there are enough
    #[arg(long, conflicts_with = "no_bind")]
    bind: bool,
    /// Let the system move the PEs
    #[arg(long)]
    no_bind: bool,
    /// Print the measurements, one JSON object a line, instead of tables
    #[arg(long)]
    json: bool,
    /// Write a page of curves to this file as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Bench {
    /// Measures or judges; gives the exit status.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        match (self.suite, self.gate) {
            (Some(Suite::Rma(rma)), _) => rma.execute(),
            (None, names) => gate::judge(&names.unwrap_or_default(), self.json),
        }
    }
}

impl Rma {
    fn execute(self) -> anyhow::Result<ExitCode> {
        let cores = pelago_boot::cores();
        // Before minutes are spent, not after.
        let page = self
            .html
            .as_ref()
            .map(|path| File::create(path).with_context(|| format!("creating the page {}", path.display())));
        let page = page.transpose()?;
        let mut records = Vec::<Record>::new();
        // The most PEs first: if they are too many, it is said at once.
        for pes in pe_counts(self.n.unwrap_or(cores.max(2))).into_iter().rev() {
            let bind = self.bind || (!self.no_bind && pes <= cores);
            let lines = job::perf(pes, bind, &[if pes == 2 { "rma" } else { "barrier" }])?;
            if self.json {
                lines.iter().for_each(|line| println!("{line}"));
            }
            records.extend(job::parse::<Record>(&lines)?);
        }
        records.sort_by_key(|record| record.pes);
        let text = text::tables(&records);
        if !self.json {
            print!("{}\n{text}", text::heading(cores));
        }
        if let Some(mut page) = page {
            let html = page::html(&text::heading(cores), &text, &records);
            page.write_all(html.as_bytes()).context("writing the page of curves")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The numbers of PEs whose barriers are measured: each up to 8, then a quarter more at a time, and `max`.
fn pe_counts(max: usize) -> Vec<usize> {
    let next = |pes: &usize| (*pes < max).then(|| (pes + (pes / 4).max(1)).min(max));
    let next = |pes: &usize| if *pes < 8 { (*pes < max).then_some(pes + 1) } else { next(pes) };
    std::iter::successors(Some(2), next).collect()
}

fn two_or_more(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| *number >= 2);
    number.ok_or_else(|| "this is not a number of PEs of 2 or more".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_pes_grow_by_steps_to_the_one_asked_for() {
        assert_eq!(pe_counts(2), [2]);
        assert_eq!(pe_counts(5), [2, 3, 4, 5]);
        assert_eq!(pe_counts(16), [2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16]);
        assert!(pe_counts(1000).len() < 40);
    }

    #[test]
    fn fewer_than_two_pes_are_refused() {
        assert_eq!(two_or_more("2"), Ok(2));
        for text in ["1", "0", "-2", "two", ""] {
            assert!(two_or_more(text).is_err(), "{text}");
        }
    }
}
