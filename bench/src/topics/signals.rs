//! `bench signals`: a put with a signal, compared with a put, a fence and a flag; PEs 0 and 1 send each other
//! the same bytes in turn. Invariants: both kinds of a size are measured in turn; the signal words count the
//! rounds, so that no message is mistaken for the next one; and the receiver reads the bytes before it
//! replies, because otherwise they would not leave the sender's cache.

use std::cell::{Cell, RefCell};

use crate::base::prelude::*;
use pelago::{Comparison, SignalOp};

pub const TOPIC: Topic = Topic {
    title: "Signals",
    jobs: |pes| vec![Job { pes, suite: "signals" }],
    tables: |records| vec![table(records)],
    figures: |records| vec![curve(records)],
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench signals                   one-way times of 8 B to 64 KiB
  pelago bench signals --html s.html     the curves as well
  pelago bench signals --json            one JSON object a measurement";

fn table(records: &[Record]) -> Table {
    let title = "PEs 0 and 1 send each other data in turn and read what has come; one way, ns";
    let names = "data|put_signal: min|median|max|put, fence, flag: min|median|max|signal / flag";
    let mut table = Table::new(title, 1, names);
    let mut signals: Vec<_> = of(records, Bench::Signal, Operation::PutSignal).collect();
    signals.sort_by_key(|record| record.label.bytes);
    for signal in signals {
        let bytes = signal.label.bytes;
        let flag = of(records, Bench::Signal, Operation::PutFlag).find(|flag| flag.label.bytes == bytes);
        if let Some(flag) = flag {
            let name = if bytes == 0 { "none".to_owned() } else { size(bytes) };
            table.row((name, signal.summary, flag.summary, ratio(Some(signal), Some(flag))));
        }
    }
    table
}

fn curve(records: &[Record]) -> Figure {
    let ways = [
        (Operation::PutFlag, "put, fence, flag", ORANGE, Line::Dashed),
        (Operation::PutSignal, "put_signal", BLUE, Line::Solid),
    ];
    one_way_curve(records, Bench::Signal, "One-way time of data and the word that says so", &ways)
}

/// The one-way time of data as a function of their size: a line for each way of signalling.
pub fn one_way_curve(
    records: &[Record],
    bench: Bench,
    title: &str,
    ways: &[(Operation, &str, &'static str, Line)],
) -> Figure {
    let lines = ways.iter().map(|&(operation, name, colour, line)| {
        let with_data = of(records, bench, operation).filter(|record| record.label.bytes > 0);
        Across::Bytes.series(name, colour, line, with_data)
    });
    let caption = "Half a round trip between PEs 0 and 1, both of which read what has come. Medians.";
    Figure::new(title, [Across::Bytes.axis("size of the data"), TIME], caption, lines)
}

/// The sizes of the data of `bench signals` and `bench semaphore`, in bytes; a signal without data is always
/// measured.
pub const BYTES: [usize; 14] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];

/// Collective, for two PEs or more: each size, both kinds in one trial.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for the data.
pub fn all(world: &World, bytes: &[usize], effort: Effort, sink: Sink<'_>) -> Result<()> {
    let exchange = Exchange::new(world, largest(bytes))?;
    let mut suite = Suite::new(world, effort);
    for bytes in [0].into_iter().chain(bytes.iter().copied()) {
        let kinds = [Operation::PutSignal, Operation::PutFlag];
        let label = |operation| suite.label(Bench::Signal, operation, bytes);
        let trial = kinds.map(|operation| (label(operation), exchange.rounds(operation, bytes)));
        suite.add(trial);
    }
    suite.run(sink)
}

/// The memory that the two PEs write to each other.
pub struct Exchange<'w> {
    pub data: Symmetric<'w, u64>,
    word: Symmetric<'w, u64>,
    pub private: RefCell<Vec<u64>>,
    round: Cell<u64>,
}

impl<'w> Exchange<'w> {
    /// Collective: memory for messages of up to `bytes_max`.
    pub fn new(world: &'w World, bytes_max: usize) -> pelago::Result<Self> {
        let words = (bytes_max / size_of::<u64>()).max(1);
        Ok(Exchange {
            data: world.alloc_zeroed(words)?,
            word: world.alloc_zeroed(1)?,
            private: RefCell::new(vec![0; words]),
            round: Cell::new(0),
        })
    }

    /// Round trips: PE 0 sends, PE 1 receives and sends, PE 0 receives.
    pub fn rounds<'a>(&'a self, kind: Operation, bytes: usize) -> Part<'a> {
        let words = bytes / size_of::<u64>();
        let send = move |to| match (kind, words) {
            (Operation::PutSignal, 0) => self.signal(to),
            (Operation::PutSignal, _) => self.put_signal(to, words),
            _ => self.put_flag(to, words),
        };
        match self.word.world().my_pe() {
            0 => Box::new(move |count| {
                (0..count).try_for_each(|_| {
                    self.next_round();
                    send(1)?;
                    self.receive(words);
                    Ok(())
                })
            }),
            1 => Box::new(move |count| {
                (0..count).try_for_each(|_| {
                    self.next_round();
                    self.receive(words);
                    send(0)
                })
            }),
            _ => rest(),
        }
    }

    fn next_round(&self) {
        self.round.set(self.round.get() + 1);
    }

    #[inline]
    fn signal(&self, to: Pe) -> pelago::Result<()> {
        self.word.signal(to, 0, SignalOp::Set(self.round.get()))
    }

    #[inline]
    fn put_signal(&self, to: Pe, words: usize) -> pelago::Result<()> {
        let signal = SignalOp::Set(self.round.get());
        self.data.put_signal(to, 0, &self.private.borrow()[..words], &self.word, 0, signal)
    }

    #[inline]
    fn put_flag(&self, to: Pe, words: usize) -> pelago::Result<()> {
        if words > 0 {
            self.data.put(to, 0, &self.private.borrow()[..words])?;
            self.data.world().fence();
        }
        self.word.p(to, 0, self.round.get())
    }

    #[inline]
    fn receive(&self, words: usize) {
        self.word.local().wait(0, Comparison::Ge, self.round.get());
        self.data.local().read(0, &mut self.private.borrow_mut()[..words]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ensemble::conduct;
    use crate::base::record::tests::record;
    use crate::base::suite::tests::{EFFORT, reported};
    use crate::base::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn both_kinds_and_their_ratio_are_shown() {
        let mut records = Vec::new();
        for (operation, factor) in [(Operation::PutFlag, 1.0), (Operation::PutSignal, 0.5)] {
            for (bytes, ns) in [(0, 50.0), (8, 60.0), (65_536, 5000.0)] {
                let label = Label::new(2, Bench::Signal, operation, bytes);
                records.push(record(label, Unit::Nanoseconds, ns * factor));
            }
        }
        let (tables, page) = shown(&TOPIC, &records, 1);
        assert_row(&tables, &["none", "12.5", "25.0", "250", "25.0", "50.0", "500", "0.500"]);
        assert_row(&tables, &["64 KiB", "1250", "2500", "25000", "2500", "5000", "50000", "0.500"]);
        assert!(page.contains("put_signal, 8 B: 30.0 (from 15.0 to 300)"));
        assert_nothing_shown(&TOPIC);
    }

    #[test]
    fn messages_go_there_and_back() {
        for kind in [Operation::PutSignal, Operation::PutFlag] {
            let seen = spmd(3, |world| {
                let exchange = Exchange::new(world, 512).unwrap();
                if world.my_pe() == 0 {
                    exchange.private.borrow_mut().fill(7);
                }
                let mut parts = [exchange.rounds(kind, 0), exchange.rounds(kind, 512)];
                conduct(world, &mut parts, |leader| {
                    leader.play(0, 10)?;
                    leader.play(1, 3)
                })
                .unwrap();
                (exchange.round.get(), exchange.word.local().get(0), exchange.data.local().get(63))
            });
            assert_eq!(seen.unwrap(), [(13, 13, 7), (13, 13, 7), (0, 0, 0)], "{kind:?}");
        }
    }

    #[test]
    fn both_kinds_of_every_size_are_reported() {
        for pes in [2, 3] {
            let (records, progress) = reported(pes, |world, sink| all(world, &[8, 4096], EFFORT, sink));
            let found: Vec<_> = records.iter().map(|r| (r.label.operation, r.label.bytes)).collect();
            let expected = [0, 8, 4096]
                .map(|bytes| [Operation::PutSignal, Operation::PutFlag].map(|kind| (kind, bytes)));
            assert_eq!((found.as_slice(), progress), (expected.as_flattened(), (3, 3)));
        }
    }
}
