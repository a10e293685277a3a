//! Semaphores between PEs 0 and 1: round trips of posts and waits, posts one way, and puts that post, beside
//! puts with a signal and puts, a fence and a flag. Invariant: who receives data reads them before it
//! answers; a block of posts one way ends when PE 1 has said that it has taken the last.

use anyhow::Result;
use pelago::prelude::*;
use pelago::upc::{SemaphoreKind, Semaphores};

use super::ensemble::{Part, rest};
use super::record::{Bench, Operation};
use super::signals::{Exchange, Plan};
use super::suite::{Sink, Suite};

/// The kinds that are measured.
const KINDS: [(Operation, SemaphoreKind); 4] = [
    (Operation::PostOneToOne, SemaphoreKind::integer().single_producer().single_consumer()),
    (Operation::PostManyToOne, SemaphoreKind::integer().single_consumer()),
    (Operation::PostManyToMany, SemaphoreKind::integer()),
    (Operation::PostFlag, SemaphoreKind::boolean()),
];

/// Collective, for two PEs or more: round trips of all kinds in one trial, posts one way in another, and the
/// three ways to send data in one for each size.
///
/// # Errors
/// Those of the sink, and if the symmetric heap has no room for the data.
pub(super) fn all(world: &World, plan: &Plan, sink: Sink<'_>) -> Result<()> {
    let sets = KINDS.map(|(operation, kind)| (operation, world.semaphores(1, kind)));
    let bytes_max = plan.bytes.iter().copied().max().unwrap_or(0);
    let exchange = Exchange::new(world, bytes_max)?;
    let full = world.semaphores(1, KINDS[0].1)?;
    let mut suite = Suite::new(world, plan.effort);
    for bench in [Bench::SemaphoreRoundTrip, Bench::SemaphoreRate] {
        let mut trial = Vec::new();
        for (operation, set) in &sets {
            let set = set.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
            // Of a boolean semaphore posts run together: one way it has no rate.
            let part = match bench {
                Bench::SemaphoreRoundTrip => round_trips(world, set),
                _ if set.kind() == SemaphoreKind::boolean() => continue,
                _ => one_way(world, set),
            };
            trial.push((suite.label(bench, *operation, 0), part));
        }
        suite.add(trial);
    }
    for &bytes in &plan.bytes {
        let label = |operation| suite.label(Bench::MemputSignal, operation, bytes);
        let others = [Operation::PutSignal, Operation::PutFlag];
        let others = others.map(|operation| (label(operation), exchange.rounds(operation, bytes)));
        let ours = (label(Operation::MemputSignal), rounds(&exchange, &full, bytes));
        suite.add([ours].into_iter().chain(others));
    }
    suite.run(sink)
}

/// PE 0 posts PE 1's semaphore and waits for its own; PE 1 the other way round.
fn round_trips<'a>(world: &World, set: &'a Semaphores<'_>) -> Part<'a> {
    match world.my_pe() {
        0 => Box::new(move |count| {
            let (there, here) = (set.at(1, 0)?, set.at(0, 0)?);
            (0..count).try_for_each(|_| {
                there.post()?;
                here.wait()
            })
        }),
        1 => Box::new(move |count| {
            let (there, here) = (set.at(0, 0)?, set.at(1, 0)?);
            (0..count).try_for_each(|_| {
                here.wait()?;
                there.post()
            })
        }),
        _ => rest(),
    }
}

/// PE 0 posts again and again, PE 1 takes one after the other and posts once when it has taken all.
fn one_way<'a>(world: &World, set: &'a Semaphores<'_>) -> Part<'a> {
    match world.my_pe() {
        0 => Box::new(move |count| {
            let (there, here) = (set.at(1, 0)?, set.at(0, 0)?);
            (0..count).try_for_each(|_| there.post())?;
            here.wait()
        }),
        1 => Box::new(move |count| {
            let (there, here) = (set.at(0, 0)?, set.at(1, 0)?);
            (0..count).try_for_each(|_| here.wait())?;
            there.post()
        }),
        _ => rest(),
    }
}

/// Rounds of: PE 0 sends and posts, PE 1 receives and sends, PE 0 receives; in the memory of the other ways.
fn rounds<'a>(exchange: &'a Exchange<'_>, full: &'a Semaphores<'_>, bytes: usize) -> Part<'a> {
    let (words, me) = (bytes / size_of::<u64>(), exchange.data.world().my_pe());
    if me > 1 {
        return rest();
    }
    Box::new(move |count| {
        let (there, here) = (full.at(1 - me, 0)?, full.at(me, 0)?);
        let mut private = exchange.private.borrow_mut();
        for _ in 0..count {
            if me == 0 {
                there.memput_signal(&exchange.data, 0, &private[..words], 1)?;
            }
            here.wait()?;
            exchange.data.local().read(0, &mut private[..words]);
            if me == 1 {
                there.memput_signal(&exchange.data, 0, &private[..words], 1)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::ensemble::conduct;
    use crate::measure::record::Unit;
    use crate::measure::suite::tests::{EFFORT, reported};

    #[test]
    fn posts_are_all_taken_and_data_go_there_and_back() {
        let seen = spmd(3, |world| {
            let sets: Vec<_> = KINDS.iter().map(|(_, kind)| world.semaphores(1, *kind).unwrap()).collect();
            let exchange = Exchange::new(world, 512).unwrap();
            if world.my_pe() == 0 {
                exchange.private.borrow_mut().fill(7);
            }
            let mut parts: Vec<_> = sets.iter().map(|set| round_trips(world, set)).collect();
            parts.extend(sets[..3].iter().map(|set| one_way(world, set)));
            parts.push(rounds(&exchange, &sets[0], 512));
            conduct(world, &mut parts, |leader| (0..8).try_for_each(|part| leader.play(part, 10).map(drop)))
                .unwrap();
            drop(parts);
            let is_left = |set: &Semaphores<'_>| set.at(world.my_pe(), 0).unwrap().try_wait().unwrap();
            (sets.iter().any(is_left), exchange.data.local().get(63))
        });
        assert_eq!(seen.unwrap(), [(false, 7), (false, 7), (false, 0)]);
    }

    #[test]
    fn every_kind_and_size_is_reported() {
        let plan = Plan { bytes: vec![8, 4096], effort: EFFORT };
        let (records, progress) = reported(2, |world, sink| all(world, &plan, sink));
        let of = |bench| {
            let found = records.iter().filter(move |record| record.label.bench == bench);
            found.map(|record| (record.label.operation, record.unit)).collect::<Vec<_>>()
        };
        let kinds = KINDS.map(|(operation, _)| operation);
        assert_eq!(of(Bench::SemaphoreRoundTrip), kinds.map(|operation| (operation, Unit::Nanoseconds)));
        let rates = of(Bench::SemaphoreRate);
        assert_eq!(rates, [0, 1, 2].map(|kind| (kinds[kind], Unit::MillionsPerSecond)));
        let ways = [Operation::MemputSignal, Operation::PutSignal, Operation::PutFlag];
        let ways = ways.map(|operation| (operation, Unit::Nanoseconds));
        assert_eq!((of(Bench::MemputSignal), progress), ([ways, ways].concat(), (4, 4)));
    }
}
