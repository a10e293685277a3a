//! Microbenchmarks of the runtime, as PEs of a job. PE 0 writes one JSON object per line; `pelago bench`
//! starts the jobs and makes tables and curves of the lines. Invariant: the microbenchmarks only measure;
//! gates compare elsewhere.
//!
//! Method: PE 0 leads (`base/ensemble.rs`). Memory is touched before measurements; an operation runs in many
//! short blocks of calibrated length (`base/effort.rs`); operations that are compared alternate block by
//! block; the minimum, median and maximum over the blocks are reported.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use pelago::prelude::*;
use pelago_apps::{App, entry};
use pelago_boot::print;

use crate::base::buffers::transfer_bytes;
use crate::base::effort::Effort;
use crate::base::record::{Operation, Pair};
use crate::base::suite::Progress;
use crate::topics::{
    am, atomics, barrier, coll, compute, contention, fabric, links, messages, ping, rate, rma, semaphores,
    signals, threads, vis,
};

const NAME: &str = "perf";

/// The application, for the list of built-in applications.
pub const APP: App =
    App { name: NAME, about: "Microbenchmarks as lines of JSON; `pelago bench` makes tables of them", run };

/// Measure the runtime on 2 PEs or more, and write one JSON object per line. `pelago bench` runs this
/// application and makes tables of its output.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N --bind app:perf",
    after_help = "\
        Examples:\n  \
        pelago run -n 2 --bind app:perf rma                     latencies, bandwidths and the barrier\n  \
        pelago run -n 4 app:perf barrier                        the barrier of four PEs\n  \
        pelago run -n 4 app:perf contention                     four PEs add to one word\n  \
        pelago run -n 4 app:perf am-senders                     three PEs send messages to one\n  \
        pelago run -n 2 app:perf fabric --rows put,put-rate     puts alone, as a fabric has them\n  \
        pelago run -n 4 app:perf coll --operations all-reduce   one collective operation, all sizes\n  \
        pelago run -n 2 --bind app:perf pairs put --bytes 4096  put beside memcpy, eleven times"
)]
struct Args {
    #[command(subcommand)]
    what: What,
    /// Write the lines to this file instead of standard output
    #[arg(long, global = true, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Measure for a short time only, as a test
    #[arg(long, global = true)]
    quick: bool,
    /// Show no progress bar
    #[arg(long, global = true)]
    silent: bool,
}

#[derive(Subcommand)]
enum What {
    /// Put and get between PEs 0 and 1, and the barrier of all PEs
    Rma,
    /// The barrier alone
    Barrier,
    /// Atomics of PE 0 alone, and of PEs 0 and 1 at the same time
    Atomics,
    /// Fetch-and-add of all PEs at the same time
    Contention,
    /// Puts with a signal between PEs 0 and 1, compared with puts, a fence and a flag
    Signals,
    /// Posts and waits between PEs 0 and 1, and puts that post
    Semaphores,
    /// Active messages between PEs 0 and 1: round trips and floods; and a poll that finds nothing
    Am,
    /// Active messages of all other PEs to PE 0 at the same time
    AmSenders,
    /// Two-sided messages between PEs 0 and 1: round trips and windows
    Messages,
    /// Put, get and message between PEs 0 and 1, each until it is complete
    Ping,
    /// Windows of non-blocking puts from PE 0 to PE 1
    Rate,
    /// Windows of non-blocking puts and of messages from PE 0 to PE 1, and to more PEs in turn
    Links,
    /// Scattered transfers of PE 0 on PE 1's memory, compared with contiguous ones
    Vis,
    /// Threads of PE 0 that put and add in PE 1's memory
    Threads,
    /// Puts, gets and an atomic of PE 0 on PE 1's memory, each completed: the operations of the fabric
    Fabric(fabric::Options),
    /// Collective operations of all PEs: a record for each operation and size
    Coll(coll::Options),
    /// PE 0 computes while the others wait for it; writes one line with the work done
    Compute {
        /// Duration in milliseconds
        #[arg(long, default_value_t = 300)]
        milliseconds: u64,
    },
    /// An operation and its yardstick: repeated times of both
    Pairs {
        #[command(subcommand)]
        comparison: Comparison,
        /// Number of pairs
        #[arg(long, default_value_t = 11)]
        count: usize,
    },
}

