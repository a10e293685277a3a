//! `ring`: a token goes around the PEs by one-sided puts; each PE waits for it in its own memory. Invariant:
//! the token counts its hops, so that a PE knows the next value and detects a lost or doubled hop.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use clap::{Parser, value_parser};
use pelago::prelude::*;
use pelago_boot::outln;

/// The permitted numbers of rounds: at least one, and few enough that the hops of any number of PEs can be
/// counted.
const ROUNDS: std::ops::RangeInclusive<u64> = 1..=1_000_000_000;

/// Pass a token round the ring of PEs by one-sided puts, check its value and print the mean time of a hop.
#[derive(Parser)]
#[command(
    name = "ring",
    bin_name = "pelago run -n N ring",
    after_help = "Examples:\n  \
        pelago run -n 2 ring                    ten rounds between two PEs\n  \
        pelago run -n 8 ring --rounds 100000    long enough for a steady figure"
)]
struct Args {
    /// How often the token goes round all PEs.
    #[arg(long, value_name = "R", default_value_t = 10, value_parser = value_parser!(u64).range(ROUNDS))]
    rounds: u64,
}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    crate::entry::start(world, args, |world, args: Args| {
        let elapsed = pass_token(world, args.rounds)?;
        if world.my_pe() == 0 {
            let hops = args.rounds * world.n_pes() as u64;
            let hop_ns = elapsed.as_nanos() as f64 / hops as f64;
            outln!(
                "ring: {} rounds of {} PEs, {hops} hops, {hop_ns:.0} ns a hop",
                args.rounds,
                world.n_pes()
            )?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Collective: sends the token around `rounds` times and returns the time that this PE took.
fn pass_token(world: &World, rounds: u64) -> anyhow::Result<Duration> {
    let (me, pes) = (world.my_pe(), world.n_pes());
    let next = (me + 1) % pes;
    let token = world.alloc_zeroed::<u64>(1)?;
    let start = world.wtime();
    for round in 0..rounds {
        let hops_before = round * pes as u64;
        if me == 0 {
            token.atomic_set(next, 0, hops_before + 1)?;
        }
        let expected = hops_before + if me == 0 { pes } else { me } as u64;
        token.local().wait_until(0, |value| value >= expected);
        let value = token.local().get(0);
        ensure!(
            value == expected,
            "PE {me} got token {value} instead of {expected} in round {round} of the ring"
        );
        if me != 0 {
            token.atomic_set(next, 0, expected + 1)?;
        }
    }
    let elapsed = world.wtime() - start;
    world.barrier();
    Ok(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_goes_round() {
        for pes in [1, 2, 3, 5] {
            let times = spmd(pes, |world| pass_token(world, 20).map_err(|error| error.to_string())).unwrap();
            assert!(times.into_iter().all(|time| time.is_ok()), "a PE of {pes} met a wrong token");
        }
    }
}
