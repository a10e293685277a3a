//! `bench am`: active messages, by kind and size: round trips between PEs 0 and 1, compared with puts with a
//! signal in both directions; floods from PE 0 to PE 1, compared with memcpy; several PEs that send to PE 0;
//! and a poll that finds nothing. Invariant: messages of the same size, and their yardstick, are one trial,
//! and one row.

mod traffic;

use self::traffic::{Desk, Kind, Traffic};
use super::rma::Transfers;
use super::signals::Exchange;
use crate::base::buffers::Buffers;
use crate::base::crowd::{Meetings, fairness, rate_of_all};
use crate::base::prelude::*;

pub const TOPIC: Topic = Topic {
    title: "Active messages",
    jobs,
    tables: |records| vec![round_trips(records), floods(records), senders_table(records), poll(records)],
    figures: |records| {
        let curves = [trip_curve, bandwidth_curve, rate_curve, senders_curve, fairness_curve];
        curves.map(|curve| curve(records)).into()
    },
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench am                        round trips, floods, one sender, the poll
  pelago bench am -n 8 --html a.html     up to 7 senders to one PE too, and a page of curves
  pelago bench am --fabric shm           the same over the net, within this node
  pelago bench am --json                 one JSON object a measurement";

const KINDS: [(Operation, &str); 3] = [
    (Operation::MessageShort, "short"),
    (Operation::MessageMedium, "medium"),
    (Operation::MessageLong, "long"),
];
const RATE: Unit = Unit::MillionsPerSecond;

/// The axis of rates.
const MESSAGES: Axis = Axis { label: "M/s (10^6 messages a second)", scale: Scale::Decades };

/// All measurements between two PEs, one of which sends; then 2, 4, 8 senders and so on to one more PE.
fn jobs(most: usize) -> Vec<Job> {
    let suite = |senders| Job { pes: senders + 1, suite: if senders == 1 { "am" } else { "am-senders" } };
    doublings(1, most - 1).map(suite).collect()
}

/// The records of a kind, by size.
fn of_kind(records: &[Record], bench: Bench, operation: Operation, unit: Unit) -> Vec<&Record> {
    let is_it = |record: &&Record| {
        (record.label.bench, record.label.operation, record.unit) == (bench, operation, unit)
    };
    let mut found: Vec<_> = records.iter().filter(is_it).collect();
    found.sort_by_key(|record| record.label.bytes);
    found
}

/// The record that differs from this one in what the label says, and the unit.
fn beside(records: &[Record], label: Label, unit: Unit) -> Option<&Record> {
    records.iter().find(|record| (record.label, record.unit) == (label, unit))
}

/// The size of a message as text.
fn data(label: Label) -> String {
    match (label.operation, label.bytes / size_of::<u32>()) {
        (Operation::MessageShort, 0) => "no arguments".to_owned(),
        (Operation::MessageShort, count) => format!("{count} arguments"),
        _ => size(label.bytes),
    }
}

fn round_trips(records: &[Record]) -> Table {
    let mut table = Table::new(
        "PE 0 asks, PE 1 answers with as much, and so on, ns; beside it put_signal there and back",
        2,
        "message|data|round trip: min|median|max|put_signal: median|message / put_signal",
    );
    for (operation, name) in KINDS {
        for record in of_kind(records, Bench::MessageRoundTrip, operation, Unit::Nanoseconds) {
            let signal = Label { operation: Operation::PutSignal, ..record.label };
            let signal = beside(records, signal, Unit::Nanoseconds);
            table.row((name, data(record.label), record.summary, signal, ratio(Some(record), signal)));
        }
    }
    table
}

fn floods(records: &[Record]) -> Table {
    let mut table = Table::new(
        "PE 0 sends one after the other until PE 1 has executed all; beside it memcpy (cache of PE 0)",
        2,
        "message|data|one way, M/s: min|median|max|answered, M/s|one way, GB/s|memcpy, GB/s|message / memcpy",
    );
    for (operation, name) in KINDS {
        for record in of_kind(records, Bench::MessageFlood, operation, RATE) {
            let label = record.label;
            let answered = beside(records, Label { bench: Bench::MessageFloodAnswered, ..label }, RATE);
            let memcpy = Label { operation: Operation::PutMemcpy, ..label };
            let [bandwidth, memcpy] =
                [label, memcpy].map(|label| beside(records, label, Unit::GigabytesPerSecond));
            let others = [answered, bandwidth, memcpy];
            table.row((name, data(label), record.summary, others, ratio(bandwidth, memcpy)));
        }
    }
    table
}

fn senders_table(records: &[Record]) -> Table {
    let mut table = Table::new(
        "Short messages of several PEs at once to PE 0, which executes them; rate of all together",
        0,
        "senders|M/s: min|median|max|slowest / fastest: min|median|max",
    );
    for rate in of_kind(records, Bench::MessageSenders, Operation::MessageShort, RATE) {
        let fairness = beside(records, rate.label, Unit::Fairness).map(|record| record.summary);
        table.row((rate.label.contenders.unwrap_or(1), rate.summary, fairness));
    }
    table
}

fn poll(records: &[Record]) -> Table {
    let mut table = Table::new("A poll that finds nothing, ns", 1, "operation|min|median|max");
    if let Some(poll) = find(records, |label| label.bench == Bench::MessagePoll) {
        table.row(("poll", poll.summary));
    }
    table
}

/// A line of the chart: the records of a kind of messages with data.
type Way<'a> = (Bench, Operation, &'a str, &'static str, Line);

/// Curves over the size of the data.
fn by_size(
    records: &[Record],
    (unit, y): (Unit, Axis),
    title: &str,
    caption: &'static str,
    ways: &[Way<'_>],
) -> Figure {
    let lines = ways.iter().map(|&(bench, operation, name, colour, line)| {
        let of_way = of_kind(records, bench, operation, unit);
        let with_data = of_way.into_iter().filter(|record| record.label.bytes > 0);
        Across::Bytes.series(name, colour, line, with_data)
    });
    Figure::new(title, [Across::Bytes.axis("size of the data"), y], caption, lines)
}

fn trip_curve(records: &[Record]) -> Figure {
    let trip = Bench::MessageRoundTrip;
    by_size(
        records,
        (Unit::Nanoseconds, TIME),
        "Round trip of a request and its answer",
        "PE 0 sends data, PE 1's handler answers with as much, and both read what has come. Medians.",
        &[
            (trip, Operation::PutSignal, "put_signal", GREY, Line::Broad),
            (trip, Operation::MessageMedium, "medium", BLUE, Line::Solid),
            (trip, Operation::MessageLong, "long", ORANGE, Line::Solid),
        ],
    )
}

fn bandwidth_curve(records: &[Record]) -> Figure {
    let flood = Bench::MessageFlood;
    by_size(
        records,
        (Unit::GigabytesPerSecond, Axis { label: "GB/s", scale: Scale::Decades }),
        "Bandwidth of messages one way",
        "PE 0 sends, PE 1 reads what has come; memcpy copies within the cache of PE 0. Medians.",
        &[
            (flood, Operation::PutMemcpy, "memcpy", GREY, Line::Broad),
            (flood, Operation::MessageMedium, "medium", BLUE, Line::Solid),
            (flood, Operation::MessageLong, "long", ORANGE, Line::Solid),
        ],
    )
}

fn rate_curve(records: &[Record]) -> Figure {
    let (flood, answered) = (Bench::MessageFlood, Bench::MessageFloodAnswered);
    by_size(
        records,
        (RATE, MESSAGES),
        "Rate of messages one way, and answered",
        "Answers are short ones without arguments. Medians.",
        &[
            (flood, Operation::MessageMedium, "medium", BLUE, Line::Solid),
            (answered, Operation::MessageMedium, "medium, answered", BLUE, Line::Dashed),
            (flood, Operation::MessageLong, "long", ORANGE, Line::Solid),
            (answered, Operation::MessageLong, "long, answered", ORANGE, Line::Dashed),
        ],
    )
}

/// A curve over the number of senders.
fn by_senders(records: &[Record], unit: Unit, title: &str, y: &'static str, caption: &'static str) -> Figure {
    let of_unit = of_kind(records, Bench::MessageSenders, Operation::MessageShort, unit);
    let series = Across::Contenders.series("short", GREEN, Line::Solid, of_unit);
    let x = Across::Contenders.axis("PEs that send at the same time");
    Figure::new(title, [x, Axis { label: y, scale: Scale::FromZero }], caption, [series])
}

fn senders_curve(records: &[Record]) -> Figure {
    let title = "Rate of short messages of several PEs to one";
    by_senders(records, RATE, title, MESSAGES.label, "All senders together. Medians.")
}

fn fairness_curve(records: &[Record]) -> Figure {
    let title = "Fairness between the senders";
    let caption = "The rate of the slowest sender, as a part of the fastest one's, at the same time; where \
                   PEs share cores, the scheduler has its part in it. Medians.";
    by_senders(records, Unit::Fairness, title, "slowest / fastest", caption)
}

/// The sizes of the data of `bench am`, in bytes.
pub const BYTES: [usize; 9] = [8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Collective, for two PEs or more: each size in a trial of round trips and in one of floods, then one sender
/// and the poll.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for the data.
pub fn all(world: &World, bytes: &[usize], effort: Effort, sink: Sink<'_>) -> Result<()> {
    let longest = largest(bytes);
    let desk = Desk::new(world, longest)?;
    let meetings = Meetings::new(world, 1)?;
    desk.serve(|traffic| {
        let longest = longest.max(traffic.medium_max);
        let exchange = Exchange::new(world, longest)?;
        let buffers = Buffers::new(world, longest)?;
        let kinds = traffic.kinds(bytes);
        let mut suite = Suite::new(world, effort);
        for of_size in kinds.chunk_by(|a, b| a.bytes() == b.bytes()) {
            add_round_trips(&mut suite, traffic, of_size, &exchange);
        }
        for of_size in kinds.chunk_by(|a, b| a.bytes() == b.bytes()) {
            add_floods(&mut suite, traffic, of_size, &buffers);
        }
        add_senders(&mut suite, traffic, &meetings, 1, effort);
        suite.add([(suite.label(Bench::MessagePoll, Operation::Poll, 0), traffic.polls())]);
        suite.run(sink)
    })
}

/// Collective, for two PEs or more: all but PE 0 send to it.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for a few words.
pub fn senders(world: &World, effort: Effort, sink: Sink<'_>) -> Result<()> {
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

/// Adds a trial with `members` senders at the same time.
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
            let shares = meetings.sample(leader, part, window)?;
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
    use crate::base::record::tests::record;
    use crate::base::suite::tests::{EFFORT, reported};
    use crate::base::topic::tests::{assert_nothing_shown, assert_row, shown};

    fn records() -> Vec<Record> {
        let mut records = Vec::new();
        let mut add = |bench, operation, bytes, unit, median| {
            records.push(record(Label::new(2, bench, operation, bytes), unit, median));
        };
        let (medium, long) = (Operation::MessageMedium, Operation::MessageLong);
        for (operation, bytes, factor) in [
            (Operation::MessageShort, 0, 1.0),
            (long, 8, 4.0),
            (Operation::MessageShort, 64, 2.0),
            (medium, 64, 3.0),
            (medium, 16_000, 8.0),
        ] {
            let (trip, flood) = (Bench::MessageRoundTrip, Bench::MessageFlood);
            add(trip, operation, bytes, Unit::Nanoseconds, 100.0 * factor);
            add(flood, operation, bytes, RATE, 60.0 / factor);
            add(Bench::MessageFloodAnswered, operation, bytes, RATE, 30.0 / factor);
            if bytes > 0 {
                add(flood, operation, bytes, Unit::GigabytesPerSecond, bytes as f64 * 0.06 / factor);
            }
        }
        for bytes in [0, 8, 64, 16_000] {
            add(Bench::MessageRoundTrip, Operation::PutSignal, bytes, Unit::Nanoseconds, 80.0);
        }
        for bytes in [8, 64, 16_000] {
            add(Bench::MessageFlood, Operation::PutMemcpy, bytes, Unit::GigabytesPerSecond, 64.0);
            add(Bench::MessageFlood, Operation::PutMemcpy, bytes, RATE, 1.0);
        }
        add(Bench::MessagePoll, Operation::Poll, 0, Unit::Nanoseconds, 2.0);
        for (senders, rate) in [(1, 20.0), (4, 12.0)] {
            let label = Label::new(senders + 1, Bench::MessageSenders, Operation::MessageShort, 0);
            let label = label.with_contenders(senders);
            records.push(record(label, RATE, rate));
            records.push(Record::of(label, Unit::Fairness, &[0.5, 0.75, 1.0]));
        }
        records
    }

    #[test]
    fn all_kinds_and_their_yardsticks_are_shown() {
        let (tables, page) = shown(&TOPIC, &records(), 5);
        assert_row(&tables, &["short", "no arguments", "50.0", "100", "1000", "80.0", "1.250"]);
        assert_row(&tables, &["short", "16 arguments", "100", "200", "2000", "80.0", "2.500"]);
        assert_row(&tables, &["long", "8 B", "200", "400", "4000", "80.0", "5.000"]);
        assert_row(&tables, &["short", "no arguments", "30.0", "60.0", "600", "30.0"]);
        let medium = ["medium", "64 B", "10.0", "20.0", "200", "10.0", "1.28", "64.0", "0.020"];
        assert_row(&tables, &medium);
        assert_row(&tables, &["4", "6.00", "12.0", "120", "0.500", "0.750", "1.00"]);
        assert_row(&tables, &["poll", "1.00", "2.00", "20.0"]);
        assert!(page.contains("medium, 64 B: 300") && page.contains("medium, answered, 64 B: 10.0"));
        assert!(page.contains("short, 4 PEs: 12.0") && page.contains("short, 4 PEs: 0.750"), "{page}");
        assert_nothing_shown(&TOPIC);
    }

    #[test]
    fn jobs_double_the_senders_up_to_the_most() {
        let jobs = |most| jobs(most).iter().map(|job| (job.pes, job.suite)).collect::<Vec<_>>();
        let (two, senders) = ((2, "am"), "am-senders");
        assert_eq!([jobs(2), jobs(3)], [vec![two], vec![two, (3, senders)]]);
        assert_eq!(jobs(8), [two, (3, senders), (5, senders), (8, senders)]);
    }

    #[test]
    fn every_kind_and_size_is_reported() {
        let (records, progress) = reported(2, |world, sink| all(world, &[8, 64, 32 << 10], EFFORT, sink));
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
