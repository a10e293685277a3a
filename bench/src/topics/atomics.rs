//! `bench atomics`: the latency of dependent atomics of PE 0 alone, and the rate of independent ones; and
//! with `contention.rs`, atomics of several PEs at once. Invariant: no other PE accesses the word of PE 0's
//! measurements, so it stays in PE 0's cache, independent of the PE whose memory it is in.

use std::hint::black_box;

use pelago::{AtomicInteger, View};

use super::contention::{self, Contest};
use crate::base::prelude::*;

pub const TOPIC: Topic = Topic {
    title: "Atomic operations",
    jobs,
    tables: |records| vec![alone(records), contention::table(records)],
    figures: |records| vec![contention::latency_curve(records), contention::rate_curve(records)],
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench atomics                   two PEs, or as many as there are cores
  pelago bench atomics -n 16             up to 16 PEs that add to one word
  pelago bench atomics --html a.html     the curve of latency against PEs as well";

/// The operations that are measured, with their names.
const OPERATIONS: [(Operation, &str); 6] = [
    (Operation::FetchAdd, "fetch_add"),
    (Operation::Add, "add"),
    (Operation::FetchInc, "fetch_inc"),
    (Operation::CompareSwap, "compare_swap"),
    (Operation::Swap, "swap"),
    (Operation::AtomicFetch, "atomic_fetch"),
];

/// One and two PEs are measured in the job of two; then the powers of two, and `most`.
fn jobs(most: usize) -> Vec<Job> {
    let suite = |pes| Job { pes, suite: if pes == 2 { "atomics" } else { "contention" } };
    doublings(2, most).map(suite).collect()
}

fn alone(records: &[Record]) -> Table {
    let mut table = Table::new(
        "Atomics of PE 0 alone: latency, each after the last (add: with quiet), and rate (cache of PE 0)",
        2,
        "operation|type|own, ns: min|median|max|PE 1's, ns: min|median|max|own, M/s|PE 1's, M/s",
    );
    for (operation, name) in OPERATIONS {
        for (bytes, type_name) in [(4, "u32"), (8, "u64")] {
            let found = |bench, place| {
                find(records, |label| {
                    (label.bench, label.operation, label.bytes, label.place)
                        == (bench, operation, bytes, Some(place))
                })
            };
            let latencies = [Place::Own, Place::Other].map(|place| found(Bench::AtomicLatency, place));
            let rates = [Place::Own, Place::Other].map(|place| found(Bench::AtomicRate, place));
            if let [Some(own), Some(other)] = latencies {
                table.row((name, type_name, own.summary, other.summary, rates));
            }
        }
    }
    table
}

/// Collective, for two PEs: measures each operation on words of 4 and 8 bytes, in PE 0's own memory and in PE
/// 1's; then one and two PEs that add to words.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for a few words.
pub fn all(world: &World, effort: Effort, sink: Sink<'_>) -> Result<()> {
    let (words32, words64) = (world.alloc_zeroed::<u32>(1)?, world.alloc_zeroed::<u64>(1)?);
    let contests = [Contest::pair(world, 1)?, Contest::pair(world, 2)?];
    let mut suite = Suite::new(world, effort);
    for (operation, _) in OPERATIONS {
        add_alone(&mut suite, &words32, operation);
        add_alone(&mut suite, &words64, operation);
    }
    for contest in &contests {
        contest.add_to(&mut suite, effort);
    }
    suite.run(sink)
}

/// Adds one trial of latency and rate, in both places.
fn add_alone<'a, T: Word>(suite: &mut Suite<'a>, words: &'a Symmetric<'_, T>, operation: Operation) {
    let places = [(Place::Own, 0), (Place::Other, 1)];
    let label = |bench, place| suite.label(bench, operation, size_of::<T>()).in_place(place);
    let latencies = places
        .map(|(place, pe)| (label(Bench::AtomicLatency, place), by_operation(words, pe, operation, true)));
    let rates = places
        .map(|(place, pe)| (label(Bench::AtomicRate, place), by_operation(words, pe, operation, false)));
    suite.add(latencies.into_iter().chain(rates));
}

/// A type whose atomics are measured.
trait Word: AtomicInteger + From<u32> + Into<u64> {}

impl<T: AtomicInteger + From<u32> + Into<u64>> Word for T {}

/// Repeats this operation on PE `pe`'s word; with `waits` each operation needs the result of the one before.
fn by_operation<'a, T: Word>(words: &'a View<'_, T>, pe: Pe, operation: Operation, waits: bool) -> Part<'a> {
    let one = T::from(1);
    match operation {
        Operation::Add => only_first(words.world(), move |count| {
            (0..count).try_for_each(|_| {
                words.add(pe, 0, black_box(one))?;
                if waits {
                    words.world().quiet();
                }
                Ok(())
            })
        }),
        Operation::FetchAdd => {
            repeat(words.world(), waits, move |at, _| words.fetch_add(pe, at, black_box(one)))
        }
        Operation::FetchInc => repeat(words.world(), waits, move |at, _| words.fetch_inc(pe, at)),
        Operation::Swap => repeat(words.world(), waits, move |at, turn| words.swap(pe, at, turn)),
        Operation::CompareSwap => {
            // Each swap expects the value that the previous one has written, or that made it fail.
            let mut expected = T::from(0);
            repeat(words.world(), waits, move |at, turn| {
                let old = words.compare_swap(pe, at, expected, turn)?;
                expected = turn;
                Ok(old)
            })
        }
        Operation::AtomicFetch => repeat(words.world(), waits, move |at, _| words.atomic_fetch(pe, at)),
        other => unreachable!("{other:?} is no atomic"),
    }
}

