//! `bench am`: active messages, by kind and size. Invariant: a yardstick stands in the row of what it was
//! measured in turn with: puts with a signal there and back beside round trips, memcpy beside floods.

use crate::measure::{Bench, Label, Operation, Record, Unit};

use super::page::{Across, BLUE, Figure, GREEN, GREY, ORANGE};
use super::table::Table;
use super::text::{figures, find, median, ratio, size};
use super::topic::{Job, Topic};
use crate::plot::{Axis, Chart, Line, Scale};

pub const TOPIC: Topic = Topic {
    title: "Active messages",
    jobs,
    tables: |records| vec![round_trips(records), floods(records), senders(records), poll(records)],
    figures: |records| {
        let curves = [trip_curve, bandwidth_curve, rate_curve, senders_curve, fairness_curve];
        curves.map(|curve| curve(records)).into()
    },
};

const KINDS: [(Operation, &str); 3] = [
    (Operation::MessageShort, "short"),
    (Operation::MessageMedium, "medium"),
    (Operation::MessageLong, "long"),
];
const RATE: Unit = Unit::MillionsPerSecond;

/// All between two PEs, one of which sends; then 2, 4, 8 senders and so on to one more PE.
fn jobs(most: usize) -> Vec<Job> {
    let senders = most - 1;
    let powers = (1..usize::BITS).map(|power| 1 << power).take_while(|count| *count < senders);
    let more = powers.chain((senders > 1).then_some(senders));
    let more = more.map(|senders| Job { pes: senders + 1, suite: "am-senders" });
    [Job { pes: 2, suite: "am" }].into_iter().chain(more).collect()
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

/// The bytes of a message in words.
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
        ["message", "data", "round trip: min", "median", "max", "put_signal: median", "message / put_signal"],
    );
    for (operation, name) in KINDS {
        for record in of_kind(records, Bench::MessageRoundTrip, operation, Unit::Nanoseconds) {
            let signal = Label { operation: Operation::PutSignal, ..record.label };
            let signal = beside(records, signal, Unit::Nanoseconds);
            let cells = [name.to_owned(), data(record.label)].into_iter().chain(figures(record.summary));
            table.row(cells.chain([median(signal), ratio(Some(record), signal)]));
        }
    }
    table
}

fn floods(records: &[Record]) -> Table {
    let mut table = Table::new(
        "PE 0 sends one after the other until PE 1 has executed all; beside it memcpy (cache of PE 0)",
        2,
        [
            "message",
            "data",
            "one way, M/s: min",
            "median",
            "max",
            "answered, M/s",
            "one way, GB/s",
            "memcpy, GB/s",
            "message / memcpy",
        ],
    );
    for (operation, name) in KINDS {
        for record in of_kind(records, Bench::MessageFlood, operation, RATE) {
            let label = record.label;
            let answered = beside(records, Label { bench: Bench::MessageFloodAnswered, ..label }, RATE);
            let memcpy = Label { operation: Operation::PutMemcpy, ..label };
            let [bandwidth, memcpy] =
                [label, memcpy].map(|label| beside(records, label, Unit::GigabytesPerSecond));
            let cells = [name.to_owned(), data(label)].into_iter().chain(figures(record.summary));
            let medians = [answered, bandwidth, memcpy].map(median);
            table.row(cells.chain(medians).chain([ratio(bandwidth, memcpy)]));
        }
    }
    table
}

fn senders(records: &[Record]) -> Table {
    let mut table = Table::new(
        "Short messages of several PEs at once to PE 0, which executes them; rate of all together",
        0,
        ["senders", "M/s: min", "median", "max", "slowest / fastest: min", "median", "max"],
    );
    for rate in of_kind(records, Bench::MessageSenders, Operation::MessageShort, RATE) {
        let fairness = beside(records, rate.label, Unit::Fairness);
        let fairness = fairness.map_or_else(Default::default, |record| figures(record.summary));
        let count = rate.label.contenders.unwrap_or(1).to_string();
        table.row([count].into_iter().chain(figures(rate.summary)).chain(fairness));
    }
    table
}

fn poll(records: &[Record]) -> Table {
    let mut table = Table::new("A poll that finds nothing, ns", 1, ["operation", "min", "median", "max"]);
    if let Some(poll) = find(records, |label| label.bench == Bench::MessagePoll) {
        table.row(["poll".to_owned()].into_iter().chain(figures(poll.summary)));
    }
    table
}

/// A line of the records of a kind that have data.
type Way<'a> = (Bench, Operation, &'a str, &'static str, Line);

/// Curves over the size of the data.
fn by_size(records: &[Record], unit: Unit, title: &str, caption: &'static str, ways: &[Way<'_>]) -> Figure {
    let lines = ways.iter().map(|&(bench, operation, name, colour, line)| {
        let of_way = of_kind(records, bench, operation, unit);
        let with_data = of_way.into_iter().filter(|record| record.label.bytes > 0);
        Across::Bytes.series(name, colour, line, with_data)
    });
    let label = match unit {
        Unit::GigabytesPerSecond => "GB/s",
        Unit::MillionsPerSecond => "M/s (10^6 messages a second)",
        Unit::Nanoseconds | Unit::Fairness => "ns",
    };
    Figure {
        chart: Chart {
            title: title.to_owned(),
            x: Across::Bytes.axis("size of the data"),
            y: Axis { label, scale: Scale::Decades },
            series: lines.flatten().collect(),
        },
        caption,
    }
}

fn trip_curve(records: &[Record]) -> Figure {
    let trip = Bench::MessageRoundTrip;
    by_size(
        records,
        Unit::Nanoseconds,
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
        Unit::GigabytesPerSecond,
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
        RATE,
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
    let series = Across::Contenders.series("short", GREEN, Line::Solid, of_unit.into_iter());
    Figure {
        chart: Chart {
            title: title.to_owned(),
            x: Across::Contenders.axis("PEs that send at the same time"),
            y: Axis { label: y, scale: Scale::FromZero },
            series: series.into_iter().collect(),
        },
        caption,
    }
}

fn senders_curve(records: &[Record]) -> Figure {
    let title = "Rate of short messages of several PEs to one";
    by_senders(records, RATE, title, "M/s (10^6 messages a second)", "All senders together. Medians.")
}

fn fairness_curve(records: &[Record]) -> Figure {
    let title = "Fairness between the senders";
    let caption = "The rate of the slowest sender, as a part of the fastest one's, at the same time; where \
                   PEs share cores, the scheduler has its part in it. Medians.";
    by_senders(records, Unit::Fairness, title, "slowest / fastest", caption)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::text::tests::record;
    use crate::report::topic::tests::{assert_nothing_shown, assert_row, shown};

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
}
