//! `cargo xtask`: the commands for developers besides cargo's own. `test` is the whole quick tier, `tidy`
//! checks the style, `budget` counts the instructions of the hot operations, `lines` the lines of code,
//! `install` installs the libraries of OpenSHMEM and MPI, `deb` packs them, `compare` measures Pelago and
//! other libraries.
//!
//! Invariant: each command prints what it does, fails with a non-zero status and one clear message, and needs
//! nothing beyond Rust and gcc; only `test --full` and `compare` need more, and list it.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod budget;
mod deb;
mod header;
mod hosts;
mod install;
mod lines;
mod soak;
mod step;
mod test;
mod tidy;
mod tsan;
mod workspace;

/// On systems where instructions cannot be counted, `budget` prints a message and succeeds.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod budget {
    pub fn run(_json: bool, _record: bool) -> anyhow::Result<()> {
        eprintln!("budget: instructions are counted on x86-64 Linux only, nothing was checked");
        Ok(())
    }
}

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer tasks of Pelago")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check of the quick tier, in order, up to the first failure
    Test {
        /// Add the tests that need root or Debian packages, and install what they need where allowed
        #[arg(long)]
        full: bool,
        /// Fuzz, and run Miri and ThreadSanitizer (nightly Rust, with miri and rust-src), and nothing
        /// else
        #[arg(long, conflicts_with = "full")]
        deep: bool,
        /// Number of inputs for each fuzzing test
        #[arg(long, requires = "deep", default_value_t = 10_000_000)]
        inputs: u64,
        /// Run a campaign of jobs whose PEs and launchers are killed and stopped, and nothing else;
        /// with --netns, jobs of two hosts
        #[arg(long, conflicts_with_all = ["full", "deep"])]
        soak: bool,
        /// Number of jobs of the campaign
        #[arg(long, requires = "soak", default_value_t = 2000)]
        count: u64,
        /// Seed of the campaign
        #[arg(long, requires = "soak", default_value_t = 1)]
        seed: u64,
        /// Repeat one job of the campaign
        #[arg(long, requires = "soak")]
        only: Option<u64>,
        /// Run the campaign's jobs between these network namespaces (`ip netns`), and also cut their network;
        /// needs root
        #[arg(long, requires = "soak", value_name = "A,B", value_parser = hosts::namespaces)]
        netns: Option<[String; 2]>,
    },
    /// Check the style rules that the compiler and clippy do not check
    Tidy,
    /// Run jobs of threads, and OpenSHMEM programs with threads, under ThreadSanitizer (nightly Rust)
    Tsan,
    /// Count the instructions of the hot operations, against their budgets
    Budget {
        /// Print one JSON array instead of the table
        #[arg(long)]
        json: bool,
        /// Write the counts to the file that `pelago paper` prints
        #[arg(long)]
        record: bool,
    },
    /// Count the lines of code of each crate and folder, without comments, blank lines and tests
    Lines {
        /// Print one JSON array instead of the table
        #[arg(long)]
        json: bool,
    },
    /// Install the libraries of OpenSHMEM and MPI, their compiler wrappers and the launchers
    Install(install::Install),
    Deb(deb::Deb),
    /// Write the header files of OpenSHMEM and MPI, or print the names of their functions
    Header {
        /// Folder of the files
        #[arg(long)]
        folder: Option<PathBuf>,
    },
    /// Compare Pelago with other libraries on this machine, in alternating runs
    #[command(disable_help_flag = true)]
    Compare {
        /// Options of the comparison; --help lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Test { soak: true, count, seed, only, netns, .. } => {
            soak::run(count, seed, only, netns.as_ref())
        }
        Command::Test { deep: true, inputs, .. } => test::run_deep(inputs),
        Command::Test { full, .. } => test::run(full),
        Command::Tidy => tidy::run(),
        Command::Tsan => tsan::run(),
        Command::Budget { json, record } => budget::run(json, record),
        Command::Lines { json } => lines::run(json),
        Command::Install(install) => install.run(),
        Command::Deb(deb) => deb.run(),
        Command::Header { folder } => header::run(folder.as_deref()),
        Command::Compare { words } => compare(&words),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Passes the arguments to the program that compares. It is a separate program, so that xtask compiles where
/// the runtime does not.
fn compare(words: &[OsString]) -> anyhow::Result<()> {
    let mut command = workspace::cargo(&["run", "--quiet", "-p", "pelago-bench", "--"]);
    let status = command.args(words).status()?;
    anyhow::ensure!(status.success(), "compare: {status}");
    Ok(())
}
