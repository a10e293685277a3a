//! NAS FT as a run of one PE: a 3-D FFT of a random field, then for every time step the evolution of its
//! spectrum, an inverse 3-D FFT and a checksum. Timed as NPB does: after one untimed initialisation and
//! forward transform, from initial field and plans to the last checksum. Invariant: an inbox is written by
//! peers only between the barriers that its exclusive phases make, and read by its owner only within them. A
//! transform's target is also the staging buffer of its stages, because it is written only after them.

use std::cell::RefCell;

use num_complex::Complex64;
use pelago::Result;
use pelago::prelude::*;
use rustfft::FftDirection;
use serde::Serialize;

use super::checksum;
use super::classes::Problem;
use super::evolve::Decay;
use super::exchange::{Nothing, exchange};
use super::layout::Layout;
use super::overlap::{self, Overlap};
use super::phases::{Clock, Phase};
use super::plan::{Plan, Tally};
use super::random::Random;
use super::transform::{Source, Stage, Transform};
use super::transport::{Carrier, Lane, Transport};
use super::variant::Variant;
use crate::buffer::Buffer;
use crate::collect::collect;

/// How often the messages of a 3-D FFT are sent alone; the shortest time counts.
const ALONE_REPEATS: usize = 3;

/// The results of a run, the same on every PE except for what was sent.
pub(super) struct Outcome {
    /// The time of the slowest PE.
    pub(super) seconds: f64,
    /// Seconds spent in each phase, in the order of `Phase::ALL`.
    pub(super) phases: Vec<PhaseSeconds>,
    /// One checksum an iteration.
    pub(super) checksums: Vec<Complex64>,
    /// This PE's transfers to each PE within the timed part.
    pub(super) sent: Vec<Tally>,
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
    pub(super) transport: Transport,
    /// The speed of a PE where time is virtual; without effect elsewhere.
    pub(super) simulated_gflops: f64,
}

/// Collective: runs the problem of `layout` and calls `progress` after every iteration with the number done;
/// then measures the messages of the run alone. In a simulation all times are virtual: communication takes
/// the time of the simulated network, FFTs take the time that follows from the given rate, and all other
/// computation takes no time.
pub(super) fn solve(
    world: &World,
    layout: Layout,
    run: Run,
    progress: &mut dyn FnMut(usize),
) -> Result<(Outcome, Overlap)> {
    let mut solver = Solver::new(world, layout, run)?;
    let outcome = solver.solve(progress)?;
    let overlap = solver.overlap(&outcome)?;
    Ok((outcome, overlap))
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
    /// The transport, and the buffers for the pieces that arrive.
    rounds: Rounds<'w>,
}

/// The means of the rounds of communication of a 3-D FFT.
pub(super) struct Rounds<'w> {
    carrier: Box<dyn Carrier + 'w>,
    /// One a round.
    inboxes: Vec<Symmetric<'w, Complex64>>,
    /// The number of units of a round that may be in the staging buffer at a time.
    window: usize,
    pub(super) clock: Clock<'w>,
    /// The messages that were sent to each PE.
    sent: RefCell<Vec<Tally>>,
}

impl<'w> Solver<'w> {
    pub(super) fn new(world: &'w World, layout: Layout, run: Run) -> Result<Self> {
        let Run { variant, transport, simulated_gflops } = run;
        let [forward, inverse] = transforms(&layout, variant);
        let inboxes: Vec<_> =
            (0..layout.rounds()).map(|_| world.alloc(layout.len())).collect::<Result<_>>()?;
        let carrier = transport.open(&layout, &inboxes[0])?;
        Ok(Solver {
            world,
            layout,
            variant,
            forward,
            inverse,
            field: Buffer::new(layout.len()),
            spectrum: Buffer::new(layout.len()),
            rounds: Rounds {
                window: if carrier.frees_staging() { 1 } else { usize::MAX },
                carrier,
                inboxes,
                clock: Clock::start(world, simulated_gflops),
                sent: RefCell::new(vec![Tally::default(); world.n_pes()]),
            },
        })
    }

