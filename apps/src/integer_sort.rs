//! `integer-sort`: keys are sorted into ranges of buckets, one range a PE, and then locally. The PEs add up
//! their histograms, exchange by all-to-all how many keys go where, and put or send the keys. Invariant:
//! after the sort PE p has no key above one of PE p + 1, and all PEs together have the keys that they had
//! before. Source: the benchmark IS of the NAS Parallel Benchmarks, NAS-95-020, whose distribution of keys,
//! the mean of four random numbers, this one has.

use std::process::ExitCode;

use clap::{Parser, value_parser};
use pelago::Result;
use pelago::prelude::*;

use crate::choice::Choice;
use crate::collect;
use crate::entry;
use crate::partition::Partition;
use crate::rate::timed;
use crate::report::tell;
use crate::room::{self, Need};
use crate::splitmix::{mix, scale};
use crate::tutorial::{Report, Variant};

const NAME: &str = "integer-sort";
/// The number of buckets; each PE gets some.
const BUCKETS: usize = 1024;

/// Integer sort: sort random keys over all PEs by buckets, and verify their order.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N integer-sort",
    after_help = "\
        A tutorial: its source, apps/src/integer_sort.rs, is meant to be read. The exit status is 0 only if\n\
        the keys are in order and none is lost.\n\n\
        Examples:\n  \
        pelago run -n 2 integer-sort                        a million keys\n  \
        pelago run -n 4 integer-sort --keys 8388608         as many as in class A of NAS IS\n  \
        pelago run -n 2 integer-sort --variant all          puts, and then messages\n  \
        pelago run -n 2 integer-sort --range 10 --json      few different keys; a JSON object, for programs"
)]
struct Args {
    /// Number of keys of all PEs together
    #[arg(long, default_value = "1048576", allow_negative_numbers = true,
        value_parser = value_parser!(u64).range(1..=1 << 40))]
    keys: u64,
    /// Keys are below this number
    #[arg(long, value_name = "END", default_value = "524288", allow_negative_numbers = true,
        value_parser = value_parser!(u64).range(1..=1 << 32))]
    range: u64,
    /// How keys cross the PEs: one-sided, by puts; two-sided, by messages; all runs each variant
    #[arg(long, default_value = "one-sided", value_parser = Choice::<Variant>::from_name)]
    variant: Choice<Variant>,
    /// Print one JSON object a variant and nothing else
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(world, args, |world, args: Args| {
        let partition = Partition::new(args.keys, world.n_pes());
        // A PE may get a bucket more than its part, whose size depends on the keys.
        let key_bytes = 4 * partition.longest();
        let need = Need {
            what: format!("{} keys", args.keys),
            heap_bytes: 2 * key_bytes + 16 * BUCKETS as u64,
            private_bytes: 4 * key_bytes,
        };
        if let Err(too_large) = room::check(world, need, |_| "take fewer --keys".to_owned())? {
            return Ok(entry::refuse(world, NAME, &too_large));
        }
        let mut is_verified = true;
        for variant in args.variant.all() {
            let keys: Vec<_> = partition.range(world.my_pe()).map(|index| key(index, args.range)).collect();
            let mut sorted = Vec::new();
            let time = timed(world, || {
                sorted = sort(world, &keys, args.range, variant)?;
                Ok(())
            })?;
            let wrong = wrong(world, &keys, &sorted)?;
            let problem = format!("{} keys below {}", args.keys, args.range);
            let report = Report::new(world, (NAME, variant), problem, (args.keys, "keys"), (time, wrong));
            tell(world, &report, args.json)?;
            is_verified &= report.verified;
        }
        Ok(if is_verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// The key with this number among those of all PEs: the mean of four random numbers below `range`.
fn key(index: u64, range: u64) -> u32 {
    let sum: u64 = (0..4).map(|part| scale(mix(4 * index + part + 1), range)).sum();
    (sum / 4) as u32
}

fn bucket(key: u32, range: u64) -> usize {
    (u64::from(key) * BUCKETS as u64 / range) as usize
}

/// Collective: sorts the keys of all PEs. Returns those that this PE has then, in order.
fn sort(world: &World, keys: &[u32], range: u64, variant: Variant) -> Result<Vec<u32>> {
    let pes = world.n_pes();
    let owners = owners(&histogram(world, keys, range)?, pes);

    // The keys by their next PE: how many there are, and where those of each PE begin.
    let mut counts = vec![0_u64; pes];
    keys.iter().for_each(|key| counts[owners[bucket(*key, range)]] += 1);
    let mut ends = exclusive_sums(&counts);
    let mut outgoing = vec![0; keys.len()];
    for key in keys {
        let end = &mut ends[owners[bucket(*key, range)]];
        outgoing[*end as usize] = *key;
        *end += 1;
    }

    // How many keys come from each PE.
    let incoming = all_to_all(world, &counts)?;
    let mut sorted = match variant {
        Variant::OneSided => put_keys(world, &outgoing, &counts, &incoming)?,
        Variant::TwoSided => send_keys(world, &outgoing, &counts, &incoming)?,
    };
    sorted.sort_unstable();
    Ok(sorted)
}

/// Collective: puts the keys for each PE behind each other into its part of an array, in which this PE finds
/// its own ones.
fn put_keys(world: &World, outgoing: &[u32], counts: &[u64], incoming: &[u64]) -> Result<Vec<u32>> {
    // Each PE learns the places of its keys, and how many the PE with most gets.
    let places = all_to_all(world, &exclusive_sums(incoming))?;
    let total = incoming.iter().sum::<u64>();
    let room = collect::collect(world, &[total])?.iter().map(|total| total[0]).max().unwrap_or(0);
    let inbox = world.alloc::<u32>(room as usize)?;
    world.scope(|scope| -> Result<()> {
        let mut rest = outgoing;
        for (pe, count) in counts.iter().enumerate() {
            let (mine, others) = rest.split_at(*count as usize);
            scope.put(&inbox, pe, places[pe] as usize, mine)?;
            rest = others;
        }
        Ok(())
    })?;
    world.barrier();
    let mut own = vec![0; total as usize];
    inbox.local().read(0, &mut own);
    Ok(own)
}

/// Collective: sends each PE its keys in one message, and receives those of this one.
fn send_keys(world: &World, outgoing: &[u32], counts: &[u64], incoming: &[u64]) -> Result<Vec<u32>> {
    let team = world.team();
    let mut own = vec![0; incoming.iter().sum::<u64>() as usize];
    // At its end the scope waits for all that was started in it.
    world.scope(|scope| -> Result<()> {
        let mut room = &mut own[..];
        for (pe, count) in incoming.iter().enumerate() {
            let (theirs, others) = room.split_at_mut(*count as usize);
            scope.receive(&team, pe, 0, theirs)?;
            room = others;
        }
        let mut rest = outgoing;
        for (pe, count) in counts.iter().enumerate() {
            let (mine, others) = rest.split_at(*count as usize);
            scope.send(&team, pe, 0, mine)?;
            rest = others;
        }
        Ok(())
    })?;
    Ok(own)
}

/// Collective: the number of keys of all PEs in each bucket.
fn histogram(world: &World, keys: &[u32], range: u64) -> Result<Vec<u64>> {
    let mut own = vec![0; BUCKETS];
    keys.iter().for_each(|key| own[bucket(*key, range)] += 1);
    let (sizes, source) = (world.alloc::<u64>(BUCKETS)?, world.alloc::<u64>(BUCKETS)?);
    source.local().write(0, &own);
    world.team().all_reduce(ReduceOp::Sum, &sizes, &source)?;
    Ok(sizes.local().to_vec())
}

/// The PE of each bucket: in order, and so that each PE gets about equally many keys.
fn owners(sizes: &[u64], pes: usize) -> Vec<usize> {
    let total = sizes.iter().sum::<u64>().max(1);
    let middle = exclusive_sums(sizes).into_iter().zip(sizes).map(|(before, size)| before + size / 2);
    middle.map(|middle| ((middle * pes as u64 / total) as usize).min(pes - 1)).collect()
}

/// The sums of the numbers before each number.
fn exclusive_sums(numbers: &[u64]) -> Vec<u64> {
    let add = |sum: &mut u64, number: &u64| Some(std::mem::replace(sum, *sum + number));
    numbers.iter().scan(0, add).collect()
}

/// Collective: each PE gives a number to each, and gets one from each.
fn all_to_all(world: &World, numbers: &[u64]) -> Result<Vec<u64>> {
    let (target, source) = (world.alloc::<u64>(numbers.len())?, world.alloc::<u64>(numbers.len())?);
    source.local().write(0, numbers);
    world.team().all_to_all(&target, &source)?;
    Ok(target.local().to_vec())
}

/// Collective: the number of neighbours that are out of order, on and between PEs, plus 1 if keys are lost.
fn wrong(world: &World, keys: &[u32], sorted: &[u32]) -> Result<u64> {
    let sum = |keys: &[u32]| keys.iter().fold(0_u64, |sum, key| sum.wrapping_add(mix(u64::from(*key) + 1)));
    let own = sorted.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
    let (first, last) = (sorted.first().copied(), sorted.last().copied());
    let ends = [u64::from(first.unwrap_or(0)), u64::from(last.unwrap_or(0)), u64::from(first.is_some())];
    let ends = collect::collect(world, &ends)?;
    let ends: Vec<_> = ends.iter().filter(|ends| ends[2] == 1).collect();
    let between = ends.windows(2).filter(|pair| pair[0][1] > pair[1][0]).count() as u64;
    let lost = collect::sum(world, sum(keys).wrapping_sub(sum(sorted)))? != 0;
    Ok(collect::sum(world, own)? + between + u64::from(lost))
}

#[cfg(test)]
mod tests {
    use pelago::Spmd;
    use pelago::sim::SimParams;

    use super::*;
    use crate::choice::Named;

    /// Sorts; returns what all PEs have then, one after the other, and the errors.
    fn sorted(spmd: &Spmd, count: u64, range: u64, variant: Variant) -> (Vec<u32>, u64) {
        let outcomes = spmd.run(|world| {
            let own = Partition::new(count, world.n_pes()).range(world.my_pe());
            let keys: Vec<_> = own.map(|index| key(index, range)).collect();
            let sorted = sort(world, &keys, range, variant).unwrap();
            let wrong = wrong(world, &keys, &sorted).unwrap();
            (sorted, wrong)
        });
        let outcomes = outcomes.unwrap();
        let wrong = outcomes[0].1;
        (outcomes.into_iter().flat_map(|(sorted, _)| sorted).collect(), wrong)
    }

    fn expected(count: u64, range: u64) -> Vec<u32> {
        let mut keys: Vec<_> = (0..count).map(|index| key(index, range)).collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn keys_are_in_order_over_all_pes() {
        for (count, range) in [(1, 1), (3, 1 << 32), (5000, 1), (5000, 10), (5000, 1 << 16), (4999, 1 << 32)]
        {
            for (pes, variant) in
                [1, 2, 3, 4, 6].into_iter().flat_map(|pes| Variant::ALL.iter().map(move |v| (pes, *v)))
            {
                let (found, wrong) = sorted(&Spmd::new(pes), count, range, variant);
                let is_right = found == expected(count, range) && wrong == 0;
                assert!(is_right, "{count} below {range} on {pes} PEs, {variant:?}");
            }
        }
    }

    #[test]
    fn a_network_that_reorders_changes_nothing() {
        for seed in 0..6 {
            for variant in Variant::ALL {
                let (found, wrong) = sorted(&Spmd::new(4).sim(SimParams::chaos(seed)), 200, 50, *variant);
                assert!(found == expected(200, 50) && wrong == 0, "seed {seed}, {variant:?}");
            }
        }
    }

    #[test]
    fn buckets_are_distributed_in_order_and_evenly() {
        assert_eq!(owners(&[1; 8], 4), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(owners(&[0, 9, 0, 0, 3], 3), [0, 1, 2, 2, 2]);
        assert_eq!(owners(&[0, 0], 2), [0, 0]);
        assert_eq!(exclusive_sums(&[3, 0, 4, 1]), [0, 3, 3, 7]);
    }

    #[test]
    fn errors_are_counted() {
        let counts = spmd(2, |world| {
            let me = world.my_pe() as u32;
            let keys = [10 * me, 10 * me + 1];
            let wrong = |sorted: [u32; 2]| wrong(world, &keys, &sorted).unwrap();
            let swapped = [10 - 10 * me, 11 - 10 * me];
            [wrong(keys), wrong([keys[1], keys[0]]), wrong(swapped), wrong([keys[0], keys[0]])]
        });
        // Out of order on both PEs; between them; and a key that is there twice in place of another one.
        assert_eq!(counts.unwrap(), [[0, 2, 1, 1]; 2]);
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_valid_ones() {
        for (args, part) in [
            (["--variant", "twosided"], "the variants are one-sided, two-sided, all"),
            (["--keys", "0"], "1..=1099511627776"),
            (["--keys", "-1"], "--keys"),
            (["--range", "0"], "1..=4294967296"),
        ] {
            let parsed = Args::try_parse_from([NAME].iter().chain(&args));
            let message = parsed.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}