/// The operation and its yardstick.
#[derive(Clone, Copy, Debug, Subcommand)]
enum Comparison {
    /// Blocking puts with memcpy between the same buffers
    Put {
        /// Bytes of a put, a multiple of 8
        #[arg(long, value_parser = transfer_bytes)]
        bytes: usize,
    },
    /// Blocking gets with memcpy between the same buffers
    Get {
        /// Bytes of a get, a multiple of 8
        #[arg(long, value_parser = transfer_bytes)]
        bytes: usize,
    },
    /// The barrier with a one-way transfer: half a round trip of a flag of 8 bytes between PEs 0 and 1
    BarrierOneWay,
    /// The all-reduce, a sum of doubles, with a loop over the mapped sources and one barrier
    AllReduce {
        /// Bytes that a PE contributes, a multiple of 8
        #[arg(long, value_parser = transfer_bytes)]
        bytes: usize,
    },
    /// The barrier with one in which every PE only yields its core until all have arrived
    BarrierYield,
}

impl Comparison {
    /// Collective, for two PEs or more: measures `count` pairs; returns them on PE 0, and none elsewhere.
    fn pairs(self, world: &World, count: usize, effort: Effort) -> anyhow::Result<Vec<Pair>> {
        match self {
            Comparison::Put { bytes } => rma::memcpy_pairs(world, Operation::Put, bytes, count, effort),
            Comparison::Get { bytes } => rma::memcpy_pairs(world, Operation::Get, bytes, count, effort),
            Comparison::BarrierOneWay => barrier::one_way_pairs(world, count, effort),
            Comparison::BarrierYield => barrier::yield_pairs(world, count, effort),
            Comparison::AllReduce { bytes } => coll::all_reduce_pairs(world, bytes, count, effort),
        }
    }
}

fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(world, args, |world, args: Args| {
        if world.n_pes() < 2 && !matches!(args.what, What::Compute { .. }) {
            return Ok(entry::refuse(world, NAME, &"measures between PEs, and so needs 2 of them or more"));
        }
        let mut output = output(world, &args);
        let bar = progress_bar(world, args.silent)?;
        let fabric = world.fabric();
        let mut sink = |progress: Progress<'_>| {
            bar.set_length(progress.trials as u64);
            bar.set_position(progress.trials_done as u64);
            let records = progress.records.iter();
            records
                .map(|record| record.clone().over(fabric.as_deref()))
                .try_for_each(|record| write_line(&mut output, &record))
        };
        let effort_of = |members| match args.quick {
            true => Effort::quick(),
            false => Effort::among(members, world.cores()),
        };
        let effort = effort_of(world.n_pes());
        match args.what {
            What::Rma => rma::all(world, &rma::Plan::of(world, effort), &mut sink)?,
            What::Barrier => barrier::all(world, effort, &mut sink)?,
            What::Atomics => atomics::all(world, effort, &mut sink)?,
            What::Contention => contention::all(world, effort, &mut sink)?,
            What::Signals => signals::all(world, &signals::BYTES, effort, &mut sink)?,
            What::Semaphores => semaphores::all(world, &signals::BYTES, effort, &mut sink)?,
            What::Am => am::all(world, &am::BYTES, effort, &mut sink)?,
            What::AmSenders => am::senders(world, effort, &mut sink)?,
            What::Messages => messages::all(world, &messages::BYTES, effort, &mut sink)?,
            What::Ping => ping::all(world, &ping::BYTES, effort, &mut sink)?,
            What::Rate => rate::all(world, rate::SIZES, effort, &mut sink)?,
            What::Links => links::all(world, &links::LINKS, &links::BYTES, effort, &mut sink)?,
            What::Vis => vis::all(world, vis::SIZES, effort, &mut sink)?,
            What::Threads => threads::all(world, effort_of, &mut sink)?,
            What::Fabric(options) => fabric::all(world, &options, effort, &mut sink)?,
            What::Coll(options) => {
                coll::all(world, &coll::Plan::of(world, &options, effort, args.quick), &mut sink)?
            }
            What::Compute { milliseconds } => {
                let done = compute::compute(world, Duration::from_millis(milliseconds))?;
                done.iter().try_for_each(|done| write_line(&mut output, done))?;
            }
            What::Pairs { comparison, count } => {
                let pairs = comparison.pairs(world, count, effort)?;
                pairs.iter().try_for_each(|pair| write_line(&mut output, pair))?;
            }
        }
        bar.finish_and_clear();
        Ok(ExitCode::SUCCESS)
    })
}

