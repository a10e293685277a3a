//! `bench rate`: the message rate of non-blocking puts, in windows from PE 0 to PE 1, each completed before
//! the next. Invariant: the ways of starting puts are measured in turn, for each size and window, and put the
//! same bytes to the same places, one after the other in a region that stays in the caches.

use std::cell::Cell;

use pelago::{Context, ContextKind};

use crate::base::buffers::Rotation;
use crate::base::prelude::*;

pub const TOPIC: Topic = Topic {
    title: "Message rate",
    jobs: |pes| vec![Job { pes, suite: "rate" }],
    tables: |records| vec![table(records)],
    figures: |records| vec![by_size(records), by_window(records)],
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench rate                      messages a second, for 8 B to 4 KiB
  pelago bench rate --html r.html        the curves as well";

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
    let names: String = windows.iter().map(|window| format!("|{window} outstanding")).collect();
    let title = "Non-blocking puts to PE 1, completed window by window; medians, 10^6 puts a second (cache)";
    let mut table = Table::new(title, 2, &format!("size|started{names}"));
    for bytes in sizes(records) {
        for (way, name) in WAYS {
            let found = |window: &usize| {
                let label = |record: &&Record| (record.label.bytes, record.label.window);
                rates(records, way).find(|record| label(record) == (bytes, Some(*window)))
            };
            table.row((size(bytes), name, windows.iter().map(found).collect::<Vec<_>>()));
        }
    }
    table
}

fn by_size(records: &[Record]) -> Figure {
    let lines = values(records, |label| label.window).into_iter().zip(COLOURS).map(|(window, colour)| {
        let of_window = rates(records, Way::World).filter(move |record| record.label.window == Some(window));
        Across::Bytes.series(&format!("{window} outstanding"), colour, Line::Solid, of_window)
    });
    Figure::new(
        "Rate of non-blocking puts in a scope",
        [Across::Bytes.axis("size of a put"), RATE],
        "To one place after the other in 64 KiB; each window is completed before the next. Medians.",
        lines,
    )
}

fn by_window(records: &[Record]) -> Figure {
    let least = sizes(records).first().copied();
    let lines = WAYS.into_iter().zip(COLOURS).map(|((way, name), colour)| {
        let of_way = rates(records, way).filter(move |record| Some(record.label.bytes) == least);
        Across::Windows.series(name, colour, Line::Solid, of_way)
    });
    Figure::new(
        "Rate of the smallest puts, by what they are started with",
        [Across::Windows.axis("puts between two completions"), RATE],
        "A handle owns its buffer until it is waited for. Four contexts take turns. Medians.",
        lines,
    )
}

/// The target PE.
const TARGET: Pe = 1;
/// The size of the target region, in bytes.
const REGION_BYTES: usize = 64 << 10;
/// The number of contexts that are used in turn.
const CONTEXTS: usize = 4;

/// The sizes of a put in bytes, and the numbers of puts between two completions, of `bench rate`.
pub const SIZES: [&[usize]; 2] = [&[8, 64, 512, 4096], &[1, 8, 64, 512]];

/// Collective, for two PEs or more: measures each size and window, with all ways in one trial.
///
/// # Errors
/// Errors of the sink, if the symmetric heap has no room for the region, and if there are no more contexts.
pub fn all(world: &World, [bytes, windows]: [&[usize]; 2], effort: Effort, sink: Sink<'_>) -> Result<()> {
    let messages = Messages::new(world)?;
    let mut suite = Suite::new(world, effort);
    for &bytes in bytes {
        for &window in windows {
            let label = suite.label(Bench::Rate, Operation::Put, bytes).with_window(window);
            suite.add(WAYS.map(|(way, _)| (label.by_way(way), messages.windows(way, bytes, window))));
        }
    }
    suite.run(sink)
}

/// The target of the puts, and the contexts.
struct Messages<'w> {
    region: Symmetric<'w, u64>,
    contexts: Vec<Context<'w>>,
}

impl<'w> Messages<'w> {
    /// Collective.
    fn new(world: &'w World) -> pelago::Result<Self> {
        let region = world.alloc_zeroed(REGION_BYTES / size_of::<u64>())?;
        let contexts = (0..CONTEXTS).map(|_| world.context(ContextKind::Private));
        Ok(Messages { region, contexts: contexts.collect::<pelago::Result<_>>()? })
    }

