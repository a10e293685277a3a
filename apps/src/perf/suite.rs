//! The measurements of `bench rma`: which, in what order, and how samples become records. Invariant: what is
//! to be compared is one trial, whose parts take turns block by block.

use anyhow::Result;
use pelago::prelude::*;

use super::barrier::barriers;
use super::buffers::{Buffers, memory_region_bytes};
use super::effort::Effort;
use super::ensemble::{Leader, Part, conduct};
use super::ping::PingAck;
use super::record::{Bench, Operation, Place, Record, Unit};
use super::rma::{self, Transfers};
use super::stats::Summary;

const WORD_BYTES: usize = size_of::<u64>();

/// What to measure.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Sizes of the messages of ping-ack; flags alone are measured in any case.
    pub(super) ping_bytes: Vec<usize>,
    /// Sizes of transfers.
    pub(super) transfer_bytes: Vec<usize>,
    /// Numbers of puts outstanding.
    pub(super) windows: Vec<usize>,
    /// Region for transfers that are to find nothing in the caches, if there is room for it.
    pub(super) memory_region_bytes: Option<usize>,
    /// The least transfer that is also measured in that region.
    pub(super) memory_transfer_bytes_min: usize,
    pub(super) effort: Effort,
}

impl Plan {
    /// The plan of `bench rma`.
    pub(super) fn of(world: &World) -> Self {
        Plan {
            ping_bytes: (3..=9).map(|power| 1 << power).collect(),
            transfer_bytes: (6..=24).step_by(2).map(|power| 1 << power).collect(),
            windows: vec![1, 8, 64],
            memory_region_bytes: memory_region_bytes(world),
            memory_transfer_bytes_min: 1 << 20,
            effort: Effort::of(world),
        }
    }
}

/// What has been done so far, and the records of the last trial.
pub(super) struct Progress<'a> {
    pub(super) trials_done: usize,
    pub(super) trials: usize,
    pub(super) records: &'a [Record],
}

/// Takes each [`Progress`] on PE 0.
pub(super) type Sink<'a> = &'a mut dyn FnMut(Progress<'_>) -> Result<()>;

/// Collective, for two PEs or more: everything in the plan.
///
/// # Errors
/// Those of the sink, and if the symmetric heap has no room for the buffers.
pub(super) fn all(world: &World, plan: &Plan, sink: Sink<'_>) -> Result<()> {
    let transfer_bytes_max = plan.transfer_bytes.iter().copied().max().unwrap_or(0);
    let region_bytes = plan.memory_region_bytes.unwrap_or(0).max(transfer_bytes_max);
    let buffers = Buffers::new(world, region_bytes)?;
    let (word, zero) = (world.alloc_zeroed::<u64>(1)?, world.alloc_zeroed::<u64>(1)?);
    let ping = PingAck::new(world, plan.ping_bytes.iter().copied().max().unwrap_or(0))?;
    let mut suite = Suite::default();
    for (operation, part) in [
        (Operation::PutIssue, rma::put_issue(&word)),
        (Operation::Put, rma::put_quiet(&word)),
        (Operation::Get, rma::get(&zero)),
    ] {
        suite.add([(Label::new(Bench::Latency, operation, WORD_BYTES), part)]);
    }
    suite.add_meetings(world, &ping, &plan.ping_bytes);
    for &bytes in &plan.transfer_bytes {
        suite.add_bandwidth(Place::Cache, bytes, &Transfers::new(&buffers, bytes, bytes));
    }
    let is_large = |bytes: &&usize| **bytes >= plan.memory_transfer_bytes_min;
    for &bytes in plan.transfer_bytes.iter().filter(is_large) {
        if let Some(region_bytes) = plan.memory_region_bytes {
            suite.add_bandwidth(Place::Memory, bytes, &Transfers::new(&buffers, bytes, region_bytes));
        }
    }
    for &bytes in &plan.transfer_bytes {
        let transfers = Transfers::new(&buffers, bytes, bytes);
        let label = Label::new(Bench::Flood, Operation::Put, bytes).in_place(Place::Cache);
        let windows = plan.windows.iter();
        suite.add(windows.map(|&window| (label.with_window(window), transfers.flood(window))));
    }
    suite.run(world, plan.effort, sink)
}

/// Collective, for two PEs or more: the barrier, and beside it the flag between two PEs.
///
/// # Errors
/// As [`all`].
pub(super) fn barrier(world: &World, effort: Effort, sink: Sink<'_>) -> Result<()> {
    let ping = PingAck::new(world, 0)?;
    let mut suite = Suite::default();
    suite.add_meetings(world, &ping, &[]);
    suite.run(world, effort, sink)
}

/// A measurement before it has samples.
#[derive(Clone, Copy)]
struct Label {
    bench: Bench,
    operation: Operation,
    bytes: usize,
    window: Option<usize>,
    place: Option<Place>,
}

impl Label {
    fn new(bench: Bench, operation: Operation, bytes: usize) -> Self {
        Label { bench, operation, bytes, window: None, place: None }
    }

    fn with_window(self, window: usize) -> Self {
        Label { window: Some(window), ..self }
    }

    fn in_place(self, place: Place) -> Self {
        Label { place: Some(place), ..self }
    }

    /// The records of samples in nanoseconds; a round trip makes a second one, of its half.
    fn records(self, pes: usize, samples_ns: &[f64]) -> Vec<Record> {
        let record = |operation, unit, value: &dyn Fn(f64) -> f64| {
            let Label { bench, bytes, window, place, .. } = self;
            let samples: Vec<_> = samples_ns.iter().map(|ns| value(*ns)).collect();
            Record { bench, operation, bytes, pes, window, place, unit, summary: Summary::of(&samples) }
        };
        let moved = (self.bytes * self.window.unwrap_or(1)) as f64;
        match (self.bench, self.operation) {
            (Bench::Bandwidth | Bench::Flood, operation) => {
                vec![record(operation, Unit::GigabytesPerSecond, &|ns| moved / ns)]
            }
            (_, Operation::RoundTrip) => vec![
                record(Operation::RoundTrip, Unit::Nanoseconds, &|ns| ns),
                record(Operation::OneWay, Unit::Nanoseconds, &|ns| ns / 2.0),
            ],
            (_, operation) => vec![record(operation, Unit::Nanoseconds, &|ns| ns)],
        }
    }
}

/// All trials, and the parts that they are made of.
#[derive(Default)]
struct Suite<'a> {
    parts: Vec<Part<'a>>,
    trials: Vec<Vec<(Label, usize)>>,
}

