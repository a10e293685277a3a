//! `bench atomics`: latency and rate of atomics, alone and contended. Invariant: beside one word for all
//! stands a word for each, measured in turn. The curve is that of figure 6 of "Message Passing Toolkit (MPT)
//! Software on XT3": latency of a fetch-and-add against the number of PEs that do it.

use crate::measure::{Bench, Operation, Place, Record, Unit};

use super::page::{Across, BLUE, Figure, GREY, ORANGE};
use super::table::Table;
use super::text::{figures, find, median, ratio, values};
use super::topic::{Job, Topic};
use crate::plot::{Axis, Chart, Line, Scale};

pub const TOPIC: Topic = Topic {
    title: "Atomic operations",
    jobs,
    tables: |records| vec![alone(records), contention(records)],
    figures: |records| vec![latency_curve(records), rate_curve(records)],
};

const OPERATIONS: [(Operation, &str); 6] = [
    (Operation::FetchAdd, "fetch_add"),
    (Operation::Add, "add"),
    (Operation::FetchInc, "fetch_inc"),
    (Operation::CompareSwap, "compare_swap"),
    (Operation::Swap, "swap"),
    (Operation::AtomicFetch, "atomic_fetch"),
];

/// One and two PEs are measured in the job of two; then the powers of two, and `most`.
fn jobs(most: usize) -> Vec<Job> {
    let powers = (2..usize::BITS).map(|power| 1 << power).take_while(|pes| *pes < most);
    let more = powers.chain((most > 2).then_some(most)).map(|pes| Job { pes, suite: "contention" });
    [Job { pes: 2, suite: "atomics" }].into_iter().chain(more).collect()
}

fn alone(records: &[Record]) -> Table {
    let mut table = Table::new(
        "Atomics of PE 0 alone: latency, each after the last (add: with quiet), and rate (cache of PE 0)",
        2,
        [
            "operation",
            "type",
            "own, ns: min",
            "median",
            "max",
            "PE 1's, ns: min",
            "median",
            "max",
            "own, M/s",
            "PE 1's, M/s",
        ],
    );
    for (operation, name) in OPERATIONS {
        for (bytes, type_name) in [(4, "u32"), (8, "u64")] {
            let found = |bench, place| {
                find(records, |label| {
                    (label.bench, label.operation, label.bytes, label.place)
                        == (bench, operation, bytes, Some(place))
                })
            };
            let latencies = [Place::Own, Place::Other].map(|place| found(Bench::AtomicLatency, place));
            let rates = [Place::Own, Place::Other].map(|place| median(found(Bench::AtomicRate, place)));
            if let [Some(own), Some(other)] = latencies {
                let words = [name, type_name].map(str::to_owned).into_iter();
                table.row(words.chain(figures(own.summary)).chain(figures(other.summary)).chain(rates));
            }
        }
    }
    table
}

/// The record of so many PEs.
fn contended(records: &[Record], contenders: usize, place: Place, unit: Unit) -> Option<&Record> {
    of_unit(records, place, unit).find(|record| record.label.contenders == Some(contenders))
}

fn of_unit(records: &[Record], place: Place, unit: Unit) -> impl Iterator<Item = &Record> {
    let fetch_adds = super::text::of(records, Bench::Contention, Operation::FetchAdd);
    fetch_adds.filter(move |record| (record.label.place, record.unit) == (Some(place), unit))
}

fn contention(records: &[Record]) -> Table {
    let mut table = Table::new(
        "fetch_add by several PEs at once in PE 0's memory: latency that each PE sees, rate of all together",
        0,
        [
            "PEs",
            "one word, ns: min",
            "median",
            "max",
            "a word each, ns: median",
            "one / each",
            "one word, M/s",
            "a word each, M/s",
        ],
    );
    for contenders in values(records, |label| label.contenders) {
        let found = |place, unit| contended(records, contenders, place, unit);
        let (nanoseconds, millions) = (Unit::Nanoseconds, Unit::MillionsPerSecond);
        let each = found(Place::WordEach, nanoseconds);
        if let Some(one) = found(Place::OneWord, nanoseconds) {
            let rates = [Place::OneWord, Place::WordEach].map(|place| median(found(place, millions)));
            let cells = [median(each), ratio(Some(one), each)].into_iter().chain(rates);
            table.row([contenders.to_string()].into_iter().chain(figures(one.summary)).chain(cells));
        }
    }
    table
}

