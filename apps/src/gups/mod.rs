//! GUPS, the RandomAccess benchmark of HPC Challenge: random words of a table over all PEs are changed, by
//! puts and gets, by atomics, or by active messages with many updates each. Invariant: a run is reported as
//! verified only if at most one word in a hundred is wrong after all updates were repeated without races.
//! Sources: HPC Challenge 1.5, RandomAccess, and its rules, which allow a PE to store 1024 updates.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use pelago::prelude::*;

use self::method::Method;
use self::problem::Problem;
use self::report::Report;
use crate::bar::bar;
use crate::choice::{Choice, Named};
use crate::entry;
use crate::report::tell;
use crate::room::{self, Need};

mod method;
mod problem;
mod report;
mod sequence;
mod update;
mod verify;

const NAME: &str = "gups";
/// The permitted sizes of the table; the number of bytes of a larger one would overflow.
const WORDS_LOG2: std::ops::RangeInclusive<i64> = 0..=56;
/// The permitted numbers of updates: at least one, and fewer than the period of the random numbers.
const UPDATES: std::ops::RangeInclusive<u64> = 1..=1_000_000_000_000_000_000;

/// GUPS: change random words of a table over all PEs, and verify it by the rules of HPC Challenge.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N gups",
    after_help = "\
        Any number of PEs shares the table and the updates. The exit status is 0 only if at most one word\n\
        in a hundred is wrong at the end. put-get loses updates where two PEs change a word at once; the\n\
        other methods lose none.\n\n\
        Examples:\n  \
        pelago run -n 2 gups                              aggregated messages, 2^20 words, 4 updates each\n  \
        pelago run -n 2 --bind gups --table-log2 25       a table that leaves the caches\n  \
        pelago run -n 4 gups --method all                 one after the other\n  \
        pelago run -n 2 gups --method atomics --json      one JSON object a method, for programs"
)]
struct Args {
    /// How words are changed: put-get, atomics, messages; all runs each of them
    #[arg(long, default_value = "messages", value_parser = Choice::<Method>::from_name)]
    method: Choice<Method>,
    /// The table of all PEs together has 2^K words of 8 bytes
    #[arg(long, value_name = "K", default_value = "20", allow_negative_numbers = true,
        value_parser = value_parser!(u32).range(WORDS_LOG2))]
    table_log2: u32,
    /// Updates of all PEs together; four for each word of the table if not given
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = value_parser!(u64).range(UPDATES))]
    updates: Option<u64>,
    /// Print one JSON object a method and nothing else
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(world, args, |world, args: Args| {
        let problem = Problem::new(args.table_log2, args.updates, world.n_pes());
        let need = Need {
            what: format!("a table of 2^{} words", args.table_log2),
            heap_bytes: 8 * problem.table.longest(),
            private_bytes: 0,
        };
        if let Err(too_large) = room::check(world, need, |_| "take a smaller --table-log2".to_owned())? {
            return Ok(entry::refuse(world, NAME, &too_large));
        }
        let mut table = world.alloc::<u64>(problem.table.longest() as usize)?;
        let mut is_verified = true;
        for method in args.method.all() {
            let report = run_method(world, &mut table, problem, method)?;
            tell(world, &report, args.json)?;
            is_verified &= report.verified;
        }
        Ok(if is_verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Collective: one run and its verification, each with a progress bar where PE 0 has a terminal.
fn run_method(
    world: &World,
    table: &mut Symmetric<'_, u64>,
    problem: Problem,
    method: Method,
) -> anyhow::Result<Report> {
    verify::fill(world, table, &problem);
    let share = problem.stream.range(world.my_pe());
    let updates = bar(world, method.name(), share.end - share.start)?;
    let time = update::run(world, table, (&problem, method), &mut |done| updates.set_position(done))?;
    updates.finish_and_clear();
    let verified = bar(world, "verification", problem.stream.len())?;
    let errors = verify::errors(world, table, &problem, &mut |done| verified.set_position(done))?;
    verified.finish_and_clear();
    // A clock may be too coarse for a handful of updates.
    Ok(Report::new(problem, method, time.max(Duration::from_nanos(1)), errors))
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
        assert_eq!((default.method, default.json), (Choice::One(Method::Messages), false));
        assert_eq!((default.table_log2, default.updates), (20, None));
        let given = ["--method", "put-get", "--table-log2", "8", "--updates", "9", "--json"];
        let given = parse(&given).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((given.method, given.json), (Choice::One(Method::PutGet), true));
        assert_eq!((given.table_log2, given.updates), (8, Some(9)));
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_valid_ones() {
        for (args, part) in [
            (["--method", "mesages"], "the methods are put-get, atomics, messages, all"),
            (["--table-log2", "57"], "0..=56"),
            (["--table-log2", "-1"], "--table-log2"),
            (["--updates", "0"], "1..=1000000000000000000"),
            (["--updates", "many"], "--updates"),
        ] {
            let message = parse(&args).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}
