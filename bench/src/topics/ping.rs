//! `bench ping`: one-sided and two-sided round trips side by side. PE 0 puts data to PE 1 and waits until
//! they are there; gets data; sends a message and waits for an empty one. Invariant: for each size the three
//! are measured in turn, between the same two PEs, with private memory at PE 0.
//!
//! Source: Bell, Bonachea, Nishtala, Yelick, "Optimizing Bandwidth Limited Problems Using One-Sided
//! Communication and Overlap", figure 2: the round-trip latency of put and get beside that of a message with
//! an acknowledgement of 0 bytes.

use crate::base::prelude::*;

pub const TOPIC: Topic = Topic {
    title: "One-sided and two-sided round trips",
    jobs: |pes| vec![Job { pes, suite: "ping" }],
    tables: |records| vec![table(records)],
    figures: |records| vec![curves(records)],
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench ping                       put, get and message, each with what says that it is complete
  pelago bench ping --fabric tcp          the same over TCP
  pelago bench ping --html p.html         the curves as well";

/// The PE at the other end.
const TARGET: Pe = 1;

/// The three round trips, with their names.
pub const WAYS: [(Operation, &str); 3] = [
    (Operation::Put, "put and quiet"),
    (Operation::Get, "get"),
    (Operation::Send, "message and empty answer"),
];

/// The sizes of the data, in bytes.
pub const BYTES: [usize; 12] = [1, 8, 16, 32, 64, 128, 256, 512, 4 << 10, 32 << 10, 128 << 10, 512 << 10];

/// The record of a round trip.
pub fn trip(records: &[Record], operation: Operation, bytes: usize) -> Option<&Record> {
    find(records, |label| (label.bench, label.operation, label.bytes) == (Bench::Completed, operation, bytes))
}

fn sizes(records: &[Record]) -> Vec<usize> {
    values(records, |label| (label.bench == Bench::Completed).then_some(label.bytes))
}

fn table(records: &[Record]) -> Table {
    let title = "Round trips between PEs 0 and 1; medians, ns";
    let mut table = Table::new(title, 1, "size|put, quiet|get|message, answer|put / message|get / message");
    for bytes in sizes(records) {
        let [put, get, send] = WAYS.map(|(operation, _)| trip(records, operation, bytes));
        table.row((size(bytes), [put, get, send], [ratio(put, send), ratio(get, send)]));
    }
    table
}

fn curves(records: &[Record]) -> Figure {
    let lines = WAYS.into_iter().zip([BLUE, GREEN, ORANGE]).map(|((operation, name), colour)| {
        Across::Bytes.series(name, colour, Line::Solid, of(records, Bench::Completed, operation))
    });
    Figure::new(
        "Round trip by size",
        [Across::Bytes.axis("size of the data"), TIME],
        "A put is followed by a quiet, a message by an empty message back. Medians.",
        lines,
    )
}

/// Collective, for two PEs or more: each size, all three in one trial.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for the largest data.
pub fn all(world: &World, bytes: &[usize], effort: Effort, sink: Sink<'_>) -> Result<()> {
    let place = world.alloc_zeroed::<u8>(largest(bytes))?;
    let mut suite = Suite::new(world, effort);
    for &bytes in bytes {
        let label = |operation| suite.label(Bench::Completed, operation, bytes);
        let labels = WAYS.map(|(operation, _)| label(operation));
        let parts = [puts(&place, bytes), gets(&place, bytes), messages(world, bytes)];
        suite.add(labels.into_iter().zip(parts));
    }
    suite.run(sink)
}

fn puts<'a>(place: &'a Symmetric<'_, u8>, bytes: usize) -> Part<'a> {
    let source = vec![1; bytes];
    only_first(place.world(), move |count| {
        (0..count).try_for_each(|_| {
            place.put(TARGET, 0, &source)?;
            place.world().quiet();
            Ok(())
        })
    })
}

fn gets<'a>(place: &'a Symmetric<'_, u8>, bytes: usize) -> Part<'a> {
    let mut target = vec![0; bytes];
    only_first(place.world(), move |count| (0..count).try_for_each(|_| place.get(TARGET, 0, &mut target)))
}

fn messages<'a>(world: &'a World, bytes: usize) -> Part<'a> {
    let (team, me) = (world.team(), world.my_pe());
    let mut data = vec![1_u8; bytes];
    let empty: &mut [u8] = &mut [];
    Box::new(move |count| {
        for _ in 0..count {
            match me {
                0 => {
                    team.send(TARGET, 0, &data)?;
                    team.receive(TARGET, 0, empty)?;
                }
                TARGET => {
                    team.receive(0, 0, &mut data)?;
                    team.send(0, 0, empty)?;
                }
                _ => break,
            }
        }
        Ok(())
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
    fn the_three_ways_are_shown_with_their_ratios() {
        let mut records = Vec::new();
        for ((operation, _), ns) in WAYS.into_iter().zip([50.0, 60.0, 100.0]) {
            let label = Label::new(2, Bench::Completed, operation, 8);
            records.push(record(label, Unit::Nanoseconds, ns));
        }
        let (tables, page) = shown(&TOPIC, &records, 1);
        assert_row(&tables, &["8 B", "50.0", "60.0", "100", "0.500", "0.600"]);
        assert!(page.contains("message and empty answer, 8 B: 100"), "{page}");
        assert_nothing_shown(&TOPIC);
    }

    #[test]
    fn data_go_to_the_other_pe_and_back() {
        let seen = spmd(3, |world| {
            let place = world.alloc_zeroed::<u8>(5).unwrap();
            let mut parts = [puts(&place, 3), gets(&place, 5), messages(world, 4)];
            let led = conduct(world, &mut parts, |leader| {
                (0..3).try_for_each(|part| leader.play(part, 2).map(drop))
            });
            led.unwrap();
            place.local().to_vec()
        });
        assert_eq!(seen.unwrap(), [[0; 5], [1, 1, 1, 0, 0], [0; 5]]);
    }

    #[test]
    fn every_size_and_way_is_reported() {
        let (records, progress) = reported(2, |world, sink| all(world, &[1, 4096], EFFORT, sink));
        let found: Vec<_> = records.iter().map(|r| (r.label.bytes, r.label.operation)).collect();
        let ways = |bytes| WAYS.map(|(operation, _)| (bytes, operation));
        assert_eq!((found, progress), ([ways(1), ways(4096)].concat(), (2, 2)));
    }
}