    /// Collective: an untimed initialisation and forward transform, then the timed run.
    pub(super) fn solve(&mut self, progress: &mut dyn FnMut(usize)) -> Result<Outcome> {
        let Solver { world, layout, .. } = *self;
        self.initialise();
        self.forward()?;
        world.barrier();
        self.rounds.clock.restart();
        self.rounds.sent.borrow_mut().fill(Tally::default());
        self.initialise();
        self.forward()?;
        let mut parts = Vec::with_capacity(layout.problem.iterations);
        for step in 1..=layout.problem.iterations {
            parts.push(self.inverse(&Decay::after(&layout.problem, step))?);
            progress(step);
        }
        let checksums = sum_by_place(&collect(world, &parts)?);
        self.rounds.clock.lap(Phase::Other);
        let sent = self.rounds.sent.borrow().clone();
        debug_assert_eq!(Tally::sum(&sent), self.planned(), "messages of the run and of its plan");
        let times = collect(world, &self.rounds.clock.seconds())?;
        Ok(Outcome {
            seconds: times.iter().map(|phases| phases.iter().sum()).fold(0.0, f64::max),
            phases: max_and_mean(&times),
            checksums,
            sent,
        })
    }

    /// The transfers of a run according to its plans: one forward 3-D FFT and one inverse an iteration.
    fn planned(&self) -> Tally {
        let inverse = self.inverse.plan().tally().times(self.layout.problem.iterations as u64);
        self.forward.plan().tally().plus(inverse)
    }

    /// Collective: sends the messages of a run once more, with nothing computed between them, and compares
    /// the times. It overwrites field and spectrum.
    fn overlap(&mut self, outcome: &Outcome) -> Result<Overlap> {
        let plans = [self.forward.plan(), self.inverse.plan()].map(Plan::clone);
        let mut seconds = 0.0;
        for (plan, times) in plans.iter().zip([1, self.layout.problem.iterations]) {
            let mut least = f64::INFINITY;
            for _ in 0..ALONE_REPEATS {
                self.world.barrier();
                self.rounds.clock.restart();
                self.rounds.send_alone(plan, &mut self.field)?;
                least = least.min(overlap::communication(&self.rounds.clock.seconds()));
            }
            seconds += least * times as f64;
        }
        let alone: f64 = collect(self.world, &[seconds])?.iter().map(|seconds| seconds[0]).sum();
        let means: Vec<_> = outcome.phases.iter().map(|phase| phase.mean).collect();
        Ok(Overlap::new(
            overlap::communication(&means),
            alone / self.layout.pes as f64,
            plans[0].overlap_efficiency(),
            self.rounds.carrier.is_immediate() || !plans[0].overlaps(),
        ))
    }

    /// Plans the FFTs and fills this PE's part of the grid with the initial field.
    pub(super) fn initialise(&mut self) {
        [self.forward, self.inverse] = transforms(&self.layout, self.variant);
        let Problem { nx, ny, .. } = self.layout.problem;
        let [_, ys, zs] = self.layout.spatial();
        for (z, plane) in zs.zip(self.field.chunks_exact_mut(nx * ys.len())) {
            let mut random = Random::after(2 * (nx * (ny * z + ys.start)) as u64);
            plane.chunks_exact_mut(nx).for_each(|line| random.fill(line));
        }
        self.rounds.clock.lap(Phase::Other);
    }

    /// The 3-D FFT of the initial field into the spectrum.
    pub(super) fn forward(&mut self) -> Result<()> {
        self.rounds.transform(&mut self.forward, Source::Field(&self.field), &mut self.spectrum)
    }

    /// The clock that all stages book their time on.
    pub(super) fn clock(&self) -> &Clock<'w> {
        &self.rounds.clock
    }

    /// The inverse 3-D FFT of the decayed spectrum, and this PE's part of the checksum of its field.
    fn inverse(&mut self, decay: &Decay) -> Result<Complex64> {
        let source = Source::Spectrum(&self.spectrum, decay);
        self.rounds.transform(&mut self.inverse, source, &mut self.field)?;
        let part = checksum::partial(&self.layout, &self.field);
        self.rounds.clock.lap(Phase::Other);
        Ok(part)
    }
}

impl Rounds<'_> {
    /// Collective: a 3-D FFT from `source` to `target`.
    fn transform(
        &mut self,
        transform: &mut Transform,
        source: Source,
        target: &mut [Complex64],
    ) -> Result<()> {
        let plan = transform.plan().clone();
        let Rounds { carrier, inboxes, window, clock, sent } = self;
        let (clock, sent) = (&*clock, &*sent);
        let mut run = |number: usize, source: Source, inbox: &Symmetric<'_, Complex64>| {
            let lane = Lane { transposition: &plan.transpositions[number], inbox, clock, sent };
            let mut stage = Stage { transform, number, source, clock };
            exchange(&**carrier, &lane, &mut stage, target, *window)
        };
        match &mut inboxes[..] {
            [] => (),
            [only] => run(0, source, only)?,
            [first, second, ..] => {
                run(0, source, first)?;
                first.exclusive(|received| {
                    clock.lap(Phase::Barrier);
                    run(1, Source::Received(received), second)
                })??;
                clock.lap(Phase::Barrier);
            }
        }
        if let Some(last) = inboxes.last_mut() {
            last.exclusive(|received| {
                clock.lap(Phase::Barrier);
                transform.finish(received, target, clock);
            })?;
        }
        clock.lap(Phase::Barrier);
        Ok(())
    }

    /// Collective: the messages of a 3-D FFT with nothing computed between them; their contents are those of
    /// `staging`.
    fn send_alone(&mut self, plan: &Plan, staging: &mut [Complex64]) -> Result<()> {
        let Rounds { carrier, inboxes, window, clock, sent } = self;
        for (transposition, inbox) in plan.transpositions.iter().zip(inboxes) {
            let lane = Lane { transposition, inbox, clock, sent };
            exchange(&**carrier, &lane, &mut Nothing, staging, *window)?;
            inbox.exclusive(|_| clock.lap(Phase::Barrier))?;
            clock.lap(Phase::Barrier);
        }
        Ok(())
    }
}

