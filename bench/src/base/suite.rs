//! A suite: a sequence of trials, and the conversion of samples to records. Invariant: operations that are
//! compared form one trial, whose parts alternate block by block.

use anyhow::Result;
use pelago::prelude::*;

use super::effort::Effort;
use super::ensemble::{Leader, Part, conduct};
use super::record::{Bench, Label, Operation, Pair, Record, Unit};
use super::stats::Summary;

/// The progress so far, and the records of the last trial.
pub struct Progress<'a> {
    pub trials_done: usize,
    pub trials: usize,
    pub records: &'a [Record],
}

/// The receiver of each [`Progress`] on PE 0.
pub type Sink<'a> = &'a mut dyn FnMut(Progress<'_>) -> Result<()>;

/// The function that runs a trial on PE 0, which leads all PEs.
type Trial<'a> = Box<dyn Fn(&mut Leader<'_, '_, '_>) -> Result<Vec<Record>> + 'a>;

/// All trials and their parts.
pub struct Suite<'a> {
    world: &'a World,
    effort: Effort,
    parts: Vec<Part<'a>>,
    trials: Vec<Trial<'a>>,
}

impl<'a> Suite<'a> {
    /// A suite without trials.
    pub fn new(world: &'a World, effort: Effort) -> Self {
        Suite { world, effort, parts: Vec::new(), trials: Vec::new() }
    }

    /// A label for a measurement of this job.
    pub fn label(&self, bench: Bench, operation: Operation, bytes: usize) -> Label {
        Label::new(self.world.n_pes(), bench, operation, bytes)
    }

