//! QTC: quality threshold clustering, as in the SHOC benchmarks. In each round every free point is tried as
//! the seed of a cluster, and the largest cluster is removed; when few points are left, the group of PEs that
//! search shrinks. Invariant: a run is reported as verified only if its clusters are equal to those that PE 0
//! alone finds by another algorithm. Sources: Heyer, Kruglyak and Yooseph (1999); SHOC, level 2, QTC; Welch
//! and Venkata, "On Synchronisation and Memory Reuse in OpenSHMEM", which measures teams by it.

use std::process::ExitCode;

use clap::Parser;
use pelago::prelude::*;

use self::problem::Problem;
use self::report::Report;
use self::solve::Outcome;
use crate::bar::bar;
use crate::collect::collect;
use crate::entry;
use crate::report::tell;

mod clustering;
mod drive;
mod fnv;
mod group;
mod growth;
#[cfg(test)]
mod lockstep;
mod member;
mod memory;
mod neighbours;
mod points;
mod problem;
mod random;
mod reference;
mod replay;
mod report;
mod solve;
mod usage;
mod verify;

const NAME: &str = "qtc";

/// QTC: find clusters whose members are all within a threshold of each other, largest first, with a group of
/// PEs that shrinks as points become few, and verify them.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N qtc",
    after_help = "\
        The points are made, always the same, in heaps in a square of 20 by 20. A PE is kept for 512 free\n\
        points. The exit status is 0 only if the run is verified.\n\n\
        Examples:\n  \
        pelago run -n 4 qtc                                  the benchmark's size 1\n  \
        pelago run -n 8 qtc --points 16384 --threshold 4     its size 4, with large clusters\n  \
        pelago run -n 4 qtc --points 2048 --json             one JSON object, for programs"
)]
struct Args {
    /// Number of points, 60 or more
    #[arg(long, value_name = "N", default_value = "4096", value_parser = problem::points_from_text)]
    points: u32,
    /// The largest distance within a cluster, above 0
    #[arg(long, value_name = "T", default_value = "1", allow_negative_numbers = true,
        value_parser = problem::threshold_from_text)]
    threshold: f32,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(world, args, |world, args: Args| {
        let problem = Problem { points: args.points, threshold: args.threshold };
        if let Err(too_large) = memory::check(world, problem)? {
            return Ok(entry::refuse(world, NAME, &too_large));
        }
        let outcome = solve_with_bar(world, problem)?;
        let verified = report(world, problem, outcome, args.json)?;
        Ok(if verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Collective: the run, with a progress bar where PE 0 has a terminal for it.
fn solve_with_bar(world: &World, problem: Problem) -> anyhow::Result<Outcome> {
    let bar = bar(world, "points in clusters", u64::from(problem.points))?;
    let mut progress = |free: u32| bar.set_position(u64::from(problem.points - free));
    let outcome = solve::solve(world, problem, &mut progress)?;
    bar.finish_and_clear();
    Ok(outcome)
}

/// Collective: PE 0 verifies and prints. Returns on all PEs whether the run is verified.
fn report(world: &World, problem: Problem, outcome: Outcome, json: bool) -> anyhow::Result<bool> {
    let mut verified = false;
    if world.my_pe() == 0 {
        let checks = verify::verify(problem, &outcome);
        let report = Report::new(problem, outcome, &checks);
        tell(world, &report, json)?;
        verified = report.verified;
    }
    Ok(collect(world, &[u64::from(verified)])?[0] == [1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from([NAME].iter().chain(args))
    }

    #[test]
    fn arguments_have_defaults_and_are_read() {
        let default = parse(&[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((default.points, default.threshold, default.json), (4096, 1.0, false));
        let given = ["--points", "60", "--threshold", "0.5", "--json"];
        let given = parse(&given).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((given.points, given.threshold, given.json), (60, 0.5, true));
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_reason() {
        for (args, part) in [
            (["--points", "0"], "divides by 0"),
            (["--points", "59"], "ask for 60 or more"),
            (["--points", "5000000000"], "below 4294967295"),
            (["--threshold", "0"], "a distance above 0"),
            (["--threshold", "-1"], "a distance above 0"),
            (["--threshold", "NaN"], "a distance above 0"),
        ] {
            let message = parse(&args).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}
