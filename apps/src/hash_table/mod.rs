//! A distributed hash table: keys and values of 64 bits, each key is on the PE that its hash selects;
//! insertions, updates, lookups and removals are sent by active messages, many in one message. Invariant: a
//! run is reported as verified only if every lookup has found the expected value, and the number of remaining
//! keys is as expected.

use std::process::ExitCode;

use clap::{Parser, value_parser};
use pelago::prelude::*;

use self::report::Report;
use self::workload::Phase;
use crate::bar::bar;
use crate::entry;
use crate::partition::Partition;
use crate::report::tell;
use crate::room::{self, Need};

#[cfg(test)]
mod differential;
mod report;
mod shard;
mod table;
mod workload;

const NAME: &str = "hash-table";
/// The permitted numbers of keys.
const KEYS: std::ops::RangeInclusive<u64> = 1..=1_000_000_000_000;
/// Bytes of memory for each key: slots of 16 bytes, up to 8 for every 3 keys after their number was doubled,
/// plus half as many from before the doubling.
const KEY_BYTES: u64 = 64;

/// A distributed hash table: insert, update, find and remove keys over all PEs by aggregated active messages,
/// verify every answer, and print the rates.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N hash-table",
    after_help = "\
        The exit status is 0 only if every lookup has found what it must.\n\n\
        Examples:\n  \
        pelago run -n 2 hash-table                         a million keys\n  \
        pelago run -n 4 hash-table --keys 10000000         a table that leaves the caches\n  \
        pelago run -n 2 hash-table --keys 100000 --json    one JSON object, for programs"
)]
struct Args {
    /// Keys of all PEs together
    #[arg(long, value_name = "N", default_value_t = 1_000_000, allow_negative_numbers = true,
        value_parser = value_parser!(u64).range(KEYS))]
    keys: u64,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(world, args, |world, args: Args| {
        let (pes, keys) = (world.n_pes(), args.keys);
        let share = Partition::new(keys, pes).longest();
        let need =
            Need { what: format!("a table of {keys} keys"), heap_bytes: 0, private_bytes: KEY_BYTES * share };
        if let Err(too_large) = room::check(world, need, |_| "take a smaller --keys".to_owned())? {
            return Ok(entry::refuse(world, NAME, &too_large));
        }
        let phases = Phase::ALL.len() as u64;
        let bar = bar(world, "keys", phases * share)?;
        let mut progress = |phase: Phase, done| bar.set_position(phase as u64 * share + done);
        let outcome = workload::run(world, keys, &mut progress)?;
        bar.finish_and_clear();
        let report = Report::new(pes, keys, &outcome);
        tell(world, &report, args.json)?;
        Ok(if report.verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
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
        assert_eq!((default.keys, default.json), (1_000_000, false));
        let given = parse(&["--keys", "7", "--json"]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((given.keys, given.json), (7, true));
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_valid_ones() {
        for keys in ["0", "1000000000001", "-1", "many"] {
            let message = parse(&["--keys", keys]).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains("--keys"), "{keys}: {message}");
        }
        let message = parse(&["--keys", "0"]).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains("1..=1000000000000"), "{message}");
    }
}
