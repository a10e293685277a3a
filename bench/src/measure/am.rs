//! Active messages: round trips between PEs 0 and 1, beside puts with a signal there and back; floods from PE
//! 0 to PE 1, beside memcpy; several PEs that send to PE 0; and a poll that finds nothing. Invariant:
//! messages with as many bytes, and their yardstick, are one trial.

mod traffic;

use anyhow::Result;
use pelago::prelude::*;

use self::traffic::{Desk, Kind, Traffic};
use super::buffers::Buffers;
use super::crowd::{fairness, rate_of_all, together};
use super::effort::Effort;
use super::meetings::Meetings;
use super::record::{Bench, Operation, Record, Unit};
use super::rma::Transfers;
use super::signals::{Exchange, Plan};
use super::suite::{Sink, Suite};

/// The plan of `bench am`.
pub(super) fn plan(effort: Effort) -> Plan {
    let powers = [3].into_iter().chain((6..=20).step_by(2));
    Plan { bytes: powers.map(|power| 1 << power).collect(), effort }
}

/// Collective, for two PEs or more: each size in a trial of round trips and in one of floods, then one sender
/// and the poll.
///
/// # Errors
/// Those of the sink, and if the symmetric heap has no room for the data.
pub(super) fn all(world: &World, plan: &Plan, sink: Sink<'_>) -> Result<()> {
    let longest = plan.bytes.iter().copied().max().unwrap_or(0);
    let desk = Desk::new(world, longest)?;
    let meetings = Meetings::new(world, 1)?;
    desk.serve(|traffic| {
        let longest = longest.max(traffic.medium_max);
        let exchange = Exchange::new(world, longest)?;
        let buffers = Buffers::new(world, longest)?;
        let kinds = traffic.kinds(&plan.bytes);
        let mut suite = Suite::new(world, plan.effort);
        for of_size in kinds.chunk_by(|a, b| a.bytes() == b.bytes()) {
            add_round_trips(&mut suite, traffic, of_size, &exchange);
        }
        for of_size in kinds.chunk_by(|a, b| a.bytes() == b.bytes()) {
            add_floods(&mut suite, traffic, of_size, &buffers);
        }
        add_senders(&mut suite, traffic, &meetings, 1, plan.effort);
        suite.add([(suite.label(Bench::MessagePoll, Operation::Poll, 0), traffic.polls())]);
        suite.run(sink)
    })
}

/// Collective, for two PEs or more: all but PE 0 send to it.
///
/// # Errors
/// Those of the sink, and if the symmetric heap has no room for a few words.
pub(super) fn senders(world: &World, effort: Effort, sink: Sink<'_>) -> Result<()> {
    let members = world.n_pes() - 1;
    let desk = Desk::new(world, 0)?;
    let meetings = Meetings::new(world, members)?;
    desk.serve(|traffic| {
        let mut suite = Suite::new(world, effort);
        add_senders(&mut suite, traffic, &meetings, members, effort);
        suite.run(sink)
    })
}

fn add_round_trips<'a>(
    suite: &mut Suite<'a>,
    traffic: &'a Traffic<'_, '_>,
    of_size: &[Kind],
    exchange: &'a Exchange<'_>,
) {
    let bytes = of_size[0].bytes();
    let label = |operation| suite.label(Bench::MessageRoundTrip, operation, bytes);
    let is_possible = |kind: &&Kind| traffic.is_mapped || kind.bytes() <= traffic.medium_max;
    let possible = of_size.iter().filter(is_possible);
    let ours = possible.map(|kind| (label(kind.operation()), traffic.round_trips(*kind)));
    let signal = Operation::PutSignal;
    let trial: Vec<_> = ours.chain([(label(signal), exchange.rounds(signal, bytes))]).collect();
    suite.add(trial);
}

fn add_floods<'a>(
    suite: &mut Suite<'a>,
    traffic: &'a Traffic<'_, '_>,
    of_size: &[Kind],
    buffers: &'a Buffers<'_>,
) {
    let bytes = of_size[0].bytes();
    let label = |bench, operation| suite.label(bench, operation, bytes);
    let ours = of_size.iter().flat_map(|kind| {
        [
            (label(Bench::MessageFlood, kind.operation()), traffic.flood(*kind)),
            (label(Bench::MessageFloodAnswered, kind.operation()), traffic.answered_flood(*kind)),
        ]
    });
    let memcpy = (traffic.is_mapped && bytes > 0).then(|| {
        let copies = Transfers::new(buffers, bytes, bytes).put_memcpy();
        (label(Bench::MessageFlood, Operation::PutMemcpy), copies)
    });
    let trial: Vec<_> = ours.chain(memcpy).collect();
    suite.add(trial);
}

