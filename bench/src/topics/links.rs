//! `bench links`: several links at once. PE 0 sends floods of puts to PE 1, or to more PEs in turn, which may
//! be on separate links. Invariant: a window has the same number of puts for each target and is complete
//! before the next; for each size, all numbers of links are measured in turn.
//!
//! Source: the multi-link bandwidth of M. Luo et al., Early Evaluation of Scalable Fabric Interface for PGAS
//! Programming Models.

use crate::base::prelude::*;

pub const TOPIC: Topic = Topic {
    title: "Several links at once",
    jobs: |pes| vec![Job { pes, suite: "links" }],
    tables: |records| vec![table(records)],
    figures: |records| vec![curves(records)],
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench links -n 5 --fabric ofi   PE 0 to 1, 2 and 4 other PEs, over libfabric
  pelago bench links --html l.html       the curves as well";

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
    let names: String = numbers.iter().map(|&links| format!("|{}", name(links))).collect();
    let title = "Floods of puts from PE 0 to so many PEs in turn, completed window by window; medians, GB/s";
    let mut table = Table::new(title, 1, &format!("size{names}"));
    for bytes in values(records, |label| label.links.map(|_| label.bytes)) {
        let found = |&links: &usize| floods(records, links).find(|record| record.label.bytes == bytes);
        table.row((size(bytes), numbers.iter().map(found).collect::<Vec<_>>()));
    }
    table
}

fn curves(records: &[Record]) -> Figure {
    let lines = numbers(records).into_iter().zip(COLOURS).map(|(links, colour)| {
        Across::Bytes.series(&name(links), colour, Line::Solid, floods(records, links))
    });
    Figure::new(
        "Bandwidth of puts to several PEs",
        [Across::Bytes.axis("size of a put"), BANDWIDTH],
        "Eight puts to each in a window, which is complete before the next. Medians.",
        lines,
    )
}

/// The number of puts to each target between two completions.
const PUTS_EACH: usize = 8;
/// The numbers of links, limited by the number of PEs.
const LINKS: [usize; 4] = [1, 2, 4, 6];
const WORD_BYTES: usize = size_of::<u64>();

/// The sizes of a put of `bench links`, in bytes.
pub const BYTES: [usize; 7] = [512, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20];

/// Collective, for two PEs or more: each size, all numbers of links in one trial.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for the largest put.
pub fn all(world: &World, bytes: &[usize], effort: Effort, sink: Sink<'_>) -> Result<()> {
    let place = world.alloc_zeroed::<u64>(largest(bytes) / WORD_BYTES)?;
    let mut suite = Suite::new(world, effort);
    for &bytes in bytes {
        let links = LINKS.into_iter().filter(|&links| links < world.n_pes());
        let of = |links: usize| {
            let label = suite.label(Bench::Flood, Operation::Put, bytes).with_links(links);
            (label.with_window(links * PUTS_EACH), windows(&place, bytes / WORD_BYTES, links))
        };
        let parts: Vec<_> = links.map(of).collect();
        suite.add(parts);
    }
    suite.run(sink)
}

/// Windows of puts of `words` words to the PEs from 1 on, in turn; every put writes ones.
fn windows<'a>(place: &'a Symmetric<'_, u64>, words: usize, links: usize) -> Part<'a> {
    let world = place.world();
    let source = vec![1; words];
    only_first(world, move |count| {
        (0..count).try_for_each(|_| {
            world.scope(|scope| {
                let mut targets = (0..PUTS_EACH).flat_map(|_| 1..=links);
                targets.try_for_each(|target| scope.put(place, target, 0, &source))
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ensemble::conduct;
    use crate::base::record::tests::record;
    use crate::base::suite::tests::{EFFORT, reported};
    use crate::base::topic::tests::{assert_nothing_shown, assert_row, shown};

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

    #[test]
    fn as_many_pes_are_written_to_as_there_are_links() {
        let written = spmd(4, |world| {
            let place = world.alloc_zeroed::<u64>(5).unwrap();
            let mut parts = [windows(&place, 3, 2)];
            let led = conduct(world, &mut parts, |leader| {
                leader.play(0, 2)?;
                (0..4).map(|pe| Ok([place.g(pe, 0)?, place.g(pe, 2)?, place.g(pe, 3)?])).collect()
            });
            led.unwrap()
        });
        let there: Vec<_> = written.unwrap().swap_remove(0).unwrap();
        assert_eq!(there, [[0; 3], [1, 1, 0], [1, 1, 0], [0; 3]]);
    }

    #[test]
    fn every_size_and_number_of_links_is_reported() {
        let (records, progress) = reported(4, |world, sink| all(world, &[512, 4096], EFFORT, sink));
        let found: Vec<_> = records.iter().map(|r| (r.label.bytes, r.label.links, r.label.window)).collect();
        let of = |bytes| [(bytes, Some(1), Some(8)), (bytes, Some(2), Some(16))];
        assert_eq!(found, [of(512), of(4096)].as_flattened());
        assert!(records.iter().all(|record| record.unit == Unit::GigabytesPerSecond));
        assert_eq!(progress, (2, 2));
    }
}
