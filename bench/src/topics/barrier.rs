//! The barrier: alone, compared with a one-way transfer between two PEs, and compared with a yardstick that
//! only yields. Invariants: the counter of the yardstick contains the number of arrivals of all rounds, and
//! the last PE of a round publishes its number; the flag of ping-ack counts the rounds, so that no message is
//! mistaken for the next. Ping-ack is after the benchmark of WaitDescriptor, Bonachea, Nishtala and Yelick
//! (2006), with the difference that the target also reads the bytes, because otherwise they would not leave
//! the sender's cache.

use std::cell::{Cell, RefCell};
use std::thread;
use std::time::{Duration, Instant};

use pelago::sync::{AtomicU64, Ordering};

use crate::base::gate::{Bound::TimeAtMost, Gate, Source::Perf};
use crate::base::prelude::*;

#[rustfmt::skip]
pub static GATES: &[Gate] = &[
    Gate { name: "barrier-2", what: "barrier of 2 PEs to a one-way transfer, time",
           bound: TimeAtMost(2.5), source: Perf(2, &["barrier-one-way"]) },
    Gate { name: "barrier-oversubscribed", what: "barrier of 16 PEs to one that only yields, time",
           bound: TimeAtMost(2.0), source: Perf(16, &["barrier-yield"]) },
];

/// The time limit of one barrier of the yardstick.
const LIMIT: Duration = Duration::from_secs(60);
/// The number of yields between two readings of the clock.
const YIELDS_PER_LOOK: u32 = 1 << 16;

/// The barrier compared with a one-way transfer, by the number of PEs.
pub fn table(records: &[Record]) -> Table {
    let title = "Barrier, beside a one-way transfer (half a round trip of a flag between PEs 0 and 1); ns";
    let names = "PEs|barrier: min|median|max|one-way: median|barrier / one-way";
    let mut table = Table::new(title, 0, names);
    for record in of(records, Bench::Barrier, Operation::Barrier) {
        if let Some(one_way) = half(records, record.label.pes, 0) {
            let ratio = record.summary.median / one_way.summary.median;
            table.row((record.label.pes, record.summary, Some(one_way), ratio));
        }
    }
    table
}

/// The record of half a round trip with this number of PEs and bytes.
fn half(records: &[Record], pes: usize, bytes: usize) -> Option<&Record> {
    let mut halves = of(records, Bench::PingAck, Operation::OneWay);
    halves.find(|half| (half.label.pes, half.label.bytes) == (pes, bytes))
}

/// Ping-ack of two PEs, by size.
pub fn ping_table(records: &[Record]) -> Table {
    let title = "Ping-ack between PEs 0 and 1: put and flag there, read, flag back; ns";
    let names = "put|round trip: min|median|max|half of it: min|median|max";
    let mut table = Table::new(title, 1, names);
    let of_two = of(records, Bench::PingAck, Operation::RoundTrip).filter(|record| record.label.pes == 2);
    let mut sorted: Vec<_> = of_two.collect();
    sorted.sort_by_key(|record| record.label.bytes);
    for record in sorted {
        if let Some(half) = half(records, record.label.pes, record.label.bytes) {
            table.row((size(record.label.bytes), record.summary, half.summary));
        }
    }
    table
}

pub fn ping_curve(records: &[Record]) -> Figure {
    let line = |name, colour, operation| {
        let records = of(records, Bench::PingAck, operation).filter(|record| record.label.bytes > 0);
        Across::Bytes.series(name, colour, Line::Solid, records)
    };
    Figure::new(
        "Latency of put, flag and acknowledgement between two PEs",
        [Across::Bytes.axis("size of the put"), TIME_FROM_ZERO],
        "PE 1 reads what came before it acknowledges. Medians.",
        [line("round trip", BLUE, Operation::RoundTrip), line("half of it", ORANGE, Operation::OneWay)],
    )
}

pub fn curve(records: &[Record]) -> Figure {
    let barriers = of(records, Bench::Barrier, Operation::Barrier);
    let flags = of(records, Bench::PingAck, Operation::OneWay).filter(|record| record.label.bytes == 0);
    Figure::new(
        "Barrier",
        [Across::Pes.axis("PEs"), TIME],
        "One-way: half a round trip of a flag between PEs 0 and 1. Medians.",
        [
            Across::Pes.series("barrier", BLUE, Line::Solid, barriers),
            Across::Pes.series("one-way transfer", ORANGE, Line::Dashed, flags),
        ],
    )
}

