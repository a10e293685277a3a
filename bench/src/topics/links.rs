//! `bench links`: several links at once. PE 0 sends floods of puts, and of messages, to PE 1, or to more PEs
//! in turn, which may be on separate links. Invariant: a window has the same number of puts or messages for
//! each target and is complete before the next; for each size, both sides and all numbers of links are
//! measured in turn.
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

/// The two sides of the comparison, with their names and lines.
const SIDES: [(Operation, &str, Line); 2] =
    [(Operation::Put, "puts", Line::Solid), (Operation::Send, "messages", Line::Dashed)];

fn floods(records: &[Record], operation: Operation, links: usize) -> impl Iterator<Item = &Record> {
    of(records, Bench::Flood, operation).filter(move |record| record.label.links == Some(links))
}

/// The record of a flood.
pub fn flood(records: &[Record], operation: Operation, links: usize, bytes: usize) -> Option<&Record> {
    floods(records, operation, links).find(|record| record.label.bytes == bytes)
}

fn numbers(records: &[Record]) -> Vec<usize> {
    values(records, |label| label.links)
}

fn name(links: usize) -> String {
    format!("{links} {}", if links == 1 { "PE" } else { "PEs" })
}

fn table(records: &[Record]) -> Table {
    let numbers = numbers(records);
    let names = |of: &str| numbers.iter().map(|&links| format!("|{of} {}", name(links))).collect::<String>();
    let title = "Floods from PE 0 to so many PEs in turn, completed window by window; medians, GB/s";
    let mut table = Table::new(title, 1, &format!("size{}{}", names("puts to"), names("messages to")));
    for bytes in values(records, |label| label.links.map(|_| label.bytes)) {
        let found = |operation| numbers.iter().map(move |&links| flood(records, operation, links, bytes));
        let cells = SIDES.map(|(operation, ..)| found(operation).collect::<Vec<_>>());
        table.row((size(bytes), cells));
    }
    table
}

fn curves(records: &[Record]) -> Figure {
    let lines = numbers(records).into_iter().zip(COLOURS).flat_map(|(links, colour)| {
        SIDES.map(|(operation, side, line)| {
            let name = format!("{side} to {}", name(links));
            Across::Bytes.series(&name, colour, line, floods(records, operation, links))
        })
    });
    Figure::new(
        "Bandwidth of puts and messages to several PEs",
        [Across::Bytes.axis("size of a put or message"), BANDWIDTH],
        "Eight to each in a window, which is complete before the next. Medians.",
        lines,
    )
}

/// The number of puts to each target between two completions.
const PUTS_EACH: usize = 8;
/// The numbers of links, limited by the number of PEs.
pub const LINKS: [usize; 4] = [1, 2, 4, 6];
const WORD_BYTES: usize = size_of::<u64>();

/// The sizes of a put of `bench links`, in bytes.
pub const BYTES: [usize; 7] = [512, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20];

/// Collective, for two PEs or more: each size, these numbers of links in one trial.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for the largest put.
pub fn all(world: &World, links: &[usize], bytes: &[usize], effort: Effort, sink: Sink<'_>) -> Result<()> {
    let place = world.alloc_zeroed::<u64>(largest(bytes) / WORD_BYTES)?;
    let mut suite = Suite::new(world, effort);
    for &bytes in bytes {
        let links = links.iter().copied().filter(|&links| links < world.n_pes());
        let of = |links: usize| {
            let label = |operation| {
                let label = suite.label(Bench::Flood, operation, bytes).with_links(links);
                label.with_window(links * PUTS_EACH)
            };
            let puts = windows(&place, bytes / WORD_BYTES, links);
            [(label(Operation::Put), puts), (label(Operation::Send), messages(world, bytes, links))]
        };
        let parts: Vec<_> = links.flat_map(of).collect();
        suite.add(parts);
    }
    suite.run(sink)
}

/// Windows of messages of these bytes to the PEs from 1 on, in turn; each PE replies to a window with an
/// empty message.
fn messages<'a>(world: &'a World, bytes: usize, links: usize) -> Part<'a> {
    let (team, me) = (world.team(), world.my_pe());
    let is_target = (1..=links).contains(&me);
    let mut data = vec![1_u8; if is_target { PUTS_EACH * bytes } else { bytes }];
    Box::new(move |count| {
        for _ in 0..count {
            if me == 0 {
                world.scope(|scope| {
                    let mut targets = (0..PUTS_EACH).flat_map(|_| 1..=links);
                    targets.try_for_each(|target| scope.send(&team, target, 0, &data).map(drop))
                })?;
                (1..=links).try_for_each(|target| {
                    let empty: &mut [u8] = &mut [];
                    team.receive(target, 1, empty).map(drop)
                })?;
            } else if is_target {
                world.scope(|scope| {
                    let mut places = data.chunks_exact_mut(bytes);
                    places.try_for_each(|place| scope.receive(&team, 0, 0, place).map(drop))
                })?;
                team.send(0, 1, &[0_u8; 0])?;
            }
        }
        Ok(())
    })
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
            for (links, (operation, ..)) in
                [1, 4].into_iter().flat_map(|links| SIDES.map(|side| (links, side)))
            {
                let label = Label::new(5, Bench::Flood, operation, bytes).with_window(8 * links);
                let value = if operation == Operation::Put { 0.25 } else { 0.125 } * links as f64;
                records.push(record(label.with_links(links), Unit::GigabytesPerSecond, value));
            }
        }
        let (tables, page) = shown(&TOPIC, &records, 1);
        assert_row(&tables, &["512 B", "0.250", "1.00", "0.125", "0.500"]);
        assert_row(&tables, &["2 MiB", "0.250", "1.00", "0.125", "0.500"]);
        assert!(page.contains("puts to 4 PEs, 2 MiB: 1.00"), "{page}");
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
        let (records, progress) = reported(4, |world, sink| all(world, &LINKS, &[512, 4096], EFFORT, sink));
        let label = |r: &Record| (r.label.bytes, r.label.links, r.label.window, r.label.operation);
        let found: Vec<_> = records.iter().map(label).collect();
        let of = |bytes| {
            let sides = |links| SIDES.map(|(operation, ..)| (bytes, Some(links), Some(8 * links), operation));
            [sides(1), sides(2)].concat()
        };
        assert_eq!(found, [of(512), of(4096)].concat());
        assert!(records.iter().all(|record| record.unit == Unit::GigabytesPerSecond));
        assert_eq!(progress, (2, 2));
    }
}
