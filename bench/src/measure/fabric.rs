//! One-sided operations as a fabric has them: latencies, a rate and bandwidths that a program over libfabric
//! alone can be held beside (`cargo xtask compare fabric`). Invariant: each operation is complete when it
//! counts, a put when it is delivered; windows are completed one by one, and are as long as that program's.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use pelago::prelude::*;

use super::effort::Effort;
use super::ensemble::{Part, only_first};
use super::record::{Bench, Operation, Place};
use super::rma;
use super::suite::{Sink, Suite};

/// The PE that is written and read.
const TARGET: Pe = 1;
/// Puts of 8 bytes between two completions.
const RATE_WINDOW: usize = 64;
/// Large transfers between two completions.
const BANDWIDTH_WINDOW: usize = 8;
/// Bytes of a large transfer.
const LARGE_BYTES: usize = 1 << 20;
const WORD_BYTES: usize = size_of::<u64>();
/// At least so many blocks of a long operation.
const BLOCKS_MIN: usize = 5;

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Row {
    /// A put of 8 bytes and quiet
    Put,
    /// A get of 8 bytes
    Get,
    /// fetch_add of a u64
    FetchAdd,
    /// Windows of 64 puts of 8 bytes, with a quiet after each window
    PutRate,
    /// Windows of 8 puts of 1 MiB
    PutBandwidth,
    /// Windows of 8 gets of 1 MiB
    GetBandwidth,
}

/// What to measure, and how long.
#[derive(Clone, Debug, Args)]
pub(super) struct Options {
    /// Measurements; all unless given
    #[arg(long, value_delimiter = ',')]
    rows: Vec<Row>,
    /// About the time of a block, in microseconds
    #[arg(long)]
    block_us: Option<u64>,
    /// Most blocks of a measurement
    #[arg(long)]
    blocks: Option<usize>,
    /// Time for the blocks of a measurement, in milliseconds
    #[arg(long)]
    budget_ms: Option<u64>,
}

impl Options {
    fn rows(&self) -> &[Row] {
        if self.rows.is_empty() { Row::value_variants() } else { &self.rows }
    }

    fn effort(&self, effort: Effort) -> Effort {
        Effort {
            block: self.block_us.map_or(effort.block, Duration::from_micros),
            blocks_min: effort.blocks_min.min(BLOCKS_MIN),
            blocks_max: self.blocks.unwrap_or(effort.blocks_max).max(BLOCKS_MIN),
            budget: self.budget_ms.map_or(effort.budget, Duration::from_millis),
        }
    }
}

/// Collective, for two PEs or more: each row by itself.
///
/// # Errors
/// Those of the sink, and if the symmetric heap has no room for a large transfer.
pub(super) fn all(world: &World, options: &Options, effort: Effort, sink: Sink<'_>) -> Result<()> {
    let memory = Memory::new(world)?;
    let mut suite = Suite::new(world, options.effort(effort));
    for &row in options.rows() {
        let (bench, operation, bytes, window) = match row {
            Row::Put => (Bench::Latency, Operation::Put, WORD_BYTES, None),
            Row::Get => (Bench::Latency, Operation::Get, WORD_BYTES, None),
            Row::FetchAdd => (Bench::AtomicLatency, Operation::FetchAdd, WORD_BYTES, None),
            Row::PutRate => (Bench::Rate, Operation::Put, WORD_BYTES, Some(RATE_WINDOW)),
            Row::PutBandwidth => (Bench::Flood, Operation::Put, LARGE_BYTES, Some(BANDWIDTH_WINDOW)),
            Row::GetBandwidth => (Bench::Flood, Operation::Get, LARGE_BYTES, Some(BANDWIDTH_WINDOW)),
        };
        let label = suite.label(bench, operation, bytes);
        let label = window.map_or(label, |window| label.with_window(window));
        let label = if row == Row::FetchAdd { label.in_place(Place::Other) } else { label };
        suite.add([(label, memory.part(row))]);
    }
    suite.run(sink)
}

/// What the rows work on.
struct Memory<'w> {
    words: Symmetric<'w, u64>,
    large: Symmetric<'w, u64>,
    /// What is put, and where what is got goes: a place for each of a window.
    private: RefCell<Vec<u64>>,
}