/// Collective, for two PEs or more: measures the barrier, and the flag between two PEs.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for a few words.
pub fn all(world: &World, effort: Effort, sink: Sink<'_>) -> Result<()> {
    let ping = PingAck::new(world, 0)?;
    let mut suite = Suite::new(world, effort);
    add_meetings(&mut suite, world, &ping, &[]);
    suite.run(sink)
}

/// Adds one trial of the barrier, the flag alone and messages of these sizes. It is one trial because the
/// distance of two PEs can change at any time if a hypervisor moves virtual processors.
pub fn add_meetings<'a>(
    suite: &mut Suite<'a>,
    world: &'a World,
    ping: &'a PingAck<'_>,
    ping_bytes: &[usize],
) {
    let mut trial = vec![(suite.label(Bench::Barrier, Operation::Barrier, 0), barriers(world))];
    for bytes in [0].into_iter().chain(ping_bytes.iter().copied()) {
        trial.push((suite.label(Bench::PingAck, Operation::RoundTrip, bytes), ping.rounds(bytes)));
    }
    suite.add(trial);
}

/// Collective: measures `count` pairs of the barrier and a one-way transfer, which is half a round trip of a
/// flag of 8 bytes between PEs 0 and 1.
///
/// # Errors
/// If the symmetric heap has no room for a few words.
pub fn one_way_pairs(world: &World, count: usize, effort: Effort) -> Result<Vec<Pair>> {
    let ping = PingAck::new(world, 0)?;
    pairs(world, [barriers(world), ping.rounds(0)], 0.5, count, effort)
}

/// The same for the barrier and one in which every PE only yields its core until all have arrived.
///
/// # Errors
/// If the symmetric heap has no room for a few words.
pub fn yield_pairs(world: &World, count: usize, effort: Effort) -> Result<Vec<Pair>> {
    let yielding = YieldBarrier::new(world)?;
    pairs(world, [barriers(world), yielding.barriers()], 1.0, count, effort)
}

/// The barrier of the world.
fn barriers<'a>(world: &'a World) -> Part<'a> {
    Box::new(move |count| {
        (0..count).for_each(|_| world.barrier());
        Ok(())
    })
}

/// A central counter, at which all but the last to arrive yield their core until the round is over.
struct YieldBarrier<'w> {
    words: Symmetric<'w, u64>,
    round: Cell<u64>,
}

impl<'w> YieldBarrier<'w> {
    /// Collective.
    fn new(world: &'w World) -> pelago::Result<Self> {
        Ok(YieldBarrier { words: world.alloc_zeroed(Self::WORDS)?, round: Cell::new(0) })
    }

    /// The two words are on separate cache lines.
    const WORDS: usize = 16;

    /// Repeats this barrier.
    fn barriers<'a>(&'a self) -> Part<'a> {
        Box::new(move |count| {
            (0..count).for_each(|_| self.meet());
            Ok(())
        })
    }

    fn meet(&self) {
        let n_pes = self.words.world().n_pes() as u64;
        let (arrivals, over) = (self.word(0), self.word(Self::WORDS / 2));
        let round = self.round.get() + 1;
        self.round.set(round);
        // SYNC POINT yield-barrier: releases the writes of this PE, and acquires those of the PEs that
        // arrived before.
        if arrivals.fetch_add(1, Ordering::AcqRel) + 1 == n_pes * round {
            // SYNC POINT yield-barrier: releases the writes of all PEs.
            over.store(round, Ordering::Release);
            return;
        }
        let mut yields = 0u32;
        let mut start = None;
        // SYNC POINT yield-barrier: acquires the writes of all PEs.
        while over.load(Ordering::Acquire) < round {
            thread::yield_now();
            yields = yields.wrapping_add(1);
            if yields.is_multiple_of(YIELDS_PER_LOOK) {
                let since = start.get_or_insert_with(Instant::now);
                let me = self.words.world().my_pe();
                assert!(since.elapsed() < LIMIT, "PE {me} has waited {LIMIT:?} in yield barrier {round}");
            }
        }
    }

    /// A word of PE 0's part.
    fn word(&self, index: usize) -> &AtomicU64 {
        let start = self.words.ptr(0).expect("the PEs of a node map each other");
        assert!(index < self.words.len(), "the barrier's words are allocated");
        // SAFETY: the word lies in the array, which lives as long as `self`; all PEs access it only as an
        // atomic.
        unsafe { AtomicU64::from_ptr(start.add(index)) }
    }
}

