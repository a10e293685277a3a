//! Histogram: each PE has a list of random indices, and each index increments a word of a table over all PEs.
//! Invariant: a run is reported as verified only if each count equals the count of a serial computation on
//! one PE. Source: bale, the application histo.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use pelago::am::Handlers;
use pelago::prelude::*;
use pelago::{AtomicOp, Local, Result};

use super::drive;
use super::problem::{Place, Problem, Size};
use super::way::{WINDOW, Way};
use crate::collect;
use crate::entry;
use crate::rate::timed;

const NAME: &str = "histogram";

/// Histogram: count random indices in a table over all PEs, by atomics one after the other, by atomics of a
/// scope, and by aggregated active messages.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "pelago run -n N histogram",
    after_help = "\
        The exit status is 0 only if all counts are right, each way.\n\n\
        Examples:\n  \
        pelago run -n 2 histogram                        the table of bale, a million indices a PE\n  \
        pelago run -n 4 histogram --table 10000000       a table that leaves the caches\n  \
        pelago run -n 2 histogram --indices 1000 --json  one JSON object, for programs"
)]
struct Args {
    #[command(flatten)]
    size: Size,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    entry::start(world, args, |world, args: Args| {
        let problem = Problem { size: args.size, pes: world.n_pes() };
        drive(world, (NAME, problem, args.json), |places, progress| {
            let counts = world.alloc_zeroed::<u64>(args.size.table as usize)?;
            let right = right_counts(world.my_pe(), &problem);
            Way::ALL.iter().try_fold(Vec::new(), |mut outcomes, &way| {
                let time = count(world, &counts, (way, places), progress)?;
                outcomes.push((way, time, wrong_counts(world, &counts, &right)?));
                Ok(outcomes)
            })
        })
    })
}

/// Collective: counts all indices in one way. Returns the time that it took.
fn count(
    world: &World,
    counts: &Symmetric<'_, u64>,
    (way, places): (Way, &[Place]),
    progress: &mut dyn FnMut(Way, u64),
) -> Result<Duration> {
    let windows = || places.chunks(WINDOW).zip((0..).step_by(WINDOW));
    match way {
        Way::OneSided => timed(world, || {
            for (window, done) in windows() {
                window.iter().try_for_each(|place| counts.inc(place.pe as Pe, place.index as usize))?;
                progress(way, done);
            }
            Ok(())
        }),
        Way::Scope => timed(world, || {
            let mut olds = [0; WINDOW];
            for (window, done) in windows() {
                let mut each = window.iter().zip(&mut olds);
                world.scope(|scope| {
                    each.try_for_each(|(place, old)| {
                        scope.fetch_amo(counts, place.pe as Pe, place.index as usize, AtomicOp::Add, 1, old)
                    })
                })?;
                progress(way, done);
            }
            Ok(())
        }),
        Way::Messages => by_messages(world, counts, places, &mut |done| progress(way, done)),
    }
}

/// This function and the handler change the counts of a PE's own part by a load and a store. Neither
/// interrupts the other between load and store: both run on the owner's only thread, which processes its list
/// and, within calls that send, executes messages; no progress thread is started. Each access is atomic, so
/// with a progress thread counts could be lost, which the verification would detect, but there would be no
/// other error.
fn by_messages(
    world: &World,
    counts: &Symmetric<'_, u64>,
    places: &[Place],
    progress: &mut dyn FnMut(u64),
) -> Result<Duration> {
    let (me, own) = (world.my_pe(), counts.local());
    let mut handlers = Handlers::new();
    let batch = handlers.add_batch("histogram: count", |_, indices: &[u32]| {
        indices.iter().for_each(|&index| increment(&own, index));
    });
    world.team().serve(handlers, |am| {
        let mut others = am.aggregator(batch);
        timed(world, || {
            for (window, done) in places.chunks(WINDOW).zip((0..).step_by(WINDOW)) {
                for &Place { pe, index } in window {
                    match pe as Pe == me {
                        true => increment(&own, index),
                        false => others.push(pe as Pe, index)?,
                    }
                }
                progress(done);
            }
            others.flush()?;
            am.barrier()
        })
    })?
}

#[inline(always)]
fn increment(part: &Local<'_, u64>, index: u32) {
    part.set(index as usize, part.get(index as usize).wrapping_add(1));
}

/// The correct counts of a PE's part, from the lists of all PEs.
fn right_counts(pe: Pe, problem: &Problem) -> Vec<u64> {
    let mut counts = vec![0; problem.size.table as usize];
    for place in (0..problem.pes).flat_map(|of| problem.places(of)).filter(|place| place.pe as Pe == pe) {
        counts[place.index as usize] += 1;
    }
    counts
}

/// Collective: the number of wrong counts on all PEs. Sets all counts to 0.
fn wrong_counts(world: &World, counts: &Symmetric<'_, u64>, right: &[u64]) -> Result<u64> {
    let part = counts.local();
    let wrong = right.iter().enumerate().filter(|&(index, &right)| part.get(index) != right).count();
    (0..part.len()).for_each(|index| part.set(index, 0));
    collect::sum(world, wrong as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_count_alike_on_any_number_of_pes() {
        for (pes, table, indices) in [(1, 10, 5000), (2, 1, 3000), (3, 100, 5000), (8, 7, 1500)] {
            let problem = Problem { size: Size { table, indices }, pes };
            let wrong = spmd(pes, |world| {
                let counts = world.alloc_zeroed::<u64>(table as usize).unwrap();
                let (right, places) = (right_counts(world.my_pe(), &problem), problem.places(world.my_pe()));
                Way::ALL.map(|way| {
                    count(world, &counts, (way, &places), &mut |_, _| ()).unwrap();
                    wrong_counts(world, &counts, &right).unwrap()
                })
            });
            assert_eq!(wrong.unwrap(), vec![[0; 3]; pes], "{problem}");
        }
    }

    #[test]
    fn a_wrong_count_is_found_and_cleared() {
        let wrong = spmd(2, |world| {
            let counts = world.alloc_zeroed::<u64>(4).unwrap();
            counts.local().set(world.my_pe(), 1);
            let first = wrong_counts(world, &counts, &[0, 0, 0, 9]).unwrap();
            (first, wrong_counts(world, &counts, &[0; 4]).unwrap())
        });
        assert_eq!(wrong.unwrap(), [(4, 0); 2]);
    }
}