    /// Adds a part for use in trials; returns its number.
    pub fn add_part(&mut self, part: Part<'a>) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// Adds a custom trial.
    pub fn add_trial(&mut self, trial: impl Fn(&mut Leader<'_, '_, '_>) -> Result<Vec<Record>> + 'a) {
        self.trials.push(Box::new(trial));
    }

    /// Adds a trial that times alternating parts.
    pub fn add(&mut self, trial: impl IntoIterator<Item = (Label, Part<'a>)>) {
        let trial = trial.into_iter().map(|(label, part)| (label, self.add_part(part)));
        let (trial, effort) = (trial.collect::<Vec<_>>(), self.effort);
        self.add_trial(move |leader| {
            let samples = sample(leader, &trial, effort)?;
            let labelled = trial.iter().zip(&samples);
            Ok(labelled.flat_map(|((label, _), samples)| records(*label, samples)).collect())
        });
    }

    /// Collective: runs all trials.
    ///
    /// # Errors
    /// Errors of the sink and of the parts.
    pub fn run(mut self, sink: Sink<'_>) -> Result<()> {
        let trials = self.trials;
        conduct(self.world, &mut self.parts, |leader| {
            for (index, trial) in trials.iter().enumerate() {
                let records = trial(leader)?;
                sink(Progress { trials_done: index + 1, trials: trials.len(), records: &records })?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// The samples of each part of a trial, in nanoseconds per operation.
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

/// The records of samples in nanoseconds. A round trip of ping-ack has a second record for half of it, and a
/// flood of messages with data has one for the bandwidth.
fn records(label: Label, samples_ns: &[f64]) -> Vec<Record> {
    let record = |operation, unit, value: &dyn Fn(f64) -> f64| {
        let samples: Vec<_> = samples_ns.iter().map(|ns| value(*ns)).collect();
        Record::of(Label { operation, ..label }, unit, &samples)
    };
    let (operation, operations) = (label.operation, label.window.unwrap_or(1) as f64);
    let moved_bytes = label.bytes as f64 * operations;
    match label.bench {
        Bench::Bandwidth | Bench::Flood => {
            vec![record(operation, Unit::GigabytesPerSecond, &|ns| moved_bytes / ns)]
        }
        Bench::AtomicRate
        | Bench::Rate
        | Bench::TwoSidedWindow
        | Bench::SemaphoreRate
        | Bench::MessageFloodAnswered => {
            vec![record(operation, Unit::MillionsPerSecond, &|ns| operations * 1e3 / ns)]
        }
        Bench::MessageFlood => {
            let rate = record(operation, Unit::MillionsPerSecond, &|ns| operations * 1e3 / ns);
            let bandwidth = || record(operation, Unit::GigabytesPerSecond, &|ns| moved_bytes / ns);
            [rate].into_iter().chain((label.bytes > 0).then(bandwidth)).collect()
        }
        Bench::Signal | Bench::MemputSignal | Bench::TwoSided => {
            vec![record(operation, Unit::Nanoseconds, &|ns| ns / 2.0)]
        }
        Bench::PingAck => vec![
            record(Operation::RoundTrip, Unit::Nanoseconds, &|ns| ns),
            record(Operation::OneWay, Unit::Nanoseconds, &|ns| ns / 2.0),
        ],
        _ => vec![record(operation, Unit::Nanoseconds, &|ns| ns)],
    }
}

/// Collective: measures pairs of an operation and its yardstick, whose time is scaled by a factor; returns
/// them on PE 0, and none elsewhere. Within a pair the two alternate block by block, so that other load on
/// the machine slows both.
///
/// # Errors
/// Errors of the parts.
pub fn pairs(
    world: &World,
    mut parts: [Part<'_>; 2],
    yardstick_share: f64,
    count: usize,
    effort: Effort,
) -> Result<Vec<Pair>> {
    let led = conduct(world, &mut parts, |leader| {
        let mut counts = [0; 2];
        for (part, count) in counts.iter_mut().enumerate() {
            *count = effort.calibrate(|count| leader.play(part, count))?;
        }
        let pair = |_| {
            let mut samples = [const { Vec::new() }; 2];
            for _ in 0..effort.blocks_min {
                for (part, samples) in samples.iter_mut().enumerate() {
                    samples.push(leader.play_ns(part, counts[part])?);
                }
            }
            let [ours_ns, yardstick_ns] = samples.map(|samples| Summary::of(&samples).median);
            Ok(Pair { ours_ns, yardstick_ns: yardstick_ns * yardstick_share })
        };
        (0..count).map(pair).collect()
    });
    Ok(led?.unwrap_or_default())
}

#[cfg(test)]
pub mod tests {
    use std::time::Duration;

    use super::*;

    /// The smallest possible effort.
    pub const EFFORT: Effort = Effort {
        block: Duration::from_micros(1),
        blocks_min: 2,
        blocks_max: 3,
        budget: Duration::from_micros(1),
    };

    /// The records that PE 0 of `pes` PEs reports, and its last progress. Checks that no other PE reports,
    /// and that all values are valid.
    pub fn reported(
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
        let (records, progress) = reports.swap_remove(0);
        for record in &records {
            let Summary { min, median, max, samples } = record.summary;
            assert!(0.0 < min && min <= median && median <= max && max.is_finite(), "{record:?}");
            assert!(samples >= 2 && record.label.pes == pes, "{record:?}");
        }
        (records, progress)
    }

    /// The number of records whose label satisfies `has`.
    pub fn count(records: &[Record], has: impl Fn(&Label) -> bool) -> usize {
        records.iter().filter(|record| has(&record.label)).count()
    }

    #[test]
    fn samples_become_rates_and_halves() {
        let records = |bench, operation, bytes, samples_ns: &[f64]| {
            let label = Label::new(2, bench, operation, bytes).with_window(4);
            let records = records(label, samples_ns);
            records.iter().map(|r| (r.label.operation, r.summary.median, r.unit)).collect::<Vec<_>>()
        };
        let (nanoseconds, put) = (Unit::Nanoseconds, Operation::Put);
        assert_eq!(records(Bench::Flood, put, 1000, &[100.0]), [(put, 40.0, Unit::GigabytesPerSecond)]);
        assert_eq!(records(Bench::Rate, put, 8, &[100.0]), [(put, 40.0, Unit::MillionsPerSecond)]);
        let put_signal = Operation::PutSignal;
        assert_eq!(records(Bench::Signal, put_signal, 8, &[100.0]), [(put_signal, 50.0, nanoseconds)]);
        let rate = (put, 40.0, Unit::MillionsPerSecond);
        let bandwidth = (put, 40.0, Unit::GigabytesPerSecond);
        assert_eq!(records(Bench::MessageFlood, put, 1000, &[100.0]), [rate, bandwidth]);
        assert_eq!(records(Bench::MessageFlood, put, 0, &[100.0]), [rate]);
        let there_and_back = records(Bench::PingAck, Operation::RoundTrip, 8, &[100.0, 300.0]);
        let expected = [(Operation::RoundTrip, 200.0, nanoseconds), (Operation::OneWay, 100.0, nanoseconds)];
        assert_eq!(there_and_back, expected);
    }

    #[test]
    fn trials_come_in_order_and_are_counted() {
        let (records, progress) = reported(3, |world, sink| {
            let mut suite = Suite::new(world, EFFORT);
            let label = suite.label(Bench::Latency, Operation::Put, 8);
            let work = || -> Part<'_> {
                Box::new(|count| {
                    assert_eq!((0..count).map(std::hint::black_box).count() as u64, count);
                    Ok(())
                })
            };
            suite.add([(label, work()), (Label { operation: Operation::Get, ..label }, work())]);
            let part = suite.add_part(work());
            suite.add_trial(move |leader| {
                let samples = [leader.play_ns(part, 1)?, leader.play_ns(part, 2)?];
                Ok(vec![Record::of(label, Unit::MillionsPerSecond, &samples)])
            });
            suite.run(sink)
        });
        let operations: Vec<_> = records.iter().map(|record| record.label.operation).collect();
        assert_eq!(operations, [Operation::Put, Operation::Get, Operation::Put]);
        assert_eq!((records[2].unit, records[2].summary.samples), (Unit::MillionsPerSecond, 2));
        assert_eq!(progress, (2, 2));
    }
}
