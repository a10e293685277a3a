//! NAS FT as a run of one PE: a 3D FFT of a random field, then for every time step the evolution of its
//! spectrum, an inverse 3D FFT and a checksum. Timed as NPB does: after one untimed initialisation and
//! forward transform, from initial field and plans to the last checksum. Invariant: the inbox is written by
//! peers only between the barriers that its exclusive phases make, and read by its owner only within them.

use num_complex::Complex64;
use pelago::Result;
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
pub(super) fn collect<T: Element>(world: &World, own: &[T]) -> Result<Vec<Vec<T>>> {
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
        let Solver { layout, transform, spectrum, inbox, clock, .. } = self;
        inbox.exclusive(|field| {
            clock.lap(Phase::Barrier);
            for row in 0..layout.rows {
                transform.row_to_spectrum(row, field, spectrum, clock);
            }
        })?;
        clock.lap(Phase::Barrier);
        Ok(())
    }

    /// The inverse 3D FFT of the decayed spectrum, and this PE's part of the checksum of its field.
    fn inverse(&mut self, decay: &Decay) -> Result<Complex64> {
        for row in 0..self.layout.rows {
            self.transform.row_from_spectrum(row, &self.spectrum, decay, &mut self.packed, &mut self.clock);
        }
        self.transpose()?;
        let Solver { layout, transform, inbox, clock, .. } = self;
        let part = inbox.exclusive(|field| {
            clock.lap(Phase::Barrier);
            for plane in 0..layout.planes {
                transform.plane(FftDirection::Inverse, plane, field, clock);
            }
            let part = checksum::partial(layout, field);
            clock.lap(Phase::Other);
            part
        })?;
        clock.lap(Phase::Barrier);
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
mod tests {
    //! Whole runs with PEs as threads: against the definition on small boxes, against NASA on class S, and
    //! against the formulas for messages.

    use pelago::Spmd;

    use super::super::classes::Class;
    use super::super::naive;
    use super::super::report::Report;
    use super::*;

    /// Boxes that every combination of odd lengths, few rows and one-element blocks occurs in, with their PE
    /// counts.
    const BOXES: [(Problem, &[usize]); 4] = [
        (Problem { nx: 4, ny: 4, nz: 4, iterations: 2 }, &[1, 2, 4]),
        (Problem { nx: 2, ny: 8, nz: 4, iterations: 2 }, &[1, 2, 4]),
        (Problem { nx: 5, ny: 6, nz: 3, iterations: 2 }, &[1, 3]),
        (Problem { nx: 2, ny: 8, nz: 8, iterations: 2 }, &[8]),
    ];

    fn on_threads<R: Send>(
        pes: usize,
        body: impl Fn(&World, Layout) -> R + Sync,
        problem: Problem,
    ) -> Vec<R> {
        Spmd::new(pes)
            .counters(true)
            .run(|world| body(world, Layout::new(problem, world.n_pes(), world.my_pe()).unwrap()))
            .unwrap()
    }

    #[test]
    fn distributed_spectrum_is_that_of_the_definition() {
        for (problem, counts) in BOXES {
            let expected = naive::spectrum(&problem, &naive::initial_field(&problem));
            for &pes in counts {
                let parts = on_threads(
                    pes,
                    |world, layout| {
                        let mut solver = Solver::new(world, layout, Variant::Exchange).unwrap();
                        solver.initialise();
                        solver.forward().unwrap();
                        std::mem::take(&mut solver.spectrum)
                    },
                    problem,
                );
                naive::assert_close(&parts.concat(), &expected);
            }
        }
    }

    #[test]
    fn every_checksum_is_that_of_the_definition_on_every_pe() {
        for (problem, counts) in BOXES {
            let spectrum = naive::spectrum(&problem, &naive::initial_field(&problem));
            let expected: Vec<_> =
                (1..=problem.iterations).map(|steps| naive::checksum(&problem, &spectrum, steps)).collect();
            for &pes in counts {
                let solved = on_threads(
                    pes,
                    |world, layout| solve(world, layout, Variant::Exchange, &mut |_| ()),
                    problem,
                );
                for outcome in solved {
                    naive::assert_close(&outcome.unwrap().checksums, &expected);
                }
            }
        }
    }

    #[test]
    fn class_s_is_verified() {
        let class = Class::from_name("S").unwrap();
        for pes in [1, 2, 4, 8] {
            for variant in Variant::ALL {
                let verified = on_threads(
                    pes,
                    |world, layout| {
                        let mut steps_seen = Vec::new();
                        let outcome =
                            solve(world, layout, variant, &mut |step| steps_seen.push(step)).unwrap();
                        assert_eq!(steps_seen, [1, 2, 3, 4, 5, 6]);
                        Report::new(class, variant, pes, outcome).verified()
                    },
                    class.problem,
                );
                assert_eq!(verified, vec![true; pes], "{} on {pes} PEs", variant.name());
            }
        }
    }

    #[test]
    fn phases_add_up_to_no_more_than_the_slowest_pe() {
        let (problem, counts) = BOXES[0];
        for &pes in counts {
            for outcome in
                on_threads(pes, |world, layout| solve(world, layout, Variant::Exchange, &mut |_| ()), problem)
            {
                let outcome = outcome.unwrap();
                let mean: f64 = outcome.phases.iter().map(|phase| phase.mean).sum();
                let max: f64 = outcome.phases.iter().map(|phase| phase.max).sum();
                assert!(mean <= outcome.seconds * (1.0 + 1e-9) && outcome.seconds <= max * (1.0 + 1e-9));
            }
        }
    }

    #[test]
    fn exchange_sends_what_the_formula_says_and_the_runtime_counts_it() {
        let problem = Problem { nx: 8, ny: 8, nz: 8, iterations: 3 };
        for pes in [1, 2, 4, 8] {
            let transforms = 1 + problem.iterations as u64;
            let messages = pes as u64 * transforms;
            let message_bytes = (16 * problem.points() / (pes * pes)) as u64;
            on_threads(
                pes,
                |world, layout| {
                    let before = world.counters();
                    let outcome = solve(world, layout, Variant::Exchange, &mut |_| ()).unwrap();
                    let after = world.counters();
                    assert_eq!(outcome.tally, Tally { messages, bytes: messages * message_bytes });
                    // The runtime also saw the forward transform of the untimed round.
                    let puts = messages + pes as u64;
                    assert_eq!(after.puts - before.puts, puts);
                    assert_eq!(after.put_bytes - before.put_bytes, puts * message_bytes);
                },
                problem,
            );
        }
    }
}
