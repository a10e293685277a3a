//! NAS FT as a run of one PE: a 3D FFT of a random field, then for every time step the evolution of its
//! spectrum, an inverse 3D FFT and a checksum. Timed as NPB does: after one untimed initialisation and
//! forward transform, from initial field and plans to the last checksum. Invariant: the inbox is written by
//! peers only between the barriers that its exclusive phases make, and read by its owner only within them. A
//! transform's target is also the staging buffer of its exchange, as it is written only after the exchange.

use num_complex::Complex64;
use pelago::Result;
use pelago::prelude::*;
use rustfft::FftDirection;
use serde::Serialize;

use super::checksum;
use super::classes::Problem;
use super::evolve::Decay;
use super::exchange::{self, Exchange, Tally};
use super::layout::Layout;
use super::phases::{Clock, Phase};
use super::random::Random;
use super::transform::Transform;
use super::variant::Variant;
use crate::buffer::Buffer;
use crate::collect::collect;

/// The results of a run, the same on every PE except for the tally.
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

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) variant: Variant,
    /// The speed of a PE where time is virtual; without effect elsewhere.
    pub(super) simulated_gflops: f64,
}

/// Collective: runs the problem of `layout` and calls `progress` after every iteration with the number done.
/// In a simulation all times are virtual: communication takes the time of the simulated network, FFTs take
/// the time that follows from the given rate, and all other computation takes no time.
pub(super) fn solve(
    world: &World,
    layout: Layout,
    run: Run,
    progress: &mut dyn FnMut(usize),
) -> Result<Outcome> {
    Solver::new(world, layout, run)?.solve(progress)
}

/// The data of one PE while it solves.
pub(super) struct Solver<'w> {
    world: &'w World,
    layout: Layout,
    variant: Variant,
    forward: Transform,
    inverse: Transform,
    /// The field in space: the initial one, then the field of each time step.
    field: Buffer<Complex64>,
    /// The spectrum at time 0.
    pub(super) spectrum: Buffer<Complex64>,
    /// The buffer for the rows that other PEs put.
    inbox: Symmetric<'w, Complex64>,
    /// The number of planes that may be in flight at a time.
    window: usize,
    pub(super) clock: Clock<'w>,
    tally: Tally,
}

impl<'w> Solver<'w> {
    pub(super) fn new(world: &'w World, layout: Layout, run: Run) -> Result<Self> {
        let inbox = world.alloc(layout.len())?;
        Ok(Solver {
            world,
            layout,
            variant: run.variant,
            forward: Transform::new(layout.forward(), FftDirection::Forward),
            inverse: Transform::new(layout.inverse(), FftDirection::Inverse),
            field: Buffer::new(layout.len()),
            spectrum: Buffer::new(layout.len()),
            window: exchange::window(&inbox),
            inbox,
            clock: Clock::start(world, run.simulated_gflops),
            tally: Tally::default(),
        })
    }

    /// Collective: an untimed initialisation and forward transform, then the timed run.
    fn solve(mut self, progress: &mut dyn FnMut(usize)) -> Result<Outcome> {
        let Solver { world, layout, .. } = self;
        self.initialise();
        self.forward()?;
        world.barrier();
        self.clock.restart();
        self.tally = Tally::default();
        self.initialise();
        self.forward()?;
        let mut parts = Vec::with_capacity(layout.problem.iterations);
        for step in 1..=layout.problem.iterations {
            parts.push(self.inverse(&Decay::after(&layout.problem, step))?);
            progress(step);
        }
        let checksums = sum_by_place(&collect(world, &parts)?);
        self.clock.lap(Phase::Other);
        let times = collect(world, &self.clock.seconds())?;
        Ok(Outcome {
            seconds: times.iter().map(|phases| phases.iter().sum()).fold(0.0, f64::max),
            phases: max_and_mean(&times),
            checksums,
            tally: self.tally,
        })
    }

    /// Plans the FFTs and fills this PE's planes with the initial field.
    pub(super) fn initialise(&mut self) {
        let layout = self.layout;
        let Problem { nx, ny, .. } = layout.problem;
        self.forward = Transform::new(layout.forward(), FftDirection::Forward);
        self.inverse = Transform::new(layout.inverse(), FftDirection::Inverse);
        for plane in 0..layout.z_planes() {
            let z = layout.me * layout.z_planes() + plane;
            let mut random = Random::after(2 * (nx * ny * z) as u64);
            for y in 0..ny {
                random.fill(&mut self.field[layout.spatial_row(plane, y)..][..nx]);
            }
        }
        self.clock.lap(Phase::Other);
    }

    /// The 3D FFT of the initial field into the spectrum.
    pub(super) fn forward(&mut self) -> Result<()> {
        let Solver { world, variant, forward, field, spectrum, inbox, window, clock, tally, .. } = self;
        let (source, staging) = (&**field, &mut **spectrum);
        let window = *window;
        Exchange { world, transform: forward, source, decay: None, staging, window, inbox, tally, clock }
            .run(*variant)?;
        receive(forward, inbox, spectrum, clock)
    }

