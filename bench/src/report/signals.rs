//! `bench signals`: a put with a signal beside a put, a fence and a flag. Invariant: both kinds of a size are
//! measured in turn.

use crate::measure::{Bench, Operation, Record};

use super::page::{Across, BLUE, Figure, ORANGE};
use super::table::Table;
use super::text::{figures, of, ratio, size};
use super::topic::{Job, Topic};
use crate::plot::{Axis, Chart, Line, Scale};

pub const TOPIC: Topic = Topic {
    title: "Signals",
    jobs: |pes| vec![Job { pes, suite: "signals" }],
    tables: |records| vec![table(records)],
    figures: |records| vec![curve(records)],
};

fn table(records: &[Record]) -> Table {
    let mut table = Table::new(
        "PEs 0 and 1 send each other data in turn and read what has come; one way, ns",
        1,
        [
            "data",
            "put_signal: min",
            "median",
            "max",
            "put, fence, flag: min",
            "median",
            "max",
            "signal / flag",
        ],
    );
    let mut signals: Vec<_> = of(records, Bench::Signal, Operation::PutSignal).collect();
    signals.sort_by_key(|record| record.label.bytes);
    for signal in signals {
        let bytes = signal.label.bytes;
        let flag = of(records, Bench::Signal, Operation::PutFlag).find(|flag| flag.label.bytes == bytes);
        if let Some(flag) = flag {
            let name = if bytes == 0 { "none".to_owned() } else { size(bytes) };
            let cells = figures(signal.summary).into_iter().chain(figures(flag.summary));
            table.row([name].into_iter().chain(cells).chain([ratio(Some(signal), Some(flag))]));
        }
    }
    table
}

fn curve(records: &[Record]) -> Figure {
    let ways = [
        (Operation::PutFlag, "put, fence, flag", ORANGE, Line::Dashed),
        (Operation::PutSignal, "put_signal", BLUE, Line::Solid),
    ];
    one_way_curve(records, Bench::Signal, "One-way time of data and the word that says so", &ways)
}

/// What it takes to send data one way, against their size: a line for each way to say that they have come.
pub fn one_way_curve(
    records: &[Record],
    bench: Bench,
    title: &str,
    ways: &[(Operation, &str, &'static str, Line)],
) -> Figure {
    let lines = ways.iter().map(|&(operation, name, colour, line)| {
        let with_data = of(records, bench, operation).filter(|record| record.label.bytes > 0);
        Across::Bytes.series(name, colour, line, with_data)
    });
    Figure {
        chart: Chart {
            title: title.to_owned(),
            x: Across::Bytes.axis("size of the data"),
            y: Axis { label: "ns", scale: Scale::Decades },
            series: lines.flatten().collect(),
        },
        caption: "Half a round trip between PEs 0 and 1, both of which read what has come. Medians.",
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::{Label, Unit};

    use super::*;
    use crate::report::text::tests::record;
    use crate::report::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn both_kinds_and_their_ratio_are_shown() {
        let mut records = Vec::new();
        for (operation, factor) in [(Operation::PutFlag, 1.0), (Operation::PutSignal, 0.5)] {
            for (bytes, ns) in [(0, 50.0), (8, 60.0), (65_536, 5000.0)] {
                let label = Label::new(2, Bench::Signal, operation, bytes);
                records.push(record(label, Unit::Nanoseconds, ns * factor));
            }
        }
        let (tables, page) = shown(&TOPIC, &records, 1);
        assert_row(&tables, &["none", "12.5", "25.0", "250", "25.0", "50.0", "500", "0.500"]);
        assert_row(&tables, &["64 KiB", "1250", "2500", "25000", "2500", "5000", "50000", "0.500"]);
        assert!(page.contains("put_signal, 8 B: 30.0 (from 15.0 to 300)"));
        assert_nothing_shown(&TOPIC);
    }
}