    /// Windows of `window` puts of `bytes` bytes; every put writes ones.
    fn windows<'a>(&'a self, way: Way, bytes: usize, window: usize) -> Part<'a> {
        let (world, words) = (self.region.world(), bytes / size_of::<u64>());
        let rotation = Rotation::new(words, self.region.len());
        let source = vec![1; words];
        match way {
            Way::World => only_first(world, move |count| {
                (0..count).try_for_each(|_| {
                    world.scope(|scope| {
                        (0..window)
                            .try_for_each(|_| scope.put(&self.region, TARGET, rotation.next(), &source))
                    })
                })
            }),
            Way::Context => only_first(world, move |count| {
                let through = self.region.via(&self.contexts[0]);
                (0..count).try_for_each(|_| {
                    world.scope(|scope| {
                        (0..window).try_for_each(|_| scope.put(&through, TARGET, rotation.next(), &source))
                    })
                })
            }),
            Way::Contexts => only_first(world, move |count| {
                let through: Vec<_> = self.contexts.iter().map(|context| self.region.via(context)).collect();
                let turn = Cell::new(0);
                (0..count).try_for_each(|_| {
                    world.scope(|scope| {
                        (0..window).try_for_each(|_| {
                            turn.set((turn.get() + 1) % CONTEXTS);
                            scope.put(&through[turn.get()], TARGET, rotation.next(), &source)
                        })
                    })
                })
            }),
            Way::Handles => self.windows_of_handles(rotation, window, &source),
        }
    }

    /// Each put owns its buffer until it is complete; then the next window reuses it.
    fn windows_of_handles<'a>(&'a self, rotation: Rotation, window: usize, source: &[u64]) -> Part<'a> {
        let mut buffers = vec![source.to_vec(); window];
        only_first(self.region.world(), move |count| {
            let mut transfers = Vec::with_capacity(window);
            (0..count).try_for_each(|_| {
                for buffer in buffers.drain(..) {
                    transfers.push(self.region.put_nb(TARGET, rotation.next(), buffer)?);
                }
                buffers.extend(transfers.drain(..).map(|transfer| transfer.wait()));
                Ok(())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ensemble::conduct;
    use crate::base::record::tests::record;
    use crate::base::suite::tests::{EFFORT, reported};
    use crate::base::topic::tests::{assert_nothing_shown, assert_row, shown};

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

    #[test]
    fn all_ways_put_the_same() {
        let written = spmd(3, |world| {
            let messages = Messages::new(world).unwrap();
            let mut parts = WAYS.map(|(way, _)| messages.windows(way, 64, 5));
            conduct(world, &mut parts, |leader| {
                (0..WAYS.len())
                    .map(|part| {
                        messages.region.put(TARGET, 0, &vec![0; messages.region.len()])?;
                        leader.play(part, 3)?;
                        leader.play(part, 2)?;
                        let mut there = vec![0; messages.region.len()];
                        messages.region.get(TARGET, 0, &mut there)?;
                        Ok(there)
                    })
                    .collect::<Result<Vec<_>>>()
            })
            .unwrap()
        });
        for there in written.unwrap().swap_remove(0).unwrap() {
            let (first, rest) = there.split_at(5 * 5 * 8);
            assert!(first.iter().all(|word| *word == 1) && rest.iter().all(|word| *word == 0));
        }
    }

    #[test]
    fn every_way_size_and_window_is_reported() {
        let (records, progress) = reported(2, |world, sink| all(world, [&[8, 4096], &[1, 3]], EFFORT, sink));
        let found: Vec<_> = records.iter().map(|r| (r.label.bytes, r.label.window, r.label.way)).collect();
        let expected = [(8, 1), (8, 3), (4096, 1), (4096, 3)]
            .map(|(bytes, window)| WAYS.map(|(way, _)| (bytes, Some(window), Some(way))));
        assert_eq!(found, expected.as_flattened());
        assert!(records.iter().all(|record| record.unit == Unit::MillionsPerSecond));
        assert_eq!(progress, (4, 4));
    }
}