fn curve(records: &[Record], title: &str, label: &'static str, unit: Unit) -> Chart {
    let line = |name, colour, line, place| {
        Across::Contenders.series(name, colour, line, of_unit(records, place, unit))
    };
    let lines = [
        line("a word each", GREY, Line::Broad, Place::WordEach),
        line("one word", if unit == Unit::Nanoseconds { BLUE } else { ORANGE }, Line::Solid, Place::OneWord),
    ];
    Chart {
        title: title.to_owned(),
        x: Across::Contenders.axis("PEs that add at the same time"),
        y: Axis { label, scale: Scale::FromZero },
        series: lines.into_iter().flatten().collect(),
    }
}

fn latency_curve(records: &[Record]) -> Figure {
    Figure {
        chart: curve(records, "Latency of fetch_add as a function of PEs", "ns", Unit::Nanoseconds),
        caption: "As each PE sees it, while all of them add; where PEs share cores, the time without a core \
                  included. One word for all, and beside it, block by block, a word each on cache lines of \
                  their own. Medians.",
    }
}

fn rate_curve(records: &[Record]) -> Figure {
    let label = "M/s (10^6 a second)";
    Figure {
        chart: curve(records, "Rate of fetch_add of all PEs together", label, Unit::MillionsPerSecond),
        caption: "The sum of the rates of all PEs. Medians.",
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::Label;

    use super::*;
    use crate::report::text::tests::record;
    use crate::report::topic::tests::{assert_nothing_shown, assert_row, shown};

    fn records() -> Vec<Record> {
        let mut records = Vec::new();
        for (place, factor) in [(Place::Own, 1.0), (Place::Other, 2.0)] {
            for (operation, bytes, ns) in [(Operation::FetchAdd, 8, 5.0), (Operation::Add, 4, 6.0)] {
                let label = |bench| Label::new(2, bench, operation, bytes).in_place(place);
                records.push(record(label(Bench::AtomicLatency), Unit::Nanoseconds, ns * factor));
                records.push(record(label(Bench::AtomicRate), Unit::MillionsPerSecond, 1e3 / ns / factor));
            }
            for (contenders, ns) in [(1, 5.0), (2, 60.0), (4, 120.0)] {
                let place = if place == Place::Own { Place::WordEach } else { Place::OneWord };
                let label = Label::new(contenders.max(2), Bench::Contention, Operation::FetchAdd, 8);
                let label = label.with_contenders(contenders).in_place(place);
                records.push(record(label, Unit::Nanoseconds, ns * factor));
                let rate = contenders as f64 * 1e3 / ns / factor;
                records.push(record(label, Unit::MillionsPerSecond, rate));
            }
        }
        records
    }

    #[test]
    fn jobs_double_up_to_the_most() {
        let jobs = |most| jobs(most).iter().map(|job| job.pes).collect::<Vec<_>>();
        assert_eq!([jobs(2), jobs(3), jobs(4)], [vec![2], vec![2, 3], vec![2, 4]]);
        assert_eq!([jobs(12), jobs(16)], [vec![2, 4, 8, 12], vec![2, 4, 8, 16]]);
        let suites: Vec<_> = self::jobs(4).iter().map(|job| job.suite).collect();
        assert_eq!(suites, ["atomics", "contention"]);
    }

    #[test]
    fn alone_and_contended_atomics_are_shown() {
        let (tables, page) = shown(&TOPIC, &records(), 2);
        assert_row(
            &tables,
            &["fetch_add", "u64", "2.50", "5.00", "50.0", "5.00", "10.0", "100", "200", "100"],
        );
        assert_row(&tables, &["add", "u32", "3.00", "6.00", "60.0", "6.00", "12.0", "120", "167", "83.3"]);
        assert_row(&tables, &["4", "120", "240", "2400", "120", "2.000", "16.7", "33.3"]);
        assert!(page.contains("one word, 4 PEs: 240 (from 120 to 2400)"));
    }

    #[test]
    fn without_records_nothing_is_shown() {
        assert_nothing_shown(&TOPIC);
    }
}
