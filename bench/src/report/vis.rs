//! `bench vis`: scattered transfers beside contiguous ones and beside a loop over the blocks. Invariant: all
//! kinds of a direction, for one number and size of blocks, are measured in turn.

use crate::measure::{Bench, Operation, Record};

use super::page::{Across, BLUE, Figure, GREEN, GREY, ORANGE, PURPLE};
use super::table::Table;
use super::text::{find, median, ratio, size, values};
use super::topic::{Job, Topic};
use crate::plot::{Axis, Chart, Line, Scale};

pub const TOPIC: Topic = Topic {
    title: "Scattered transfers",
    jobs: |pes| vec![Job { pes, suite: "vis" }],
    tables: |records| vec![table(records, PUTS, "Puts to PE 1"), table(records, GETS, "Gets from PE 1")],
    figures: |records| vec![curves(records, PUTS, "Puts"), curves(records, GETS, "Gets")],
};

/// Contiguous, strided, indexed, vector, and one transfer for each block.
type Kinds = [Operation; 5];

const PUTS: Kinds = [
    Operation::Put,
    Operation::PutStrided,
    Operation::PutIndexed,
    Operation::PutVector,
    Operation::PutBlocks,
];
const GETS: Kinds = [
    Operation::Get,
    Operation::GetStrided,
    Operation::GetIndexed,
    Operation::GetVector,
    Operation::GetBlocks,
];
const NAMES: [&str; 5] = ["contiguous", "strided", "indexed", "vector", "block by block"];
const COLOURS: [&str; 5] = [GREY, BLUE, GREEN, PURPLE, ORANGE];

fn numbers(records: &[Record]) -> Vec<usize> {
    values(records, |label| label.blocks)
}

fn table(records: &[Record], kinds: Kinds, what: &str) -> Table {
    let title = format!("{what} and quiet, blocks with gaps of their own size; medians, ns (cache)");
    let columns = ["blocks", "each"].into_iter().chain(NAMES);
    let ratios = ["strided / contiguous", "strided / by block"];
    let mut table = Table::new(&title, 0, columns.chain(ratios));
    let sizes = values(records, |label| (label.bench == Bench::Scattered).then_some(label.bytes));
    for bytes in sizes {
        for blocks in numbers(records) {
            let [contiguous, strided, indexed, vector, single] = kinds.map(|operation| {
                find(records, |label| {
                    (label.bench, label.operation, label.bytes, label.blocks)
                        == (Bench::Scattered, operation, bytes, Some(blocks))
                })
            });
            let medians = [contiguous, strided, indexed, vector, single].map(median);
            let ratios = [ratio(strided, contiguous), ratio(strided, single)];
            table.row([blocks.to_string(), size(bytes)].into_iter().chain(medians).chain(ratios));
        }
    }
    table
}

fn curves(records: &[Record], kinds: Kinds, what: &str) -> Figure {
    let most = numbers(records).last().copied();
    let lines = kinds.into_iter().zip(NAMES).zip(COLOURS).map(|((operation, name), colour)| {
        let of_kind = records.iter().filter(move |record| {
            let label = record.label;
            (label.bench, label.operation, label.blocks) == (Bench::Scattered, operation, most)
        });
        let line = if name == NAMES[4] { Line::Dashed } else { Line::Solid };
        Across::Bytes.series(name, colour, line, of_kind)
    });
    Figure {
        chart: Chart {
            title: format!("{what} of {} blocks", most.unwrap_or(0)),
            x: Across::Bytes.axis("size of a block"),
            y: Axis { label: "ns", scale: Scale::Decades },
            series: lines.flatten().collect(),
        },
        caption: "The contiguous one moves the same bytes without gaps. Each ends with a quiet. Medians.",
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::{Label, Unit};

    use super::*;
    use crate::report::text::tests::record;
    use crate::report::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn all_kinds_and_their_ratios_are_shown() {
        let mut records = Vec::new();
        for (bytes, ns) in [(8, 20.0), (512, 400.0)] {
            for blocks in [4, 256] {
                for (operation, factor) in
                    PUTS.into_iter().chain(GETS).zip([1.0, 2.0, 3.0, 3.5, 4.0].repeat(2))
                {
                    let label = Label::new(2, Bench::Scattered, operation, bytes).with_blocks(blocks);
                    records.push(record(label, Unit::Nanoseconds, ns * factor * blocks as f64 / 4.0));
                }
            }
        }
        let (tables, page) = shown(&TOPIC, &records, 2);
        let row = ["4", "8 B", "20.0", "40.0", "60.0", "70.0", "80.0", "2.000", "0.500"];
        assert_row(&tables, &row);
        assert!(tables.contains("Gets from PE 1") && page.contains("Puts of 256 blocks"), "{tables}");
        assert!(page.contains("block by block, 512 B: 102400"), "{page}");
        assert_nothing_shown(&TOPIC);
    }
}