/// Repeats an operation that returns a value; its arguments are an index, which is always 0, and its number.
/// With `waits` the index depends on the previous result, in a way that the compiler cannot remove.
fn repeat<'a, T: Word>(
    world: &World,
    waits: bool,
    mut operation: impl FnMut(usize, T) -> pelago::Result<T> + 'a,
) -> Part<'a> {
    only_first(world, move |count| {
        let mask = black_box(0);
        let mut index = 0;
        (0..count).try_for_each(|turn| {
            let old = operation(index, T::from(black_box(turn as u32)))?;
            index = if waits { old.into() as usize & mask } else { mask };
            black_box(old);
            Ok(())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ensemble::conduct;
    use crate::base::record::tests::record;
    use crate::base::suite::tests::{EFFORT, count, reported};
    use crate::base::topic::tests::{assert_nothing_shown, assert_row, shown};

    fn records() -> Vec<Record> {
        let mut records = Vec::new();
        for (place, factor) in [(Place::Own, 1.0), (Place::Other, 2.0)] {
            for (operation, bytes, ns) in [(Operation::FetchAdd, 8, 5.0), (Operation::Add, 4, 6.0)] {
                let label = |bench| Label::new(2, bench, operation, bytes).in_place(place);
                records.push(record(label(Bench::AtomicLatency), Unit::Nanoseconds, ns * factor));
                records.push(record(label(Bench::AtomicRate), Unit::MillionsPerSecond, 1e3 / ns / factor));
            }
            for (contenders, ns) in [(1, 5.0), (2, 60.0), (4, 120.0)] {
                let place = if place == Place::Own { Place::WordEach } else { Place::OneWord };
                let label = Label::new(contenders.max(2), Bench::Contention, Operation::FetchAdd, 8);
                let label = label.with_contenders(contenders).in_place(place);
                records.push(record(label, Unit::Nanoseconds, ns * factor));
                let rate = contenders as f64 * 1e3 / ns / factor;
                records.push(record(label, Unit::MillionsPerSecond, rate));
            }
        }
        records
    }

    #[test]
    fn jobs_double_up_to_the_most() {
        let jobs = |most| jobs(most).iter().map(|job| job.pes).collect::<Vec<_>>();
        assert_eq!([jobs(2), jobs(3), jobs(4)], [vec![2], vec![2, 3], vec![2, 4]]);
        assert_eq!([jobs(12), jobs(16)], [vec![2, 4, 8, 12], vec![2, 4, 8, 16]]);
        let suites: Vec<_> = self::jobs(4).iter().map(|job| job.suite).collect();
        assert_eq!(suites, ["atomics", "contention"]);
    }

    #[test]
    fn alone_and_contended_atomics_are_shown() {
        let (tables, page) = shown(&TOPIC, &records(), 2);
        assert_row(
            &tables,
            &["fetch_add", "u64", "2.50", "5.00", "50.0", "5.00", "10.0", "100", "200", "100"],
        );
        assert_row(&tables, &["add", "u32", "3.00", "6.00", "60.0", "6.00", "12.0", "120", "167", "83.3"]);
        assert_row(&tables, &["4", "120", "240", "2400", "120", "2.000", "16.7", "33.3"]);
        assert!(page.contains("one word, 4 PEs: 240 (from 120 to 2400)"));
    }

    #[test]
    fn without_records_nothing_is_shown() {
        assert_nothing_shown(&TOPIC);
    }

    /// The value of PE `pe`'s word after 10 operations, starting from 0.
    fn after_ten<T: Word + PartialEq + std::fmt::Debug>(pe: Pe, operation: Operation, waits: bool) -> T {
        let words = spmd(2, |world| {
            let words = world.alloc_zeroed::<T>(1).unwrap();
            let mut parts = [by_operation(&words, pe, operation, waits)];
            conduct(world, &mut parts, |leader| leader.play(0, 10)).unwrap();
            let word = words.g(pe, 0).unwrap();
            world.barrier();
            word
        });
        let [first, second] = words.unwrap().try_into().unwrap_or_else(|_| panic!("two PEs answer"));
        assert_eq!(first, second);
        first
    }

    #[test]
    fn the_operations_do_what_they_are_called() {
        for (operation, expected) in [
            (Operation::FetchAdd, 10),
            (Operation::Add, 10),
            (Operation::FetchInc, 10),
            (Operation::CompareSwap, 9),
            (Operation::Swap, 9),
            (Operation::AtomicFetch, 0),
        ] {
            for waits in [false, true] {
                assert_eq!(after_ten::<u32>(0, operation, waits), expected, "{operation:?} {waits}");
                assert_eq!(
                    after_ten::<u64>(1, operation, waits),
                    u64::from(expected),
                    "{operation:?} {waits}"
                );
            }
        }
    }

    #[test]
    fn every_operation_type_and_place_is_reported() {
        let (records, progress) = reported(2, |world, sink| all(world, EFFORT, sink));
        for (operation, _) in OPERATIONS {
            for (bytes, place) in [(4, Place::Own), (4, Place::Other), (8, Place::Own), (8, Place::Other)] {
                for bench in [Bench::AtomicLatency, Bench::AtomicRate] {
                    let found = count(&records, |label| {
                        (label.bench, label.operation, label.bytes, label.place)
                            == (bench, operation, bytes, Some(place))
                    });
                    assert_eq!(found, 1, "{bench:?} {operation:?} {bytes} {place:?}");
                }
            }
        }
        let rates = records.iter().filter(|record| record.unit == Unit::MillionsPerSecond);
        assert_eq!(rates.count(), 6 * 4 + 4, "of atomics alone, and of one and two PEs");
        assert_eq!(progress, (6 * 2 + 2, 6 * 2 + 2));
    }
}