/// So many members at the same time.
fn add_senders<'a>(
    suite: &mut Suite<'a>,
    traffic: &'a Traffic<'_, '_>,
    meetings: &'a Meetings<'_>,
    members: usize,
    effort: Effort,
) {
    let part = suite.add_part(traffic.senders(meetings, members));
    let label = suite.label(Bench::MessageSenders, Operation::MessageShort, 0).with_contenders(members);
    let window = effort.crowd_window(members + 1, traffic.world().cores());
    suite.add_trial(move |leader| {
        let (mut rates, mut fairnesses) = (Vec::new(), Vec::new());
        effort.repeat(1, || {
            let shares = together(|| {
                leader.play(part, window.as_micros() as u64)?;
                Ok(meetings.shares())
            })?;
            rates.push(rate_of_all(&shares) / 1e6);
            fairnesses.push(fairness(&shares));
            anyhow::Ok(())
        })?;
        let rates = Record::of(label, Unit::MillionsPerSecond, &rates);
        Ok(vec![rates, Record::of(label, Unit::Fairness, &fairnesses)])
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::record::Label;
    use crate::measure::suite::tests::{EFFORT, reported};

    #[test]
    fn every_kind_and_size_is_reported() {
        let plan = Plan { bytes: vec![8, 64, 32 << 10], effort: EFFORT };
        let (records, progress) = reported(2, |world, sink| all(world, &plan, sink));
        let found = |bench, unit| {
            let of = |label: Label| (label.operation, label.bytes);
            let found = records.iter().filter(|r| (r.label.bench, r.unit) == (bench, unit));
            found.map(|record| of(record.label)).collect::<Vec<_>>()
        };
        let (short, medium, long) =
            (Operation::MessageShort, Operation::MessageMedium, Operation::MessageLong);
        let trips = found(Bench::MessageRoundTrip, Unit::Nanoseconds);
        let longest = trips[trips.len() - 4].1;
        assert!(64 < longest && longest < 32 << 10, "a medium message is no longer than its ring allows");
        let ours = [
            vec![(short, 0)],
            vec![(medium, 8), (long, 8)],
            vec![(short, 64), (medium, 64), (long, 64)],
            vec![(medium, longest)],
            vec![(long, 32 << 10)],
        ];
        let beside = |yardstick| {
            let with = ours.iter().map(|of_size| {
                let bytes = of_size[0].1;
                let yardstick =
                    (bytes > 0 || yardstick == Operation::PutSignal).then_some((yardstick, bytes));
                of_size.iter().copied().chain(yardstick).collect::<Vec<_>>()
            });
            with.collect::<Vec<_>>().concat()
        };
        assert_eq!(trips, beside(Operation::PutSignal));
        let flood = beside(Operation::PutMemcpy);
        assert_eq!(found(Bench::MessageFlood, Unit::MillionsPerSecond), flood);
        assert_eq!(found(Bench::MessageFlood, Unit::GigabytesPerSecond), flood[1..]);
        assert_eq!(found(Bench::MessageFloodAnswered, Unit::MillionsPerSecond), ours.concat());
        assert_eq!(found(Bench::MessagePoll, Unit::Nanoseconds), [(Operation::Poll, 0)]);
        assert_eq!(progress, (5 + 5 + 2, 12));
    }

    #[test]
    fn the_rate_of_all_senders_and_their_fairness_are_reported() {
        for pes in [2, 4] {
            let (records, progress) = reported(pes, |world, sink| senders(world, EFFORT, sink));
            let [rate, fairness] = &records[..] else { panic!("two records: {records:?}") };
            assert_eq!(
                (rate.unit, fairness.unit, progress),
                (Unit::MillionsPerSecond, Unit::Fairness, (1, 1))
            );
            let is_right =
                |label: Label| (label.bench, label.contenders) == (Bench::MessageSenders, Some(pes - 1));
            assert!(is_right(rate.label) && rate.label == fairness.label, "{records:?}");
            assert!(fairness.summary.max <= 1.0, "{fairness:?}");
            assert!(pes > 2 || fairness.summary.min == 1.0, "one sender is as fast as itself: {fairness:?}");
        }
    }
}
