//! `bench semaphore`: the time of a post and its wait between PEs 0 and 1, by the kind of the semaphore; and
//! a put that posts, compared with a put with a signal and with a put, a fence and a flag. Invariants:
//! results in one row or table were measured alternately; the receiver reads the data before it replies; a
//! block of posts in one direction ends when PE 1 has reported that it has consumed the last one.

use pelago::upc::{SemaphoreKind, Semaphores};

use super::signals::{Exchange, one_way_curve};
use crate::base::prelude::*;

pub const TOPIC: Topic = Topic {
    title: "Semaphores",
    jobs: |pes| vec![Job { pes, suite: "semaphores" }],
    tables: |records| vec![kinds(records), puts(records)],
    figures: |records| vec![curve(records)],
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench semaphore                 posts and waits, and puts that post, of 8 B to 64 KiB
  pelago bench semaphore --html s.html   the curves as well
  pelago bench semaphore --json          one JSON object a measurement";

/// The kinds that are measured, with their names.
const KINDS: [(Operation, &str, SemaphoreKind); 4] = [
    (
        Operation::PostOneToOne,
        "integer, 1 producer, 1 consumer",
        SemaphoreKind::integer().single_producer().single_consumer(),
    ),
    (
        Operation::PostManyToOne,
        "integer, many producers, 1 consumer",
        SemaphoreKind::integer().single_consumer(),
    ),
    (Operation::PostManyToMany, "integer, many of both", SemaphoreKind::integer()),
    (Operation::PostFlag, "boolean, many of both", SemaphoreKind::boolean()),
];

fn kinds(records: &[Record]) -> Table {
    let mut table = Table::new(
        "PEs 0 and 1 post and wait in turn (a round trip has two of each), and one posts, the other waits",
        1,
        "semaphore|round trip, ns: min|median|max|one way, M/s: min|median|max",
    );
    for (operation, name, _) in KINDS {
        let Some(trip) = of(records, Bench::SemaphoreRoundTrip, operation).next() else { continue };
        let rate = of(records, Bench::SemaphoreRate, operation).next();
        table.row((name, trip.summary, rate.map(|rate| rate.summary)));
    }
    table
}

fn puts(records: &[Record]) -> Table {
    let mut table = Table::new(
        "PEs 0 and 1 send each other data in turn and read what has come; one way, ns",
        1,
        "data|memput_signal: min|median|max|put_signal: median|put, fence, flag: median|\
         memput_signal / put_signal|/ flag",
    );
    let mut ours: Vec<_> = of(records, Bench::MemputSignal, Operation::MemputSignal).collect();
    ours.sort_by_key(|record| record.label.bytes);
    for record in ours {
        let others = [Operation::PutSignal, Operation::PutFlag].map(|operation| {
            let label = Label { operation, ..record.label };
            find(records, |found| *found == label)
        });
        let ratios = others.map(|other| ratio(Some(record), other));
        table.row((size(record.label.bytes), record.summary, others, ratios));
    }
    table
}

fn curve(records: &[Record]) -> Figure {
    let ways = [
        (Operation::PutFlag, "put, fence, flag", ORANGE, Line::Dashed),
        (Operation::PutSignal, "put_signal", GREEN, Line::Solid),
        (Operation::MemputSignal, "memput_signal", BLUE, Line::Solid),
    ];
    let title = "One-way time of data and what says that they have come";
    one_way_curve(records, Bench::MemputSignal, title, &ways)
}

/// Collective, for two PEs or more: measures round trips of all kinds in one trial, posts in one direction in
/// another, and the three ways to send data in one trial for each size.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for the data.
pub fn all(world: &World, bytes: &[usize], effort: Effort, sink: Sink<'_>) -> Result<()> {
    let sets = KINDS.map(|(operation, _, kind)| (operation, world.semaphores(1, kind)));
    let exchange = Exchange::new(world, largest(bytes))?;
    let full = world.semaphores(1, KINDS[0].2)?;
    let mut suite = Suite::new(world, effort);
    for bench in [Bench::SemaphoreRoundTrip, Bench::SemaphoreRate] {
        let mut trial = Vec::new();
        for (operation, set) in &sets {
            let set = set.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
            // Posts of a boolean semaphore merge, so it has no rate in one direction.
            let part = match bench {
                Bench::SemaphoreRoundTrip => round_trips(world, set),
                _ if set.kind() == SemaphoreKind::boolean() => continue,
                _ => one_way(world, set),
            };
            trial.push((suite.label(bench, *operation, 0), part));
        }
        suite.add(trial);
    }
    for &bytes in bytes {
        let label = |operation| suite.label(Bench::MemputSignal, operation, bytes);
        let others = [Operation::PutSignal, Operation::PutFlag];
        let others = others.map(|operation| (label(operation), exchange.rounds(operation, bytes)));
        let ours = (label(Operation::MemputSignal), rounds(&exchange, &full, bytes));
        suite.add([ours].into_iter().chain(others));
    }
    suite.run(sink)
}

/// PE 0 posts PE 1's semaphore and waits for its own; PE 1 does the reverse.
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

/// PE 0 posts repeatedly; PE 1 waits for one post after the other, and posts once at the end.
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

/// Round trips: PE 0 sends and posts, PE 1 receives and sends, PE 0 receives; in the same memory as the other
/// ways.
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
    use crate::base::ensemble::conduct;
    use crate::base::record::tests::record;
    use crate::base::suite::tests::{EFFORT, reported};
    use crate::base::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn kinds_and_ways_are_shown() {
        let mut records = Vec::new();
        let mut add = |bench, operation, bytes, unit, median| {
            records.push(record(Label::new(2, bench, operation, bytes), unit, median));
        };
        for (operation, ..) in KINDS {
            add(Bench::SemaphoreRoundTrip, operation, 0, Unit::Nanoseconds, 200.0);
        }
        add(Bench::SemaphoreRate, Operation::PostManyToOne, 0, Unit::MillionsPerSecond, 20.0);
        let ways =
            [(Operation::MemputSignal, 50.0), (Operation::PutSignal, 40.0), (Operation::PutFlag, 100.0)];
        for (operation, ns) in ways {
            add(Bench::MemputSignal, operation, 8, Unit::Nanoseconds, ns);
            add(Bench::MemputSignal, operation, 65_536, Unit::Nanoseconds, 100.0 * ns);
        }
        let (tables, page) = shown(&TOPIC, &records, 1);
        let many_to_one =
            ["integer, many producers, 1 consumer", "100", "200", "2000", "10.0", "20.0", "200"];
        assert_row(&tables, &many_to_one);
        assert_row(&tables, &["boolean, many of both", "100", "200", "2000"]);
        assert_row(&tables, &["8 B", "25.0", "50.0", "500", "40.0", "100", "1.250", "0.500"]);
        assert!(page.contains("memput_signal, 8 B: 50.0 (from 25.0 to 500)"));
        assert_nothing_shown(&TOPIC);
    }

    #[test]
    fn posts_are_all_taken_and_data_go_there_and_back() {
        let seen = spmd(3, |world| {
            let sets: Vec<_> = KINDS.iter().map(|(.., kind)| world.semaphores(1, *kind).unwrap()).collect();
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
        let (records, progress) = reported(2, |world, sink| all(world, &[8, 4096], EFFORT, sink));
        let of = |bench| {
            let found = records.iter().filter(move |record| record.label.bench == bench);
            found.map(|record| (record.label.operation, record.unit)).collect::<Vec<_>>()
        };
        let kinds = KINDS.map(|(operation, ..)| operation);
        assert_eq!(of(Bench::SemaphoreRoundTrip), kinds.map(|operation| (operation, Unit::Nanoseconds)));
        let rates = of(Bench::SemaphoreRate);
        assert_eq!(rates, [0, 1, 2].map(|kind| (kinds[kind], Unit::MillionsPerSecond)));
        let ways = [Operation::MemputSignal, Operation::PutSignal, Operation::PutFlag];
        let ways = ways.map(|operation| (operation, Unit::Nanoseconds));
        assert_eq!((of(Bench::MemputSignal), progress), ([ways, ways].concat(), (4, 4)));
    }
}
