//! Puts with a signal, beside puts, a fence and a flag: PEs 0 and 1 send each other the same bytes in turn.
//! Invariant: words count the rounds, so that no message is taken for the next one, and who receives reads
//! the bytes before it answers, as without that they would not travel at all.

use std::cell::{Cell, RefCell};

use anyhow::Result;
use pelago::prelude::*;
use pelago::{Comparison, SignalOp};

use super::effort::Effort;
use super::ensemble::{Part, rest};
use super::record::{Bench, Operation};
use super::suite::{Sink, Suite};

/// Sizes and effort of measurements of PEs that send each other data in turn.
pub(super) struct Plan {
    /// Bytes of the data; what goes without is measured in any case.
    pub(super) bytes: Vec<usize>,
    pub(super) effort: Effort,
}

impl Plan {
    /// The plan of `bench signals` and `bench semaphore`.
    pub(super) fn of(effort: Effort) -> Self {
        Plan { bytes: (3..=16).map(|power| 1 << power).collect(), effort }
    }
}

/// Collective, for two PEs or more: each size, both kinds in one trial.
///
/// # Errors
/// Those of the sink, and if the symmetric heap has no room for the data.
pub(super) fn all(world: &World, plan: &Plan, sink: Sink<'_>) -> Result<()> {
    let exchange = Exchange::new(world, plan.bytes.iter().copied().max().unwrap_or(0))?;
    let mut suite = Suite::new(world, plan.effort);
    for bytes in [0].into_iter().chain(plan.bytes.iter().copied()) {
        let kinds = [Operation::PutSignal, Operation::PutFlag];
        let label = |operation| suite.label(Bench::Signal, operation, bytes);
        let trial = kinds.map(|operation| (label(operation), exchange.rounds(operation, bytes)));
        suite.add(trial);
    }
    suite.run(sink)
}

/// The memory that the two PEs write to each other.
pub(super) struct Exchange<'w> {
    pub(super) data: Symmetric<'w, u64>,
    word: Symmetric<'w, u64>,
    pub(super) private: RefCell<Vec<u64>>,
    round: Cell<u64>,
}

impl<'w> Exchange<'w> {
    /// Collective: memory for messages of up to `bytes_max`.
    pub(super) fn new(world: &'w World, bytes_max: usize) -> pelago::Result<Self> {
        let words = (bytes_max / size_of::<u64>()).max(1);
        Ok(Exchange {
            data: world.alloc_zeroed(words)?,
            word: world.alloc_zeroed(1)?,
            private: RefCell::new(vec![0; words]),
            round: Cell::new(0),
        })
    }

    /// Rounds of: PE 0 sends, PE 1 receives and sends, PE 0 receives.
    pub(super) fn rounds<'a>(&'a self, kind: Operation, bytes: usize) -> Part<'a> {
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
    use crate::measure::ensemble::conduct;
    use crate::measure::suite::tests::{EFFORT, reported};

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
        let plan = Plan { bytes: vec![8, 4096], effort: EFFORT };
        for pes in [2, 3] {
            let (records, progress) = reported(pes, |world, sink| all(world, &plan, sink));
            let found: Vec<_> = records.iter().map(|r| (r.label.operation, r.label.bytes)).collect();
            let expected = [0, 8, 4096]
                .map(|bytes| [Operation::PutSignal, Operation::PutFlag].map(|kind| (kind, bytes)));
            assert_eq!((found.as_slice(), progress), (expected.as_flattened(), (3, 3)));
        }
    }
}