    /// The inverse 3D FFT of the decayed spectrum, and this PE's part of the checksum of its field.
    fn inverse(&mut self, decay: &Decay) -> Result<Complex64> {
        let Solver { world, variant, inverse, field, spectrum, inbox, window, clock, tally, .. } = self;
        let (source, decay, staging) = (&**spectrum, Some(decay), &mut **field);
        let window = *window;
        Exchange { world, transform: inverse, source, decay, staging, window, inbox, tally, clock }
            .run(*variant)?;
        receive(inverse, inbox, field, clock)?;
        let part = checksum::partial(&self.layout, &self.field);
        self.clock.lap(Phase::Other);
        Ok(part)
    }
}

/// Collective: waits until all PEs have sent their parts of a 3D FFT, and completes it in `target`.
fn receive(
    transform: &mut Transform,
    inbox: &mut Symmetric<'_, Complex64>,
    target: &mut [Complex64],
    clock: &mut Clock,
) -> Result<()> {
    inbox.exclusive(|received| {
        clock.lap(Phase::Barrier);
        for row in 0..transform.way().rows() {
            transform.outer(row, received, target, clock);
        }
    })?;
    clock.lap(Phase::Barrier);
    Ok(())
}

/// Adds the parts of the PEs, element by element.
fn sum_by_place(parts: &[Vec<Complex64>]) -> Vec<Complex64> {
    (0..parts[0].len()).map(|place| parts.iter().map(|part| part[place]).sum()).collect()
}