/// The memory that the two PEs write to each other.
pub struct PingAck<'w> {
    data: Symmetric<'w, u64>,
    flag: Symmetric<'w, u64>,
    private: RefCell<Vec<u64>>,
    round: Cell<u64>,
}

impl<'w> PingAck<'w> {
    /// Collective: allocates memory for messages of up to `bytes_max`.
    ///
    /// # Errors
    /// If the symmetric heap has no room for it.
    pub fn new(world: &'w World, bytes_max: usize) -> pelago::Result<Self> {
        let words = (bytes_max / size_of::<u64>()).max(1);
        Ok(PingAck {
            data: world.alloc_zeroed(words)?,
            flag: world.alloc_zeroed(1)?,
            private: RefCell::new(vec![1; words]),
            round: Cell::new(0),
        })
    }

    /// Round trips: PE 0 puts `bytes`, fences, sets PE 1's flag; PE 1 waits for it, reads the bytes and sets
    /// PE 0's flag; PE 0 waits for it. With 0 bytes only the flags are sent.
    pub fn rounds<'a>(&'a self, bytes: usize) -> Part<'a> {
        let words = bytes / size_of::<u64>();
        match self.flag.world().my_pe() {
            0 => Box::new(move |count| (0..count).try_for_each(|_| self.ping(words))),
            1 => Box::new(move |count| (0..count).try_for_each(|_| self.acknowledge(words))),
            _ => rest(),
        }
    }

    #[inline]
    fn ping(&self, words: usize) -> pelago::Result<()> {
        let round = self.next_round();
        if words > 0 {
            self.data.put(1, 0, &self.private.borrow()[..words])?;
            self.flag.world().fence();
        }
        self.flag.p(1, 0, round)?;
        self.flag.local().wait_until(0, |value| value >= round);
        Ok(())
    }

    #[inline]
    fn acknowledge(&self, words: usize) -> pelago::Result<()> {
        let round = self.next_round();
        self.flag.local().wait_until(0, |value| value >= round);
        self.data.local().read(0, &mut self.private.borrow_mut()[..words]);
        self.flag.p(0, 0, round)
    }

    fn next_round(&self) -> u64 {
        let round = self.round.get() + 1;
        self.round.set(round);
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ensemble::conduct;
    use crate::base::suite::tests::{EFFORT, reported};

    /// Before each barrier a PE sets its word at all other PEs; after the barrier all words must be set.
    #[test]
    fn nobody_leaves_before_all_have_come() {
        let seen = spmd(4, |world| {
            let (me, n) = (world.my_pe(), world.n_pes());
            let arrived = world.alloc_zeroed::<u64>(n).unwrap();
            let barrier = YieldBarrier::new(world).unwrap();
            let mut part = barrier.barriers();
            for round in 1..=50 {
                (0..n).for_each(|pe| arrived.p(pe, me, round).unwrap());
                part(1).unwrap();
                if arrived.local().to_vec().iter().any(|value| *value < round) {
                    return round;
                }
            }
            0
        });
        assert_eq!(seen.unwrap(), [0; 4]);
    }

    #[test]
    fn rounds_are_counted_on_both_sides_and_carry_the_bytes() {
        let seen = spmd(3, |world| {
            let ping = PingAck::new(world, 512).unwrap();
            if world.my_pe() == 1 {
                ping.private.borrow_mut().fill(0);
            }
            conduct(world, &mut [ping.rounds(0), ping.rounds(512)], |leader| {
                leader.play(0, 10)?;
                leader.play(1, 3)
            })
            .unwrap();
            (ping.round.get(), ping.private.borrow().iter().sum::<u64>())
        });
        assert_eq!(seen.unwrap(), [(13, 64), (13, 64), (0, 64)]);
    }

    #[test]
    fn more_pes_than_cores_meet_too() {
        let (records, progress) = reported(5, |world, sink| all(world, EFFORT, sink));
        let operations: Vec<_> = records.iter().map(|record| record.label.operation).collect();
        assert_eq!(operations, [Operation::Barrier, Operation::RoundTrip, Operation::OneWay]);
        assert_eq!(progress, (1, 1));
    }
}
