//! Message rate: windows of non-blocking puts from PE 0 to PE 1, each completed before the next. Invariant:
//! all ways of starting them put the same bytes to the same places, one after the other in a region that
//! stays in the caches.

use std::cell::Cell;

use anyhow::Result;
use pelago::prelude::*;
use pelago::{Context, ContextKind};

use super::buffers::Rotation;
use super::effort::Effort;
use super::ensemble::{Part, only_first};
use super::record::{Bench, Operation, Way};
use super::suite::{Sink, Suite};

/// The PE that is written to.
const TARGET: Pe = 1;
/// Bytes of the region that puts go to.
const REGION_BYTES: usize = 64 << 10;
/// Contexts that take turns.
const CONTEXTS: usize = 4;
const WAYS: [Way; 4] = [Way::World, Way::Handles, Way::Context, Way::Contexts];

/// Sizes and windows to measure.
pub(super) struct Plan {
    /// Bytes of a put.
    pub(super) bytes: Vec<usize>,
    /// Puts between two completions.
    pub(super) windows: Vec<usize>,
    pub(super) effort: Effort,
}

impl Plan {
    /// The plan of `bench rate`.
    pub(super) fn of(effort: Effort) -> Self {
        let (bytes, windows) = (vec![8, 64, 512, 4096], vec![1, 8, 64, 512]);
        Plan { bytes, windows, effort }
    }
}

/// Collective, for two PEs or more: each size and window, all ways in one trial.
///
/// # Errors
/// Those of the sink, if the symmetric heap has no room for the region, and if there are no more contexts.
pub(super) fn all(world: &World, plan: &Plan, sink: Sink<'_>) -> Result<()> {
    let messages = Messages::new(world)?;
    let mut suite = Suite::new(world, plan.effort);
    for &bytes in &plan.bytes {
        for &window in &plan.windows {
            let label = suite.label(Bench::Rate, Operation::Put, bytes).with_window(window);
            suite.add(WAYS.map(|way| (label.by_way(way), messages.windows(way, bytes, window))));
        }
    }
    suite.run(sink)
}

/// Where the puts go, and what they are started with.
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

    /// Windows of so many puts of so many bytes; every put writes ones.
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

    /// Each put owns its buffer until it is complete; then the next window has it.
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
    use crate::measure::ensemble::conduct;
    use crate::measure::record::Unit;
    use crate::measure::suite::tests::{EFFORT, reported};

    #[test]
    fn all_ways_put_the_same() {
        let written = spmd(3, |world| {
            let messages = Messages::new(world).unwrap();
            let mut parts = WAYS.map(|way| messages.windows(way, 64, 5));
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
        let plan = Plan { bytes: vec![8, 4096], windows: vec![1, 3], effort: EFFORT };
        let (records, progress) = reported(2, |world, sink| all(world, &plan, sink));
        let found: Vec<_> = records.iter().map(|r| (r.label.bytes, r.label.window, r.label.way)).collect();
        let expected = [(8, 1), (8, 3), (4096, 1), (4096, 3)]
            .map(|(bytes, window)| WAYS.map(|way| (bytes, Some(window), Some(way))));
        assert_eq!(found, expected.as_flattened());
        assert!(records.iter().all(|record| record.unit == Unit::MillionsPerSecond));
        assert_eq!(progress, (4, 4));
    }
}
