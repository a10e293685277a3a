//! Several links at once: PE 0 floods PE 1, or more PEs in turn, which may each be behind a link of their
//! own. Invariant: a window has the same number of puts for each target and is complete before the next; each
//! size is measured over all numbers of links in turn.
//!
//! Source: the multi-link bandwidth of M. Luo et al., Early Evaluation of Scalable Fabric Interface for PGAS
//! Programming Models.

use anyhow::Result;
use pelago::prelude::*;

use super::effort::Effort;
use super::ensemble::{Part, only_first};
use super::record::{Bench, Operation};
use super::suite::{Sink, Suite};

/// Puts to each target between two completions.
const PUTS_EACH: usize = 8;
/// Numbers of links, as far as there are PEs behind them.
const LINKS: [usize; 4] = [1, 2, 4, 6];
const WORD_BYTES: usize = size_of::<u64>();

/// Sizes to measure.
pub(super) struct Plan {
    /// Bytes of a put.
    pub(super) bytes: Vec<usize>,
    pub(super) effort: Effort,
}

impl Plan {
    /// The plan of `bench links`: 512 B to 2 MiB.
    pub(super) fn of(effort: Effort) -> Self {
        Plan { bytes: (0..7).map(|i| 512 << (2 * i)).collect(), effort }
    }
}

/// Collective, for two PEs or more: each size, all numbers of links in one trial.
///
/// # Errors
/// Those of the sink, and if the symmetric heap has no room for the largest put.
pub(super) fn all(world: &World, plan: &Plan, sink: Sink<'_>) -> Result<()> {
    let most = plan.bytes.iter().max().copied().unwrap_or_default() / WORD_BYTES;
    let place = world.alloc_zeroed::<u64>(most)?;
    let mut suite = Suite::new(world, plan.effort);
    for &bytes in &plan.bytes {
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

/// Windows of puts of so many words to the PEs from 1 on, in turn; every put writes ones.
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
    use crate::measure::ensemble::conduct;
    use crate::measure::record::Unit;
    use crate::measure::suite::tests::{EFFORT, reported};

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
        let plan = Plan { bytes: vec![512, 4096], effort: EFFORT };
        let (records, progress) = reported(4, |world, sink| all(world, &plan, sink));
        let found: Vec<_> = records.iter().map(|r| (r.label.bytes, r.label.links, r.label.window)).collect();
        let of = |bytes| [(bytes, Some(1), Some(8)), (bytes, Some(2), Some(16))];
        assert_eq!(found, [of(512), of(4096)].as_flattened());
        assert!(records.iter().all(|record| record.unit == Unit::GigabytesPerSecond));
        assert_eq!(progress, (2, 2));
    }
}