impl<'w> Memory<'w> {
    /// Collective.
    fn new(world: &'w World) -> pelago::Result<Self> {
        let large_words = LARGE_BYTES / WORD_BYTES;
        let len = if world.my_pe() == 0 { BANDWIDTH_WINDOW * large_words } else { 0 };
        let private = RefCell::new(vec![1; len]);
        Ok(Memory {
            words: world.alloc_zeroed(RATE_WINDOW)?,
            large: world.alloc_zeroed(large_words)?,
            private,
        })
    }

    fn part<'a>(&'a self, row: Row) -> Part<'a> {
        let world = self.words.world();
        match row {
            Row::Put => rma::put_quiet(&self.words),
            Row::Get => only_first(world, move |count| {
                let mut value = [0];
                (0..count).try_for_each(|_| self.words.get(TARGET, 0, &mut value))
            }),
            Row::FetchAdd => only_first(world, move |count| {
                (0..count).try_for_each(|_| self.words.fetch_add(TARGET, 0, 1).map(drop))
            }),
            Row::PutRate => only_first(world, move |count| {
                (0..count).try_for_each(|_| {
                    let mut places = 0..RATE_WINDOW;
                    places.try_for_each(|at| self.words.put(TARGET, at, &[at as u64 + 1]))?;
                    world.quiet();
                    Ok(())
                })
            }),
            Row::PutBandwidth => only_first(world, move |count| {
                let private = self.private.borrow();
                let source = &private[..self.large.len()];
                (0..count).try_for_each(|_| {
                    world.scope(|scope| {
                        (0..BANDWIDTH_WINDOW).try_for_each(|_| scope.put(&self.large, TARGET, 0, source))
                    })
                })
            }),
            Row::GetBandwidth => only_first(world, move |count| {
                let mut private = self.private.borrow_mut();
                (0..count).try_for_each(|_| {
                    world.scope(|scope| {
                        let mut targets = private.chunks_mut(self.large.len());
                        targets.try_for_each(|target| scope.get(&self.large, TARGET, 0, target))
                    })
                })
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::ensemble::conduct;
    use crate::measure::record::Unit;
    use crate::measure::suite::tests::{EFFORT, reported};

    fn options(rows: &[Row]) -> Options {
        Options { rows: rows.to_vec(), block_us: None, blocks: Some(5), budget_ms: None }
    }

    #[test]
    fn the_rows_do_what_they_are_called() {
        let done = spmd(2, |world| {
            let memory = Memory::new(world).unwrap();
            let mut parts: Vec<_> = Row::value_variants().iter().map(|row| memory.part(*row)).collect();
            let led = conduct(world, &mut parts, |leader| {
                let word = |at| memory.words.g(TARGET, at);
                leader.play(Row::Put as usize, 5)?;
                assert_eq!(word(0)?, 4, "the puts count from 0");
                leader.play(Row::FetchAdd as usize, 3)?;
                assert_eq!(word(0)?, 7);
                leader.play(Row::Get as usize, 3)?;
                leader.play(Row::PutRate as usize, 2)?;
                assert_eq!([word(0)?, word(RATE_WINDOW - 1)?], [1, RATE_WINDOW as u64]);
                leader.play(Row::PutBandwidth as usize, 1)?;
                let last = memory.large.len() - 1;
                assert_eq!([memory.large.g(TARGET, 0)?, memory.large.g(TARGET, last)?], [1, 1]);
                memory.large.put(TARGET, 0, &vec![9; memory.large.len()])?;
                world.quiet();
                leader.play(Row::GetBandwidth as usize, 1)?;
                assert!(memory.private.borrow().iter().all(|word| *word == 9));
                Ok(())
            });
            led.unwrap().is_some()
        });
        assert_eq!(done.unwrap(), [true, false]);
    }

    #[test]
    fn every_row_is_reported_in_its_unit() {
        let (records, progress) = reported(2, |world, sink| all(world, &options(&[]), EFFORT, sink));
        let found: Vec<_> = records.iter().map(|r| (r.label.bench, r.label.window, r.unit)).collect();
        let (time, flood) = (Unit::Nanoseconds, (Bench::Flood, Some(8), Unit::GigabytesPerSecond));
        let rate = (Bench::Rate, Some(64), Unit::MillionsPerSecond);
        let latency = (Bench::Latency, None, time);
        assert_eq!(found, [latency, latency, (Bench::AtomicLatency, None, time), rate, flood, flood]);
        assert_eq!(progress, (6, 6));
        let (records, _) = reported(2, |world, sink| all(world, &options(&[Row::Get]), EFFORT, sink));
        assert_eq!(records.len(), 1);
    }
}
