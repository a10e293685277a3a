//! `cargo xtask compare`: compares Pelago with other libraries, in alternating runs.

use std::process::ExitCode;

use clap::Parser;
use pelago_bench::Subject;

/// Compare Pelago with other libraries on this machine, in alternating runs
#[derive(Parser)]
#[command(name = "cargo xtask compare", bin_name = "cargo xtask compare")]
struct Cli {
    #[command(subcommand)]
    subject: Subject,
}

fn main() -> ExitCode {
    let Err(error) = Cli::parse().subject.run() else { return ExitCode::SUCCESS };
    eprintln!("compare: {error:#}");
    ExitCode::FAILURE
}
