//! `bench threads`: threads of one PE that put and add at the same time. Invariant: a rate of several threads
//! stands beside its ratio to that of one.

use crate::measure::{Bench, Operation, Place, Record, Way};

use super::page::{Across, BLUE, Figure, GREEN, ORANGE};
use super::table::Table;
use super::text::{find, median, ratio, values};
use super::topic::{Job, Topic};
use crate::plot::{Axis, Chart, Line, Scale};

pub const TOPIC: Topic = Topic {
    title: "Threads of a PE",
    jobs: |pes| vec![Job { pes, suite: "threads" }],
    tables: |records| vec![table(records)],
    figures: |records| vec![curve(records)],
};

/// What the threads do: operation and words, both in words, then both in short, and a colour.
const TASKS: [(Operation, Place, [&str; 3], &str); 3] = [
    (Operation::PutIssue, Place::WordEach, ["p", "one each", "p, own words"], BLUE),
    (Operation::FetchAdd, Place::WordEach, ["fetch_add", "one each", "add, own words"], GREEN),
    (Operation::FetchAdd, Place::OneWord, ["fetch_add", "one for all", "add, one word"], ORANGE),
];
const WAYS: [(Way, &str, Line); 2] =
    [(Way::World, "the world", Line::Solid), (Way::Contexts, "a context each", Line::Dashed)];

fn is_task(record: &Record, operation: Operation, place: Place, way: Way) -> bool {
    let label = record.label;
    (label.bench, label.operation, label.place, label.way)
        == (Bench::Threads, operation, Some(place), Some(way))
}

fn table(records: &[Record]) -> Table {
    let threads = values(records, |label| label.threads);
    let names = threads.iter().flat_map(|threads| match threads {
        1 => vec!["1 thread: min".to_owned(), "median".to_owned(), "max".to_owned()],
        _ => vec![format!("{threads} threads"), "of one".to_owned()],
    });
    let words = ["operation", "words", "through"].map(str::to_owned).into_iter();
    let names: Vec<_> = words.chain(names).collect();
    let title = "Threads of PE 0 at the same time on words of 8 bytes of PE 1: 10^6 a second in all, medians";
    let mut table = Table::new(title, 3, names.iter().map(String::as_str));
    for (operation, place, words, _) in TASKS {
        for (way, through, _) in WAYS {
            let found = |threads| {
                let of_task: Vec<_> =
                    records.iter().filter(|record| is_task(record, operation, place, way)).collect();
                of_task.into_iter().find(|record| record.label.threads == Some(threads))
            };
            let cells = threads.iter().flat_map(|&threads| match (threads, found(threads)) {
                (1, Some(one)) => super::text::figures(one.summary).to_vec(),
                (1, None) => vec![String::new(); 3],
                (_, several) => vec![median(several), ratio(several, found(1))],
            });
            if find(records, |label| label.bench == Bench::Threads).is_some() {
                let words = [words[0], words[1], through].map(str::to_owned).into_iter();
                table.row(words.chain(cells));
            }
        }
    }
    table
}

fn curve(records: &[Record]) -> Figure {
    let lines = TASKS.into_iter().flat_map(|(operation, place, [_, _, name], colour)| {
        WAYS.map(|(way, _, line)| {
            let of_task = records.iter().filter(move |record| is_task(record, operation, place, way));
            let ending = if way == Way::World { "" } else { " (contexts)" };
            Across::Threads.series(&format!("{name}{ending}"), colour, line, of_task)
        })
    });
    Figure {
        chart: Chart {
            title: "Rate of the threads of a PE together".to_owned(),
            x: Across::Threads.axis("threads"),
            y: Axis { label: "M/s (10^6 operations a second)", scale: Scale::Decades },
            series: lines.flatten().collect(),
        },
        caption: "Words of 8 bytes in PE 1's memory, one for each thread or one for all; through the world, \
                  or through a context for each thread. PE 1 sleeps. Medians.",
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::{Label, Unit};

    use super::*;
    use crate::report::text::tests::record;
    use crate::report::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn all_tasks_are_shown_with_their_ratios() {
        let mut records = Vec::new();
        for (operation, place, _, _) in TASKS {
            for (way, _, _) in WAYS {
                for (threads, factor) in [(1, 1.0), (2, 1.9), (4, 1.5)] {
                    let label = Label::new(2, Bench::Threads, operation, 8).in_place(place).by_way(way);
                    let millions = if operation == Operation::PutIssue { 3000.0 } else { 200.0 } * factor;
                    records.push(record(label.with_threads(threads), Unit::MillionsPerSecond, millions));
                }
            }
        }
        let (tables, page) = shown(&TOPIC, &records, 1);
        let row = ["p", "one each", "the world", "1500", "3000", "30000", "5700", "1.900", "4500", "1.500"];
        assert_row(&tables, &row);
        let row = [
            "fetch_add",
            "one for all",
            "a context each",
            "100",
            "200",
            "2000",
            "380",
            "1.900",
            "300",
            "1.500",
        ];
        assert_row(&tables, &row);
        assert!(page.contains("add, one word (contexts), 4 threads: 300"), "{page}");
        assert_nothing_shown(&TOPIC);
    }
}