impl<'a> Suite<'a> {
    /// Adds a trial, whose parts take turns.
    fn add(&mut self, trial: impl IntoIterator<Item = (Label, Part<'a>)>) {
        let trial = trial.into_iter().map(|(label, part)| {
            self.parts.push(part);
            (label, self.parts.len() - 1)
        });
        let trial = trial.collect();
        self.trials.push(trial);
    }

    fn add_bandwidth(&mut self, place: Place, bytes: usize, transfers: &Transfers<'a, '_>) {
        let label = |operation| Label::new(Bench::Bandwidth, operation, bytes).in_place(place);
        self.add([
            (label(Operation::Put), transfers.put()),
            (label(Operation::PutMemcpy), transfers.put_memcpy()),
        ]);
        self.add([
            (label(Operation::Get), transfers.get()),
            (label(Operation::GetMemcpy), transfers.get_memcpy()),
        ]);
    }

    /// The barrier, the flag alone and messages of these sizes, in one trial: how far two PEs are from each
    /// other can change from one moment to the next where the system under this one moves processors.
    fn add_meetings(&mut self, world: &'a World, ping: &'a PingAck<'_>, ping_bytes: &[usize]) {
        let barrier = (Label::new(Bench::Barrier, Operation::Barrier, 0), barriers(world));
        let sizes = [0].into_iter().chain(ping_bytes.iter().copied());
        let rounds =
            sizes.map(|bytes| (Label::new(Bench::PingAck, Operation::RoundTrip, bytes), ping.rounds(bytes)));
        self.add([barrier].into_iter().chain(rounds));
    }

    fn run(mut self, world: &World, effort: Effort, sink: Sink<'_>) -> Result<()> {
        let trials = self.trials;
        conduct(world, &mut self.parts, |leader| {
            for (index, trial) in trials.iter().enumerate() {
                let samples = sample(leader, trial, effort)?;
                let labelled = trial.iter().zip(&samples);
                let records: Vec<_> = labelled
                    .flat_map(|((label, _), samples)| label.records(world.n_pes(), samples))
                    .collect();
                sink(Progress { trials_done: index + 1, trials: trials.len(), records: &records })?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// The samples of each part of a trial, in nanoseconds an operation.
fn sample(
    leader: &mut Leader<'_, '_, '_>,
    trial: &[(Label, usize)],
    effort: Effort,
) -> Result<Vec<Vec<f64>>> {
    let parts = trial.iter().map(|(_, part)| *part);
    let counts = parts.clone().map(|part| effort.calibrate(|count| leader.play(part, count)));
    let counts = counts.collect::<Result<Vec<_>>>()?;
    let mut samples = vec![Vec::new(); trial.len()];
    effort.repeat(trial.len(), || {
        for ((part, count), samples) in parts.clone().zip(&counts).zip(&mut samples) {
            samples.push(leader.play_ns(part, *count)?);
        }
        anyhow::Ok(())
    })?;
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const EFFORT: Effort = Effort {
        block: Duration::from_micros(1),
        blocks_min: 2,
        blocks_max: 3,
        budget: Duration::from_micros(1),
    };

    /// What PE 0 of `pes` PEs reports, and how far the last progress said that it had come.
    fn records(
        pes: usize,
        suite: impl Fn(&World, Sink<'_>) -> Result<()> + Sync,
    ) -> (Vec<Record>, (usize, usize)) {
        let reports = spmd(pes, |world| {
            let (mut all, mut last) = (Vec::new(), (0, 0));
            let done = suite(world, &mut |progress| {
                all.extend_from_slice(progress.records);
                last = (progress.trials_done, progress.trials);
                Ok(())
            });
            done.unwrap();
            (all, last)
        });
        let mut reports = reports.unwrap();
        assert!(reports[1..].iter().all(|(records, _)| records.is_empty()), "only PE 0 reports");
        reports.swap_remove(0)
    }

    #[test]
    fn every_measurement_of_the_plan_is_reported() {
        let plan = |_: &World| Plan {
            ping_bytes: vec![8, 64],
            transfer_bytes: vec![64, 256],
            windows: vec![1, 4],
            memory_region_bytes: Some(1024),
            memory_transfer_bytes_min: 256,
            effort: EFFORT,
        };
        let (records, progress) = records(2, |world, sink| all(world, &plan(world), sink));
        let count = |bench, operation| {
            let found = records.iter().filter(|r| (r.bench, r.operation) == (bench, operation));
            found.count()
        };
        for (bench, operation, expected) in [
            (Bench::Latency, Operation::PutIssue, 1),
            (Bench::Latency, Operation::Put, 1),
            (Bench::Latency, Operation::Get, 1),
            (Bench::PingAck, Operation::RoundTrip, 3),
            (Bench::PingAck, Operation::OneWay, 3),
            (Bench::Bandwidth, Operation::Put, 3),
            (Bench::Bandwidth, Operation::PutMemcpy, 3),
            (Bench::Bandwidth, Operation::Get, 3),
            (Bench::Bandwidth, Operation::GetMemcpy, 3),
            (Bench::Flood, Operation::Put, 4),
            (Bench::Barrier, Operation::Barrier, 1),
        ] {
            assert_eq!(count(bench, operation), expected, "{bench:?} {operation:?}");
        }
        assert_eq!(progress, (12, 12));
        let memory = records.iter().filter(|record| record.place == Some(Place::Memory));
        assert!(memory.clone().all(|record| record.bytes == 256) && memory.count() == 4);
        for record in &records {
            let Summary { min, median, max, samples } = record.summary;
            assert!(0.0 < min && min <= median && median <= max && max.is_finite(), "{record:?}");
            assert!(samples >= 2 && record.pes == 2, "{record:?}");
        }
    }

    #[test]
    fn more_pes_than_cores_meet_too() {
        let (records, progress) = records(5, |world, sink| barrier(world, EFFORT, sink));
        let operations: Vec<_> = records.iter().map(|record| record.operation).collect();
        assert_eq!(operations, [Operation::Barrier, Operation::RoundTrip, Operation::OneWay]);
        assert!(records.iter().all(|record| record.pes == 5));
        assert_eq!(progress, (1, 1));
    }

    #[test]
    fn samples_become_rates_and_halves() {
        let flood = Label::new(Bench::Flood, Operation::Put, 1000).with_window(4).records(2, &[100.0]);
        assert_eq!((flood[0].summary.median, flood[0].unit), (40.0, Unit::GigabytesPerSecond));
        let ping = Label::new(Bench::PingAck, Operation::RoundTrip, 8).records(2, &[100.0, 300.0]);
        assert_eq!((ping[0].summary.median, ping[1].summary.median), (200.0, 100.0));
        assert_eq!(ping[1].operation, Operation::OneWay);
    }
}
