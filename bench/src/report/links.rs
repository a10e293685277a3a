//! `bench links`: the bandwidth of PE 0 to one PE, and to several that may each be behind a link of their
//! own. Invariant: what a table's row compares was measured in turn.

use crate::measure::{Bench, Operation, Record};

use super::page::{Across, BANDWIDTH, BLUE, Figure, GREEN, ORANGE, PURPLE};
use super::table::Table;
use super::text::{median, of, size, values};
use super::topic::{Job, Topic};
use crate::plot::{Chart, Line};

pub const TOPIC: Topic = Topic {
    title: "Several links at once",
    jobs: |pes| vec![Job { pes, suite: "links" }],
    tables: |records| vec![table(records)],
    figures: |records| vec![curves(records)],
};

const COLOURS: [&str; 4] = [BLUE, GREEN, ORANGE, PURPLE];

fn floods(records: &[Record], links: usize) -> impl Iterator<Item = &Record> {
    of(records, Bench::Flood, Operation::Put).filter(move |record| record.label.links == Some(links))
}

fn numbers(records: &[Record]) -> Vec<usize> {
    values(records, |label| label.links)
}

fn name(links: usize) -> String {
    format!("{links} {}", if links == 1 { "PE" } else { "PEs" })
}

fn table(records: &[Record]) -> Table {
    let numbers = numbers(records);
    let names: Vec<_> = std::iter::once("size".to_owned()).chain(numbers.iter().map(|&n| name(n))).collect();
    let title = "Floods of puts from PE 0 to so many PEs in turn, completed window by window; medians, GB/s";
    let mut table = Table::new(title, 1, names.iter().map(String::as_str));
    for bytes in values(records, |label| label.links.map(|_| label.bytes)) {
        let found =
            |links: &usize| median(floods(records, *links).find(|record| record.label.bytes == bytes));
        table.row(std::iter::once(size(bytes)).chain(numbers.iter().map(found)));
    }
    table
}

fn curves(records: &[Record]) -> Figure {
    let lines = numbers(records).into_iter().zip(COLOURS).map(|(links, colour)| {
        Across::Bytes.series(&name(links), colour, Line::Solid, floods(records, links))
    });
    Figure {
        chart: Chart {
            title: "Bandwidth of puts to several PEs".to_owned(),
            x: Across::Bytes.axis("size of a put"),
            y: BANDWIDTH,
            series: lines.flatten().collect(),
        },
        caption: "Eight puts to each in a window, which is complete before the next. Medians.",
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::{Label, Unit};

    use super::*;
    use crate::report::text::tests::record;
    use crate::report::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn all_numbers_of_links_are_shown() {
        let mut records = Vec::new();
        for bytes in [512, 2 << 20] {
            for links in [1, 4] {
                let label = Label::new(5, Bench::Flood, Operation::Put, bytes).with_window(8 * links);
                let value = 0.25 * links as f64;
                records.push(record(label.with_links(links), Unit::GigabytesPerSecond, value));
            }
        }
        let (tables, page) = shown(&TOPIC, &records, 1);
        assert_row(&tables, &["512 B", "0.250", "1.00"]);
        assert_row(&tables, &["2 MiB", "0.250", "1.00"]);
        assert!(page.contains("4 PEs, 2 MiB: 1.00"), "{page}");
        assert_nothing_shown(&TOPIC);
    }
}
