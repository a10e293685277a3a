//! `bench rate`: messages a second of non-blocking puts. Invariant: the ways of starting them are measured in
//! turn, for each size and window.

use crate::measure::{Bench, Operation, Record, Way};

use super::page::{Across, BLUE, Figure, GREEN, ORANGE, PURPLE};
use super::table::Table;
use super::text::{median, of, size, values};
use super::topic::{Job, Topic};
use crate::plot::{Axis, Chart, Line, Scale};

pub const TOPIC: Topic = Topic {
    title: "Message rate",
    jobs: |pes| vec![Job { pes, suite: "rate" }],
    tables: |records| vec![table(records)],
    figures: |records| vec![by_size(records), by_window(records)],
};

const WAYS: [(Way, &str); 4] = [
    (Way::World, "in a scope"),
    (Way::Handles, "handles"),
    (Way::Context, "one context"),
    (Way::Contexts, "four contexts"),
];
const COLOURS: [&str; 4] = [BLUE, GREEN, ORANGE, PURPLE];
const RATE: Axis = Axis { label: "M/s (10^6 puts a second)", scale: Scale::Decades };

fn rates(records: &[Record], way: Way) -> impl Iterator<Item = &Record> {
    of(records, Bench::Rate, Operation::Put).filter(move |record| record.label.way == Some(way))
}

fn sizes(records: &[Record]) -> Vec<usize> {
    values(records, |label| (label.bench == Bench::Rate).then_some(label.bytes))
}

fn table(records: &[Record]) -> Table {
    let windows = values(records, |label| label.window);
    let names = windows.iter().map(|window| format!("{window} outstanding"));
    let names: Vec<_> = ["size".to_owned(), "started".to_owned()].into_iter().chain(names).collect();
    let title = "Non-blocking puts to PE 1, completed window by window; medians, 10^6 puts a second (cache)";
    let mut table = Table::new(title, 2, names.iter().map(String::as_str));
    for bytes in sizes(records) {
        for (way, name) in WAYS {
            let found = |window: &usize| {
                median(
                    rates(records, way)
                        .find(|record| (record.label.bytes, record.label.window) == (bytes, Some(*window))),
                )
            };
            table.row([size(bytes), name.to_owned()].into_iter().chain(windows.iter().map(found)));
        }
    }
    table
}

fn by_size(records: &[Record]) -> Figure {
    let lines = values(records, |label| label.window).into_iter().zip(COLOURS).map(|(window, colour)| {
        let of_window = rates(records, Way::World).filter(move |record| record.label.window == Some(window));
        Across::Bytes.series(&format!("{window} outstanding"), colour, Line::Solid, of_window)
    });
    Figure {
        chart: Chart {
            title: "Rate of non-blocking puts in a scope".to_owned(),
            x: Across::Bytes.axis("size of a put"),
            y: RATE,
            series: lines.flatten().collect(),
        },
        caption: "To one place after the other in 64 KiB; each window is completed before the next. Medians.",
    }
}

fn by_window(records: &[Record]) -> Figure {
    let least = sizes(records).first().copied();
    let lines = WAYS.into_iter().zip(COLOURS).map(|((way, name), colour)| {
        let of_way = rates(records, way).filter(move |record| Some(record.label.bytes) == least);
        Across::Windows.series(name, colour, Line::Solid, of_way)
    });
    Figure {
        chart: Chart {
            title: "Rate of the smallest puts, by what they are started with".to_owned(),
            x: Across::Windows.axis("puts between two completions"),
            y: RATE,
            series: lines.flatten().collect(),
        },
        caption: "A handle owns its buffer until it is waited for. Four contexts take turns. Medians.",
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::{Label, Unit};

    use super::*;
    use crate::report::text::tests::record;
    use crate::report::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn all_ways_and_windows_are_shown() {
        let mut records = Vec::new();
        for (bytes, millions) in [(8, 400.0), (4096, 20.0)] {
            for (window, factor) in [(1, 0.25), (64, 1.0)] {
                for (way, _) in WAYS {
                    let label = Label::new(2, Bench::Rate, Operation::Put, bytes).with_window(window);
                    let slower = if way == Way::Handles { 0.1 } else { 1.0 };
                    let millions = millions * factor * slower;
                    records.push(record(label.by_way(way), Unit::MillionsPerSecond, millions));
                }
            }
        }
        let (tables, page) = shown(&TOPIC, &records, 2);
        assert_row(&tables, &["8 B", "in a scope", "100", "400"]);
        assert_row(&tables, &["8 B", "handles", "10.0", "40.0"]);
        assert_row(&tables, &["4 KiB", "four contexts", "5.00", "20.0"]);
        assert!(page.contains("handles, 64 outstanding: 40.0"), "{page}");
        assert!(page.contains("64 outstanding, 4 KiB: 20.0"), "{page}");
        assert_nothing_shown(&TOPIC);
    }
}
