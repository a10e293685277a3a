//! NAS FT as a run of one PE: a 3D FFT of a random field, then for every time step the evolution of its spectrum, an
//! inverse 3D FFT and a checksum. Timed as NPB does: after one untimed initialisation and forward transform, from
//! initial field and plans to the last checksum. Invariant: the inbox is written by peers only between the barriers
//! that its exclusive phases make, and read by its owner only within them.

use num_complex::Complex64;
use pelago::prelude::*;
use rustfft::FftDirection;
use serde::Serialize;

use super::checksum;
use super::classes::Problem;
use super::evolve::Decay;
use super::exchange::{self, Tally};
use super::layout::Layout;
use super::phases::{Clock, Phase};
use super::random::Random;
use super::transform::Transform;
use super::variant::Variant;

/// What a run gave, the same on every PE but for the tally.
pub(super) struct Outcome {
    /// The time of the slowest PE.
    pub(super) seconds: f64,
    /// Seconds spent in each phase, in the order of `Phase::ALL`.
    pub(super) phases: Vec<PhaseSeconds>,
    /// One checksum an iteration.
    pub(super) checksums: Vec<Complex64>,
    /// This PE's transfers within the timed part.
    pub(super) tally: Tally,
}

/// The time that the PEs spent in one phase.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct PhaseSeconds {
    pub(super) max: f64,
    pub(super) mean: f64,
}

/// Collective: runs the problem of `layout` and calls `progress` after every iteration with the number done.
pub(super) fn solve(
    world: &World,
    layout: Layout,
    variant: Variant,
    progress: &mut dyn FnMut(usize),
) -> Result<Outcome> {
    let mut solver = Solver::new(world, layout, variant)?;
    solver.initialise();
    solver.forward()?;
    world.barrier();
    solver.clock = Clock::start();
    solver.tally = Tally::default();
    solver.initialise();
    solver.forward()?;
    let mut parts = Vec::with_capacity(layout.problem.iterations);
    for step in 1..=layout.problem.iterations {
        parts.push(solver.inverse(&Decay::after(&layout.problem, step))?);
        progress(step);
    }
    let checksums = sum_by_place(&collect(world, &parts)?);
    solver.clock.lap(Phase::Other);
    let times = collect(world, &solver.clock.seconds())?;
    Ok(Outcome {
        seconds: times.iter().map(|phases| phases.iter().sum()).fold(0.0, f64::max),
        phases: max_and_mean(&times),
        checksums,
        tally: solver.tally,
    })
}

/// Collective: every PE's `own`, in the order of the PEs. All have the same length.
pub(super) fn collect<T: Element + Clone>(world: &World, own: &[T]) -> Result<Vec<Vec<T>>> {
    let shared = world.alloc::<T>(own.len())?;
    shared.local().write(0, own);
    world.barrier();
    let mut all = vec![own.to_vec(); world.n_pes()];
    for (pe, part) in all.iter_mut().enumerate() {
        shared.get(pe, 0, part)?;
    }
    world.barrier();
    Ok(all)
}

/// What one PE holds while it solves.
struct Solver<'w> {
    world: &'w World,
    layout: Layout,
    variant: Variant,
    transform: Transform,
    /// The field in space at the start, then each field on its way to the other PEs.
    packed: Vec<Complex64>,
    /// The spectrum at time 0.
    spectrum: Vec<Complex64>,
    /// Where the other PEs put their blocks; the field in space after an inverse transform.
    inbox: Symmetric<'w, Complex64>,
    clock: Clock,
    tally: Tally,
}

impl<'w> Solver<'w> {
    fn new(world: &'w World, layout: Layout, variant: Variant) -> Result<Self> {
        Ok(Solver {
            world,
            layout,
            variant,
            transform: Transform::new(layout),
            packed: vec![Complex64::ZERO; layout.len()],
            spectrum: vec![Complex64::ZERO; layout.len()],
            inbox: world.alloc(layout.len())?,
            clock: Clock::start(),
            tally: Tally::default(),
        })
    }

    /// Plans the FFTs and fills the own planes with the initial field.
    fn initialise(&mut self) {
        let layout = self.layout;
        let Problem { nx, ny, .. } = layout.problem;
        self.transform = Transform::new(layout);
        for plane in 0..layout.planes {
            let z = layout.me * layout.planes + plane;
            let mut random = Random::after(2 * (nx * ny * z) as u64);
            for y in 0..ny {
                random.fill(&mut self.packed[layout.spatial_row(plane, y)..][..nx]);
            }
        }
        self.clock.lap(Phase::Other);
    }

    /// The 3D FFT of the initial field into the spectrum.
    fn forward(&mut self) -> Result<()> {
        for plane in 0..self.layout.planes {
            self.transform.plane(FftDirection::Forward, plane, &mut self.packed, &mut self.clock);
        }
        self.transpose()?;
        let inbox = self.inbox.exclusive();
        self.clock.lap(Phase::Barrier);
        for row in 0..self.layout.rows {
            self.transform.row_to_spectrum(row, &inbox, &mut self.spectrum, &mut self.clock);
        }
        drop(inbox);
        self.clock.lap(Phase::Barrier);
        Ok(())
    }

    /// The inverse 3D FFT of the decayed spectrum, and this PE's part of the checksum of its field.
    fn inverse(&mut self, decay: &Decay) -> Result<Complex64> {
        for row in 0..self.layout.rows {
            self.transform.row_from_spectrum(row, &self.spectrum, decay, &mut self.packed, &mut self.clock);
        }
        self.transpose()?;
        let mut inbox = self.inbox.exclusive();
        self.clock.lap(Phase::Barrier);
        for plane in 0..self.layout.planes {
            self.transform.plane(FftDirection::Inverse, plane, &mut inbox, &mut self.clock);
        }
        let part = checksum::partial(&self.layout, &inbox);
        self.clock.lap(Phase::Other);
        drop(inbox);
        self.clock.lap(Phase::Barrier);
        Ok(part)
    }

    /// Sends what `packed` holds to the inboxes of its owners, and completes it there.
    fn transpose(&mut self) -> Result<()> {
        match self.variant {
            Variant::Exchange => {
                exchange::send_blocks(&self.layout, &self.packed, &self.inbox, &mut self.tally)?;
            }
        }
        self.clock.lap(Phase::CommunicationStart);
        self.world.quiet();
        self.clock.lap(Phase::CommunicationWait);
        Ok(())
    }
}

/// Adds the PEs' parts, place by place.
fn sum_by_place(parts: &[Vec<Complex64>]) -> Vec<Complex64> {
    (0..parts[0].len()).map(|place| parts.iter().map(|part| part[place]).sum()).collect()
}

/// Largest and mean value of the PEs, place by place.
fn max_and_mean(times: &[Vec<f64>]) -> Vec<PhaseSeconds> {
    let of_place = |place: usize| times.iter().map(move |phases| phases[place]);
    (0..Phase::ALL.len())
        .map(|place| PhaseSeconds {
            max: of_place(place).fold(0.0, f64::max),
            mean: of_place(place).sum::<f64>() / times.len() as f64,
        })
        .collect()
}

#[cfg(test)]
mod tests;
