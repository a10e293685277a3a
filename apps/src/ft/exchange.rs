//! The global exchange of a 3D FFT: a PE's own planes are transformed and their rows are put into the inboxes
//! of the PEs that own them next, in one of three ways. `exchange` computes all planes, then sends one block
//! to every PE; `slabs` sends a slab of each plane to every PE as soon as the plane is computed; `pencils`
//! sends each row as soon as it is final. Invariant: data in flight are not changed before they have arrived;
//! the scopes guarantee this. Source: Bell, Bonachea, Nishtala, Yelick, "Optimizing Bandwidth Limited
//! Problems Using One-Sided Communication and Overlap", section 5.2 and table 1.

use num_complex::Complex64;
use pelago::Result;
use pelago::prelude::*;

use super::evolve::Decay;
use super::phases::{Clock, Phase};
use super::transform::Transform;
use super::variant::Variant;

/// Transfers counted by the program that issues them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Tally {
    /// Counts one transfer of `elements`.
    fn count(&mut self, elements: &[Complex64]) {
        self.messages += 1;
        self.bytes += size_of_val(elements) as u64;
    }
}

/// The data that a PE needs to send its part of one 3D FFT.
pub(super) struct Exchange<'a, 'w> {
    pub(super) world: &'w World,
    pub(super) transform: &'a mut Transform,
    /// This PE's planes.
    pub(super) source: &'a [Complex64],
    /// The decay of the source's modes, if it is a spectrum.
    pub(super) decay: Option<&'a Decay>,
    /// Buffer for turned planes until they have arrived; as long as the source.
    pub(super) staging: &'a mut [Complex64],
    /// The number of planes in flight at a time, in the variants that overlap.
    pub(super) window: usize,
    pub(super) inbox: &'a Symmetric<'w, Complex64>,
    pub(super) tally: &'a mut Tally,
    pub(super) clock: &'a mut Clock<'w>,
}

/// The number of planes that `Variant::Slabs` and `Variant::Pencils` have in flight at a time: one, which
/// stays in the cache, if every put is a copy that is complete at return; else all.
pub(super) fn window(inbox: &Symmetric<'_, Complex64>) -> usize {
    let world = inbox.world();
    let is_mapped = (0..world.n_pes()).all(|pe| inbox.ptr(pe).is_some());
    if is_mapped && !world.is_simulated() { 1 } else { usize::MAX }
}

impl Exchange<'_, '_> {
    /// Transforms all planes along two axes and sends them. They have arrived when all PEs have returned.
    ///
    /// # Errors
    /// If the runtime refuses a put.
    pub(super) fn run(self, variant: Variant) -> Result<()> {
        match variant {
            Variant::Exchange => self.at_the_end(),
            Variant::Slabs | Variant::Pencils => self.on_the_way(variant),
        }
    }

    /// All planes, then one block to every PE.
    fn at_the_end(self) -> Result<()> {
        let Exchange { world, transform, source, decay, staging, inbox, tally, clock, .. } = self;
        let way = transform.way();
        for plane in 0..way.planes() {
            let place = |row| {
                let (peer, row) = (row / way.rows(), row % way.rows());
                peer * way.block_len() + plane * way.slab_len() + row * way.middle
            };
            transform.inner(plane, source, decay, staging, place, clock);
            for row in 0..way.inner {
                transform.middle(&mut staging[place(row)..][..way.middle], clock);
            }
        }
        world.scope(|scope| -> Result<()> {
            for peer in way.peers() {
                let block = &staging[peer * way.block_len()..][..way.block_len()];
                scope.put(inbox, peer, way.me * way.block_len(), block)?;
                tally.count(block);
            }
            clock.lap(Phase::CommunicationStart);
            Ok(())
        })?;
        clock.lap(Phase::CommunicationWait);
        Ok(())
    }

    /// Each plane or row as soon as it is computed.
    fn on_the_way(self, variant: Variant) -> Result<()> {
        let Exchange { world, transform, source, decay, staging, window, inbox, tally, clock } = self;
        let way = transform.way();
        for first in (0..way.planes()).step_by(window) {
            world.scope(|scope| -> Result<()> {
                let turned = staging.chunks_exact_mut(way.plane_len()).take(window);
                for (plane, turned) in (first..way.planes()).zip(turned) {
                    transform.inner(plane, source, decay, turned, |row| row * way.middle, clock);
                    if variant == Variant::Slabs {
                        transform.middle(turned, clock);
                        for peer in way.peers() {
                            let slab = &turned[peer * way.slab_len()..][..way.slab_len()];
                            scope.put(inbox, peer, way.slab(plane), slab)?;
                            tally.count(slab);
                        }
                        clock.lap(Phase::CommunicationStart);
                    } else {
                        for (row, pencil) in way.rows_in_turn(turned) {
                            transform.middle(pencil, clock);
                            let place = way.slab(plane) + row % way.rows() * way.middle;
                            scope.put(inbox, row / way.rows(), place, pencil)?;
                            tally.count(pencil);
                            clock.lap(Phase::CommunicationStart);
                        }
                    }
                }
                Ok(())
            })?;
            clock.lap(Phase::CommunicationWait);
        }
        Ok(())
    }
}