/// Maximum and mean over the PEs, element by element.
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
    use pelago::sim::SimParams;

    use super::super::classes::Class;
    use super::super::naive;
    use super::super::report::Report;
    use super::*;
    use crate::choice::Named;

    /// Boxes with every combination of odd lengths, few rows and one-element blocks, with their PE counts.
    const BOXES: [(Problem, &[usize]); 4] = [
        (Problem { nx: 4, ny: 4, nz: 4, iterations: 2 }, &[1, 2, 4]),
        (Problem { nx: 8, ny: 2, nz: 4, iterations: 2 }, &[1, 2, 4]),
        (Problem { nx: 6, ny: 5, nz: 3, iterations: 2 }, &[1, 3]),
        (Problem { nx: 8, ny: 2, nz: 8, iterations: 2 }, &[8]),
    ];

    /// Every variant, with one plane and with all planes in flight at a time.
    fn ways() -> impl Iterator<Item = (Variant, usize)> {
        Variant::ALL.iter().flat_map(|&variant| [(variant, 1), (variant, usize::MAX)])
    }

    fn on_threads<R: Send>(
        pes: usize,
        way: (Variant, usize),
        problem: Problem,
        body: impl Fn(Solver) -> R + Sync,
    ) -> Vec<R> {
        run(&Spmd::new(pes).counters(true), way, problem, body)
    }

    fn run<R: Send>(
        spmd: &Spmd,
        (variant, window): (Variant, usize),
        problem: Problem,
        body: impl Fn(Solver) -> R + Sync,
    ) -> Vec<R> {
        let solved = spmd.run(|world| {
            let layout = Layout::new(problem, world.n_pes(), world.my_pe()).unwrap();
            let mut solver = Solver::new(world, layout, Run { variant, simulated_gflops: 1.0 }).unwrap();
            solver.window = window;
            body(solver)
        });
        solved.unwrap()
    }

    #[test]
    fn distributed_spectrum_is_that_of_the_definition() {
        for (problem, counts) in BOXES {
            let expected = naive::spectrum(&problem, &naive::initial_field(&problem));
            for (way, &pes) in ways().flat_map(|way| counts.iter().map(move |pes| (way, pes))) {
                let parts = on_threads(pes, way, problem, |mut solver| {
                    solver.initialise();
                    solver.forward().unwrap();
                    solver.spectrum.to_vec()
                });
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
            for (way, &pes) in ways().flat_map(|way| counts.iter().map(move |pes| (way, pes))) {
                for outcome in on_threads(pes, way, problem, |solver| solver.solve(&mut |_| ()).unwrap()) {
                    naive::assert_close(&outcome.checksums, &expected);
                }
            }
        }
    }

    #[test]
    fn class_s_is_verified() {
        let class = Class::from_name("S").unwrap();
        for (pes, way) in [1, 2, 4, 8].into_iter().flat_map(|pes| ways().map(move |way| (pes, way))) {
            let verified = on_threads(pes, way, class.problem, |solver| {
                let mut steps_seen = Vec::new();
                let outcome = solver.solve(&mut |step| steps_seen.push(step)).unwrap();
                assert_eq!(steps_seen, [1, 2, 3, 4, 5, 6]);
                Report::new(class, way.0, pes, outcome).verified()
            });
            assert_eq!(verified, vec![true; pes], "{way:?} on {pes} PEs");
        }
    }

    #[test]
    fn phases_add_up_to_no_more_than_the_slowest_pe() {
        let (problem, counts) = BOXES[0];
        for (way, &pes) in ways().flat_map(|way| counts.iter().map(move |pes| (way, pes))) {
            for outcome in on_threads(pes, way, problem, |solver| solver.solve(&mut |_| ()).unwrap()) {
                let mean: f64 = outcome.phases.iter().map(|phase| phase.mean).sum();
                let max: f64 = outcome.phases.iter().map(|phase| phase.max).sum();
                assert!(mean <= outcome.seconds * (1.0 + 1e-9) && outcome.seconds <= max * (1.0 + 1e-9));
            }
        }
    }

    /// Table 1 of Bell et al. gives, for a cube of n^3 points on T PEs: T, n and n^2 / T messages of a PE in
    /// each 3D FFT.
    #[test]
    fn variants_send_what_the_formulas_say_and_the_runtime_counts_it() {
        let (n, problem) = (8, Problem { nx: 8, ny: 8, nz: 8, iterations: 3 });
        let transforms = 1 + problem.iterations;
        for (pes, way) in [1, 2, 4, 8].into_iter().flat_map(|pes| ways().map(move |way| (pes, way))) {
            let messages = match way.0 {
                Variant::Exchange => pes,
                Variant::Slabs => n,
                Variant::Pencils => n * n / pes,
            };
            let bytes = 16 * problem.points() / pes;
            on_threads(pes, way, problem, |solver| {
                let world = solver.world;
                let before = world.counters();
                let tally = solver.solve(&mut |_| ()).unwrap().tally;
                let after = world.counters();
                let seen = (tally.messages as usize, tally.bytes as usize);
                assert_eq!(seen, (transforms * messages, transforms * bytes), "{way:?} on {pes} PEs");
                // The runtime also saw the forward transform of the untimed round.
                let counted =
                    ((after.puts - before.puts) as usize, (after.put_bytes - before.put_bytes) as usize);
                let all = 1 + transforms;
                assert_eq!(counted, (all * messages, all * bytes), "{way:?} on {pes} PEs");
            });
        }
    }

    #[test]
    fn slabs_and_pencils_of_a_box_that_is_no_cube() {
        let problem = Problem { nx: 16, ny: 2, nz: 4, iterations: 1 };
        for (variant, messages) in [(Variant::Slabs, 4 + 16), (Variant::Pencils, 2 * 16 + 8 * 4)] {
            for outcome in on_threads(2, (variant, 1), problem, |solver| solver.solve(&mut |_| ()).unwrap()) {
                assert_eq!(outcome.tally, Tally { messages, bytes: 2 * 16 * 64 }, "{variant:?}");
            }
        }
    }

    #[test]
    fn a_network_that_reorders_changes_no_checksum() {
        let problem = Problem { nx: 8, ny: 2, nz: 4, iterations: 2 };
        let spectrum = naive::spectrum(&problem, &naive::initial_field(&problem));
        let expected = [1, 2].map(|steps| naive::checksum(&problem, &spectrum, steps));
        for (seed, way) in (0..4).flat_map(|seed| ways().map(move |way| (seed, way))) {
            let spmd = Spmd::new(4).sim(SimParams::chaos(seed));
            for outcome in run(&spmd, way, problem, |solver| solver.solve(&mut |_| ()).unwrap()) {
                naive::assert_close(&outcome.checksums, &expected);
            }
        }
    }

    /// The virtual seconds of the 3D FFTs of `problem`, by variant.
    fn virtual_seconds(pes: usize, problem: Problem, network: &SimParams) -> [f64; 3] {
        [Variant::Exchange, Variant::Slabs, Variant::Pencils].map(|variant| {
            let spmd = Spmd::new(pes).sim(network.clone());
            run(&spmd, (variant, usize::MAX), problem, |solver| solver.solve(&mut |_| ()).unwrap().seconds)[0]
        })
    }

    /// Where a transposition takes as long as the computation before it, which it can be hidden behind: two
    /// of three FFTs. Then exchange takes 5/3 of the computation alone, and the others little more than it.
    #[test]
    fn overlap_hides_a_transfer_that_takes_as_long_as_the_computation() {
        let problem = Class::from_name("S").unwrap().problem;
        let network = |bytes| SimParams { bandwidth_bytes_per_second: bytes, ..SimParams::default() };
        for pes in [2, 4] {
            let [computation, ..] = virtual_seconds(pes, problem, &network(1e15));
            let [exchange, slabs, pencils] = virtual_seconds(pes, problem, &network(267e6));
            let transfer = (exchange - computation) / (2.0 / 3.0 * computation);
            assert!((0.95..1.05).contains(&transfer), "of the computation before it: {transfer}");
            let ratios = [slabs / exchange, pencils / exchange];
            assert!(ratios.iter().all(|ratio| *ratio <= 0.65), "{pes} PEs: {ratios:?}");
        }
    }

    #[test]
    fn finer_pieces_hide_more_of_the_communication() {
        let problem = Class::from_name("S").unwrap().problem;
        let network = SimParams { bandwidth_bytes_per_second: 250e6, ..SimParams::default() };
        let [exchange, slabs, pencils] = virtual_seconds(8, problem, &network);
        assert!(slabs < 0.8 * exchange && pencils < slabs, "{exchange} {slabs} {pencils}");
        assert_eq!(virtual_seconds(8, problem, &network), [exchange, slabs, pencils]);
    }
}
