//! Atomics of PE 0 alone: their latency, each after the one before, and their rate. Invariant: nobody else
//! touches the word, so it stays in PE 0's cache, whoever's memory it is in.

use std::hint::black_box;

use anyhow::Result;
use pelago::prelude::*;
use pelago::{AtomicInteger, View};

use super::contention::Contest;
use super::effort::Effort;
use super::ensemble::{Part, only_first};
use super::record::{Bench, Operation, Place};
use super::suite::{Sink, Suite};

/// The operations that are measured.
const OPERATIONS: [Operation; 6] = [
    Operation::FetchAdd,
    Operation::Add,
    Operation::FetchInc,
    Operation::CompareSwap,
    Operation::Swap,
    Operation::AtomicFetch,
];

/// Collective, for two PEs: each operation on words of 4 and 8 bytes, in the own memory and another PE's;
/// then one and two PEs that add to words.
///
/// # Errors
/// Those of the sink, and if the symmetric heap has no room for a few words.
pub(super) fn all(world: &World, effort: Effort, sink: Sink<'_>) -> Result<()> {
    let (words32, words64) = (world.alloc_zeroed::<u32>(1)?, world.alloc_zeroed::<u64>(1)?);
    let contests = [Contest::pair(world, 1)?, Contest::pair(world, 2)?];
    let mut suite = Suite::new(world, effort);
    for operation in OPERATIONS {
        add_alone(&mut suite, &words32, operation);
        add_alone(&mut suite, &words64, operation);
    }
    for contest in &contests {
        contest.add_to(&mut suite, effort);
    }
    suite.run(sink)
}

/// Latency and rate, in both places, in one trial.
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
trait Word: AtomicInteger + From<u32> {
    /// The value as an index, if it is one.
    fn index(self) -> usize;
}

impl Word for u32 {
    fn index(self) -> usize {
        self as usize
    }
}

impl Word for u64 {
    fn index(self) -> usize {
        self as usize
    }
}

/// This operation on PE `pe`'s word, again and again; with `waits` each needs the answer of the one before.
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
            // Each swap expects what the one before has written, or what it was refused for.
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

/// An operation that answers, given an index, which is always 0, and the number of its turn. With `waits` the
/// index is made of the answer before, which the compiler cannot know to make no difference.
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
            index = if waits { old.index() & mask } else { mask };
            black_box(old);
            Ok(())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::ensemble::conduct;
    use crate::measure::record::Unit;
    use crate::measure::suite::tests::{EFFORT, count, reported};

    /// What PE `pe`'s word holds after 10 of the operation, from 0 on.
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
        for operation in OPERATIONS {
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