/// The forward and the inverse 3-D FFT.
fn transforms(layout: &Layout, variant: Variant) -> [Transform; 2] {
    [
        Transform::new(layout.forward(variant), FftDirection::Forward),
        Transform::new(layout.inverse(variant), FftDirection::Inverse),
    ]
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
    //! against the plan and the formulas for messages.

    use pelago::Spmd;
    use pelago::sim::SimParams;

    use super::super::classes::Class;
    use super::super::grid::Grid;
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
    /// The same for process grids: boxes whose axes differ, and PE counts with several grids.
    const GRID_BOXES: [(Problem, &[usize]); 4] = [
        (Problem { nx: 4, ny: 4, nz: 4, iterations: 2 }, &[1, 2, 4, 8]),
        (Problem { nx: 8, ny: 2, nz: 4, iterations: 2 }, &[2, 4]),
        (Problem { nx: 4, ny: 12, nz: 3, iterations: 2 }, &[6]),
        (Problem { nx: 2, ny: 4, nz: 8, iterations: 2 }, &[8]),
    ];

    /// A way to run: everything but the problem.
    #[derive(Clone, Copy, Debug)]
    struct Way {
        variant: Variant,
        transport: Transport,
        pes: usize,
        grid: Option<Grid>,
        /// One unit of a round in flight at a time, or all.
        window: usize,
    }

    impl Way {
        fn layout(&self, problem: Problem, me: usize) -> Layout {
            match self.grid {
                None => Layout::new(problem, self.pes, me).unwrap(),
                Some(grid) => Layout::on_grid(problem, grid, me).unwrap(),
            }
        }

        fn run(&self) -> Run {
            Run { variant: self.variant, transport: self.transport, simulated_gflops: 1.0 }
        }
    }

    /// Every variant over every transport on `pes` PEs, on every process grid.
    fn ways(problem: Problem, pes: usize, with_1d: bool) -> Vec<Way> {
        let one = with_1d.then_some(None);
        let grids = one.into_iter().chain(Grid::possible(&problem, pes).into_iter().map(Some));
        let mut ways = Vec::new();
        for grid in grids {
            for (&variant, &transport) in
                Variant::of(grid.is_some()).iter().flat_map(|v| Transport::ALL.iter().map(move |t| (v, t)))
            {
                let windows: &[usize] =
                    if transport == Transport::OneSided { &[1, usize::MAX] } else { &[1] };
                ways.extend(windows.iter().map(|&window| Way { variant, transport, pes, grid, window }));
            }
        }
        ways
    }

    /// Every small box with every way to run it.
    fn boxes() -> impl Iterator<Item = (Problem, Way)> {
        let all = BOXES.into_iter().map(|boxes| (boxes, true));
        let all = all.chain(GRID_BOXES.into_iter().map(|boxes| (boxes, false)));
        all.flat_map(|((problem, counts), with_1d)| {
            counts
                .iter()
                .flat_map(move |&pes| ways(problem, pes, with_1d).into_iter().map(move |way| (problem, way)))
        })
    }

    fn on_threads<R: Send>(way: Way, problem: Problem, body: impl Fn(Solver) -> R + Sync) -> Vec<R> {
        run(&Spmd::new(way.pes).counters(true), way, problem, body)
    }

    fn run<R: Send>(spmd: &Spmd, way: Way, problem: Problem, body: impl Fn(Solver) -> R + Sync) -> Vec<R> {
        let solved = spmd.run(|world| {
            let mut solver = Solver::new(world, way.layout(problem, world.my_pe()), way.run()).unwrap();
            solver.rounds.window = way.window;
            body(solver)
        });
        solved.unwrap_or_else(|error| panic!("{way:?} of {problem}: {error}"))
    }

    #[test]
    fn distributed_spectrum_is_that_of_the_definition() {
        for (problem, way) in boxes() {
            let expected = naive::spectrum(&problem, &naive::initial_field(&problem));
            let parts = on_threads(way, problem, |mut solver| {
                solver.initialise();
                solver.forward().unwrap();
                solver.spectrum.to_vec()
            });
            let mut spectrum = vec![Complex64::ZERO; problem.points()];
            for (me, part) in parts.iter().enumerate() {
                let layout = way.layout(problem, me);
                for (index, mode) in spectrum.iter_mut().enumerate() {
                    let (x, yz) = (index / (problem.ny * problem.nz), index % (problem.ny * problem.nz));
                    if let Some(own) = layout.spectral_index([x, yz / problem.nz, yz % problem.nz]) {
                        *mode = part[own];
                    }
                }
            }
            naive::assert_close(&spectrum, &expected);
        }
    }

    /// The checksums of a problem by definition.
    fn defined(problem: &Problem) -> Vec<Complex64> {
        let spectrum = naive::spectrum(problem, &naive::initial_field(problem));
        (1..=problem.iterations).map(|steps| naive::checksum(problem, &spectrum, steps)).collect()
    }

    #[test]
    fn every_checksum_is_that_of_the_definition_on_every_pe() {
        let mut known = (Problem { nx: 0, ny: 0, nz: 0, iterations: 0 }, Vec::new());
        for (problem, way) in boxes() {
            if known.0 != problem {
                known = (problem, defined(&problem));
            }
            for outcome in on_threads(way, problem, |mut solver| solver.solve(&mut |_| ()).unwrap()) {
                naive::assert_close(&outcome.checksums, &known.1);
            }
        }
    }

    #[test]
    fn class_s_is_verified() {
        let class = Class::from_name("S").unwrap();
        for way in [1, 2, 4, 8].into_iter().flat_map(|pes| ways(class.problem, pes, true)) {
            let verified = on_threads(way, class.problem, |mut solver| {
                let mut steps_seen = Vec::new();
                let outcome = solver.solve(&mut |step| steps_seen.push(step)).unwrap();
                assert_eq!(steps_seen, [1, 2, 3, 4, 5, 6]);
                let overlap = solver.overlap(&outcome).unwrap();
                Report::new(class, way.run(), solver.layout, outcome, overlap).verified()
            });
            assert_eq!(verified, vec![true; way.pes], "{way:?}");
        }
    }

    #[test]
    fn phases_add_up_to_no_more_than_the_slowest_pe() {
        for way in [1, 2, 4].into_iter().flat_map(|pes| ways(BOXES[0].0, pes, true)) {
            for outcome in on_threads(way, BOXES[0].0, |mut solver| solver.solve(&mut |_| ()).unwrap()) {
                let mean: f64 = outcome.phases.iter().map(|phase| phase.mean).sum();
                let max: f64 = outcome.phases.iter().map(|phase| phase.max).sum();
                assert!(mean <= outcome.seconds * (1.0 + 1e-9) && outcome.seconds <= max * (1.0 + 1e-9));
            }
        }
    }

    /// Table 1 of Bell et al. gives, for a cube of n^3 points on T PEs: T, n and n^2 / T messages of a PE in
    /// each 3-D FFT; the deck of Nishtala et al. TY + TZ packed ones, and n / TZ times as many slabs (and in
    /// the inverse, whose planes TY PEs share, n / TY times).
    #[test]
    fn variants_send_what_the_formulas_say_and_the_runtime_counts_it() {
        let (n, problem) = (8, Problem { nx: 8, ny: 8, nz: 8, iterations: 3 });
        for way in [1, 2, 4, 8].into_iter().flat_map(|pes| ways(problem, pes, true)) {
            let [forward, inverse] = match (way.variant, way.grid) {
                (Variant::Exchange, _) => [way.pes; 2],
                (Variant::Pencils, _) => [n * n / way.pes; 2],
                (Variant::PackedSlabs, grid) => [grid.map_or(0, |grid| grid.ty + grid.tz); 2],
                (Variant::Slabs, None) => [n; 2],
                (Variant::Slabs, Some(Grid { ty, tz })) => [n / tz * (ty + tz), n / ty * (ty + tz)],
            };
            let rounds = if way.grid.is_some() { 2 } else { 1 };
            let bytes = rounds * 16 * problem.points() / way.pes;
            on_threads(way, problem, |mut solver| {
                let world = solver.world;
                let before = world.counters();
                let tally = Tally::sum(&solver.solve(&mut |_| ()).unwrap().sent);
                let after = world.counters();
                let seen = (tally.messages as usize, tally.bytes as usize);
                assert_eq!(seen, (forward + 3 * inverse, 4 * bytes), "{way:?}");
                assert_eq!(tally, solver.planned(), "{way:?}");
                if way.transport == Transport::OneSided {
                    // The runtime also saw the forward transform of the untimed round.
                    let counted =
                        ((after.puts - before.puts) as usize, (after.put_bytes - before.put_bytes) as usize);
                    assert_eq!(counted, (2 * forward + 3 * inverse, 5 * bytes), "{way:?}");
                }
            });
        }
    }

    #[test]
    fn slabs_and_pencils_of_a_box_that_is_no_cube() {
        let problem = Problem { nx: 16, ny: 2, nz: 4, iterations: 1 };
        for (variant, messages) in [(Variant::Slabs, 4 + 16), (Variant::Pencils, 2 * 16 + 8 * 4)] {
            let way = Way { variant, transport: Transport::OneSided, pes: 2, grid: None, window: 1 };
            for outcome in on_threads(way, problem, |mut solver| solver.solve(&mut |_| ()).unwrap()) {
                assert_eq!(Tally::sum(&outcome.sent), Tally { messages, bytes: 2 * 16 * 64 }, "{variant:?}");
            }
        }
    }

    #[test]
    fn a_network_that_reorders_changes_no_checksum() {
        let problem = Problem { nx: 8, ny: 4, nz: 4, iterations: 2 };
        let expected = defined(&problem);
        for (seed, way) in
            (0..4).flat_map(|seed| ways(problem, 4, true).into_iter().map(move |way| (seed, way)))
        {
            let spmd = Spmd::new(4).sim(SimParams::chaos(seed));
            for outcome in run(&spmd, way, problem, |mut solver| solver.solve(&mut |_| ()).unwrap()) {
                naive::assert_close(&outcome.checksums, &expected);
            }
        }
    }

    /// The results in virtual time of a way whose units are all in flight at a time.
    fn simulated(way: Way, problem: Problem, network: &SimParams) -> (f64, Overlap) {
        let spmd = Spmd::new(way.pes).sim(network.clone());
        let results = run(&spmd, Way { window: usize::MAX, ..way }, problem, |mut solver| {
            let outcome = solver.solve(&mut |_| ()).unwrap();
            let overlap = solver.overlap(&outcome).unwrap();
            (outcome.seconds, overlap)
        });
        results[0]
    }

    /// The virtual seconds of a run of `problem` in the 1-D decomposition, by variant, and the overlap.
    fn virtual_results(pes: usize, problem: Problem, network: &SimParams) -> [(f64, Overlap); 3] {
        [Variant::Exchange, Variant::Slabs, Variant::Pencils].map(|variant| {
            let way = Way { variant, transport: Transport::OneSided, pes, grid: None, window: usize::MAX };
            simulated(way, problem, network)
        })
    }

    fn virtual_seconds(pes: usize, problem: Problem, network: &SimParams) -> [f64; 3] {
        virtual_results(pes, problem, network).map(|(seconds, _)| seconds)
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
        let results = virtual_results(8, problem, &network);
        let [exchange, slabs, pencils] = results.map(|(seconds, _)| seconds);
        assert!(slabs < 0.8 * exchange && pencils < slabs, "{exchange} {slabs} {pencils}");
        let [exchange, slabs, pencils] = results.map(|(_, overlap)| overlap.share);
        assert!(exchange < 0.05 && slabs > 0.7 && pencils > slabs, "{exchange} {slabs} {pencils}");
        assert_eq!(virtual_results(8, problem, &network), results);
    }

    /// On a process grid slabs overlap in both rounds, packed slabs in none.
    #[test]
    fn slabs_hide_communication_on_a_process_grid() {
        let problem = Class::from_name("S").unwrap().problem;
        let network = SimParams { bandwidth_bytes_per_second: 500e6, ..SimParams::default() };
        let [(packed, packed_overlap), (slabs, slabs_overlap)] =
            [Variant::PackedSlabs, Variant::Slabs].map(|variant| {
                let grid = Some(Grid { ty: 2, tz: 2 });
                let way = Way { variant, transport: Transport::OneSided, pes: 4, grid, window: 1 };
                simulated(way, problem, &network)
            });
        assert!(slabs < 0.8 * packed, "{slabs} {packed}");
        assert!(
            packed_overlap.share < 0.05 && slabs_overlap.share > 0.7,
            "{packed_overlap:?} {slabs_overlap:?}"
        );
    }
}
