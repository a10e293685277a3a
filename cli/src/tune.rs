//! `pelago tune`: which algorithms are best, by measurement here or by simulation of another machine.
//!
//! Invariant: without a subcommand it measures this machine, as it always did.

mod explain;
mod simulate;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::measure;

/// Find the best algorithms of collective operations on this machine, and write them to a file
///
/// Times every algorithm as a schedule: this is the form of nonblocking collectives, and of collectives
/// between nodes. Blocking collectives between PEs of one node use direct forms, which need no tuning. The
/// file applies to teams on one node with up to the largest measured number of PEs. PELAGO_COLL_TUNING names
/// the file to a job; each PE reads it.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Tune {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    here: measure::Here,
}

#[derive(Subcommand)]
enum Action {
    Measure(measure::Measure),
    Simulate(simulate::Simulate),
    Explain(explain::Explain),
}

const EXAMPLES: &str = "\
Examples:
  pelago tune                                       all operations, a few minutes
  pelago tune -n 2,4 --operations broadcast,reduce  some operations, for teams of up to 2 and 4 PEs
  pelago tune -n 8 --bytes 8,4096,1048576 --output here.toml
  PELAGO_COLL_TUNING=here.toml pelago info --collectives -n 8
  PELAGO_COLL_TUNING=here.toml pelago run -n 8 ./my-program
  pelago tune measure --hosts a,b --output ab.toml  the machine itself, as a file for pelago model
  pelago tune simulate --machine ab.toml -n 64,4096 --output big.toml   a tuning file by simulation
  pelago tune explain broadcast --bytes 64K -n 16   why this algorithm";

impl Tune {
    /// Executes the subcommand, or measures here; returns the exit status.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        match self.action {
            None => self.here.execute(),
            Some(Action::Measure(measure)) => measure.execute(),
            Some(Action::Simulate(simulate)) => simulate.execute(),
            Some(Action::Explain(explain)) => explain.execute(),
        }
    }
}
