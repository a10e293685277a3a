//! `bench coll`: collective operations of all PEs of a job. Invariant: figures of different numbers of PEs
//! stand in tables and charts of their own.

use crate::measure::{Bench, Operation, Record};

use super::page::{Across, BLUE, Figure, GREEN, ORANGE, PURPLE};
use super::table::{Table, figure};
use super::text::{find, of, size, values};
use super::topic::{Job, Topic};
use crate::plot::{Axis, Chart, Line, Scale};

pub const TOPIC: Topic = Topic { title: "Collective operations", jobs, tables, figures };

/// What moves data, with the names of its curves.
const MOVING: [(Operation, &str); 5] = [
    (Operation::Broadcast, "broadcast"),
    (Operation::Scatter, "scatter"),
    (Operation::Gather, "gather"),
    (Operation::AllGather, "all_gather"),
    (Operation::AllToAll, "all_to_all"),
];
/// What combines data.
const COMBINING: [(Operation, &str); 5] = [
    (Operation::Reduce, "reduce"),
    (Operation::AllReduce, "all_reduce"),
    (Operation::ReduceScatter, "reduce_scatter"),
    (Operation::InclusiveScan, "inclusive_scan"),
    (Operation::ExclusiveScan, "exclusive_scan"),
];

/// The powers of two from 2 on, and `most`.
fn jobs(most: usize) -> Vec<Job> {
    let powers = (1..usize::BITS).map(|power| 1 << power).take_while(|pes| *pes < most);
    powers.chain([most]).map(|pes| Job { pes, suite: "coll" }).collect()
}

/// The records of one number of PEs.
fn by_pes(records: &[Record]) -> impl Iterator<Item = (usize, Vec<Record>)> {
    let of_pes = |pes| records.iter().filter(move |record| record.label.pes == pes).cloned().collect();
    values(records, |label| Some(label.pes)).into_iter().map(move |pes| (pes, of_pes(pes)))
}

fn tables(records: &[Record]) -> Vec<Table> {
    by_pes(records).map(|(pes, records)| table(pes, &records)).collect()
}

/// A row for each operation, a column for each size.
fn table(pes: usize, records: &[Record]) -> Table {
    let barrier = find(records, |label| label.operation == Operation::Barrier);
    let barrier = barrier.map(|record| format!("; barrier: {}", figure(record.summary.median)));
    let title =
        format!("{pes} PEs, ns an operation (doubles, their sum), medians{}", barrier.unwrap_or_default());
    let sizes = values(records, |label| (label.bytes > 0).then_some(label.bytes));
    let names: Vec<_> = sizes.iter().map(|bytes| size(*bytes)).collect();
    let mut table = Table::new(&title, 1, ["block"].into_iter().chain(names.iter().map(String::as_str)));
    for (operation, name) in MOVING.into_iter().chain(COMBINING) {
        let cell = |bytes: &usize| {
            let record = find(records, |label| (label.operation, label.bytes) == (operation, *bytes));
            record.map(|record| figure(record.summary.median))
        };
        let cells: Vec<_> = sizes.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            table.row([name.to_owned()].into_iter().chain(cells.into_iter().map(Option::unwrap_or_default)));
        }
    }
    table
}

fn figures(records: &[Record]) -> Vec<Figure> {
    let of_pes = |(pes, records): (usize, Vec<Record>)| {
        [curves(pes, &records, "moving data", MOVING), curves(pes, &records, "combining data", COMBINING)]
    };
    by_pes(records).flat_map(of_pes).collect()
}

fn curves(pes: usize, records: &[Record], what: &str, operations: [(Operation, &str); 5]) -> Figure {
    let solid = [BLUE, ORANGE, GREEN, PURPLE].map(|colour| (colour, Line::Solid));
    let styles = solid.into_iter().chain([(BLUE, Line::Dashed)]);
    let lines = operations.into_iter().zip(styles).filter_map(|((operation, name), (colour, line))| {
        Across::Bytes.series(name, colour, line, of(records, Bench::Collective, operation))
    });
    Figure {
        chart: Chart {
            title: format!("{pes} PEs {what}"),
            x: Across::Bytes.axis("size of a block"),
            y: Axis { label: "ns", scale: Scale::Decades },
            series: lines.collect(),
        },
        caption: "Time of an operation, every PE being the root in turn. Medians of blocks, each as long as \
                  its slowest PE.",
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::{Label, Unit};

    use super::*;
    use crate::report::text::tests::record;
    use crate::report::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn operations_are_rows_and_sizes_columns() {
        let mut records = Vec::new();
        for (pes, ns) in [(2, 100.0), (4, 2000.0)] {
            let mut add = |operation, bytes: usize, ns| {
                let label = Label::new(pes, Bench::Collective, operation, bytes);
                records.push(record(label, Unit::Nanoseconds, ns));
            };
            add(Operation::Barrier, 0, ns);
            for bytes in [8, 65_536] {
                add(Operation::Broadcast, bytes, ns * bytes as f64);
                add(Operation::ExclusiveScan, bytes, ns * 2.0);
            }
        }
        let (tables, page) = shown(&TOPIC, &records, 4);
        assert_row(&tables, &["block", "8 B", "64 KiB"]);
        assert_row(&tables, &["broadcast", "800", "6553600"]);
        assert_row(&tables, &["exclusive_scan", "4000", "4000"]);
        assert!(tables.contains("2 PEs, ns") && tables.contains("barrier: 2000"), "{tables}");
        assert!(page.contains("4 PEs moving data") && page.contains("broadcast, 8 B: 16000"));
        assert_nothing_shown(&TOPIC);
    }

    #[test]
    fn jobs_are_doublings_up_to_the_most() {
        let pes = |most| jobs(most).iter().map(|job| job.pes).collect::<Vec<_>>();
        assert_eq!((pes(2), pes(4), pes(6)), (vec![2], vec![2, 4], vec![2, 4, 6]));
    }
}