/// The output of PE 0; the other PEs have none. Aborts the job if the file cannot be created.
fn output(world: &World, args: &Args) -> Option<File> {
    match &args.output {
        Some(path) if world.my_pe() == 0 => match File::create(path) {
            Ok(file) => Some(file),
            Err(error) => {
                let reason = format!("perf cannot write to {}: {error}", path.display());
                world.abort(i32::from(entry::USAGE_EXIT_CODE), &reason)
            }
        },
        _ => None,
    }
}

/// Writes a measurement to the file, or to standard output.
fn write_line(output: &mut Option<File>, line: &impl serde::Serialize) -> anyhow::Result<()> {
    let line = serde_json::to_string(line)? + "\n";
    let written = output.as_mut().map_or_else(|| print(&line), |file| file.write_all(line.as_bytes()));
    written.context("writing a measurement")
}

fn progress_bar(world: &World, is_silent: bool) -> anyhow::Result<ProgressBar> {
    if is_silent || world.my_pe() != 0 || !io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("measuring [{bar:40}] {pos}/{len}, {eta} left")?;
    Ok(ProgressBar::new(0).with_style(style))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::suite::tests::EFFORT;

    #[test]
    fn arguments_are_read() {
        let parse = |words: &str| Args::try_parse_from([NAME].into_iter().chain(words.split(' ')));
        let args = parse("pairs put --bytes 4096 --output x").unwrap_or_else(|error| panic!("{error}"));
        assert!(matches!(args.what, What::Pairs { comparison: Comparison::Put { bytes: 4096 }, count: 11 }));
        assert_eq!(args.output, Some("x".into()));
        let suites = "rma barrier atomics contention signals semaphores am am-senders messages ping rate \
                      links vis threads fabric coll compute";
        for suite in suites.split(' ') {
            let args = parse(&format!("{suite} --quick"));
            assert!(args.is_ok_and(|args| args.quick && args.output.is_none()), "{suite}");
        }
        let coll = "coll --root fixed --block-us 200 --blocks 9 --budget-ms 30 --sizes 8,64 --operations";
        assert!(
            parse(&format!("{coll} barrier,all-to-all")).is_ok() && parse(&format!("{coll} put")).is_err()
        );
        assert!(
            parse("fabric --rows put,get-bandwidth --block-us 9").is_ok()
                && parse("fabric --rows x").is_err()
        );
        assert!(parse("pairs get --bytes 12").is_err() && parse("rmaa").is_err());
    }

    #[test]
    fn each_comparison_gives_its_pairs_on_pe_0() {
        for comparison in [
            Comparison::Put { bytes: 4096 },
            Comparison::Get { bytes: 8 },
            Comparison::BarrierOneWay,
            Comparison::BarrierYield,
            Comparison::AllReduce { bytes: 8192 },
        ] {
            let pairs = spmd(3, |world| comparison.pairs(world, 4, EFFORT).unwrap()).unwrap();
            assert_eq!(pairs.iter().map(Vec::len).collect::<Vec<_>>(), [4, 0, 0], "{comparison:?}");
            let is_time = |ns: f64| ns > 0.0 && ns.is_finite();
            assert!(pairs[0].iter().all(|pair| is_time(pair.ours_ns) && is_time(pair.yardstick_ns)));
        }
    }
}
