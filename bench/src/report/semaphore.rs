//! `bench semaphore`: what a post and its wait take, by the kind of the semaphore, and a put that posts
//! beside a put with a signal and a put, a fence and a flag. Invariant: what stands in one row or table was
//! measured in turn.

use crate::measure::{Bench, Operation, Record};

use super::page::{BLUE, Figure, GREEN, ORANGE};
use super::signals::one_way_curve;
use super::table::Table;
use super::text::{figures, find, of, ratio, size};
use super::topic::{Job, Topic};
use crate::plot::Line;

pub const TOPIC: Topic = Topic {
    title: "Semaphores",
    jobs: |pes| vec![Job { pes, suite: "semaphores" }],
    tables: |records| vec![kinds(records), puts(records)],
    figures: |records| vec![curve(records)],
};

const KINDS: [(Operation, &str); 4] = [
    (Operation::PostOneToOne, "integer, 1 producer, 1 consumer"),
    (Operation::PostManyToOne, "integer, many producers, 1 consumer"),
    (Operation::PostManyToMany, "integer, many of both"),
    (Operation::PostFlag, "boolean, many of both"),
];

fn kinds(records: &[Record]) -> Table {
    let mut table = Table::new(
        "PEs 0 and 1 post and wait in turn (a round trip has two of each), and one posts, the other waits",
        1,
        ["semaphore", "round trip, ns: min", "median", "max", "one way, M/s: min", "median", "max"],
    );
    for (operation, name) in KINDS {
        let Some(trip) = of(records, Bench::SemaphoreRoundTrip, operation).next() else { continue };
        let rate = of(records, Bench::SemaphoreRate, operation).next();
        let rate = rate.map_or_else(Default::default, |rate| figures(rate.summary));
        table.row([name.to_owned()].into_iter().chain(figures(trip.summary)).chain(rate));
    }
    table
}

fn puts(records: &[Record]) -> Table {
    let mut table = Table::new(
        "PEs 0 and 1 send each other data in turn and read what has come; one way, ns",
        1,
        [
            "data",
            "memput_signal: min",
            "median",
            "max",
            "put_signal: median",
            "put, fence, flag: median",
            "memput_signal / put_signal",
            "/ flag",
        ],
    );
    let mut ours: Vec<_> = of(records, Bench::MemputSignal, Operation::MemputSignal).collect();
    ours.sort_by_key(|record| record.label.bytes);
    for record in ours {
        let beside = |operation| {
            let label = crate::measure::Label { operation, ..record.label };
            find(records, |found| *found == label)
        };
        let (signal, flag) = (beside(Operation::PutSignal), beside(Operation::PutFlag));
        let medians = [signal, flag].map(super::text::median);
        let ratios = [signal, flag].map(|other| ratio(Some(record), other));
        let cells = [size(record.label.bytes)].into_iter().chain(figures(record.summary));
        table.row(cells.chain(medians).chain(ratios));
    }
    table
}

fn curve(records: &[Record]) -> Figure {
    let ways = [
        (Operation::PutFlag, "put, fence, flag", ORANGE, Line::Dashed),
        (Operation::PutSignal, "put_signal", GREEN, Line::Solid),
        (Operation::MemputSignal, "memput_signal", BLUE, Line::Solid),
    ];
    let title = "One-way time of data and what says that they have come";
    one_way_curve(records, Bench::MemputSignal, title, &ways)
}

#[cfg(test)]
mod tests {
    use crate::measure::{Label, Unit};

    use super::*;
    use crate::report::text::tests::record;
    use crate::report::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn kinds_and_ways_are_shown() {
        let mut records = Vec::new();
        let mut add = |bench, operation, bytes, unit, median| {
            records.push(record(Label::new(2, bench, operation, bytes), unit, median));
        };
        for (operation, _) in KINDS {
            add(Bench::SemaphoreRoundTrip, operation, 0, Unit::Nanoseconds, 200.0);
        }
        add(Bench::SemaphoreRate, Operation::PostManyToOne, 0, Unit::MillionsPerSecond, 20.0);
        let ways =
            [(Operation::MemputSignal, 50.0), (Operation::PutSignal, 40.0), (Operation::PutFlag, 100.0)];
        for (operation, ns) in ways {
            add(Bench::MemputSignal, operation, 8, Unit::Nanoseconds, ns);
            add(Bench::MemputSignal, operation, 65_536, Unit::Nanoseconds, 100.0 * ns);
        }
        let (tables, page) = shown(&TOPIC, &records, 1);
        let many_to_one =
            ["integer, many producers, 1 consumer", "100", "200", "2000", "10.0", "20.0", "200"];
        assert_row(&tables, &many_to_one);
        assert_row(&tables, &["boolean, many of both", "100", "200", "2000"]);
        assert_row(&tables, &["8 B", "25.0", "50.0", "500", "40.0", "100", "1.250", "0.500"]);
        assert!(page.contains("memput_signal, 8 B: 50.0 (from 25.0 to 500)"));
        assert_nothing_shown(&TOPIC);
    }
}
