//! The communication of FT as a skeleton for modelled machines: the same plan, in which an FFT is only its
//! time. Invariant: for each pair of PEs a skeleton has the messages of a run, in number and bytes; a program
//! is made while it is taken, so that 16384 PEs need little memory.

use std::iter::{once, repeat_n};
use std::sync::Arc;

use num_complex::Complex64;
use pelago::coll::shape::Operation;
use pelago::coll::table::find;
use pelago_model::action::{Action, Collective, Program, Workload};
use pelago_model::time::{SECOND, Time};

use super::classes::Problem;
use super::layout::Layout;
use super::messages::{FtSplit, layout_of};
use super::phases::operations;
use super::plan::Plan;
use super::transport::Transport;
use super::transposition::{Message, Pieces, Transposition};
use super::variant::Variant;
use crate::choice::{Choice, Named};

/// Bytes of an element.
const ELEMENT_BYTES: usize = size_of::<Complex64>();

/// A run of FT without its data: one forward 3-D FFT, and then inverse ones.
#[derive(Clone, Debug)]
pub struct FtSkeleton {
    problem: Problem,
    split: FtSplit,
    variant: Variant,
    transport: Transport,
    flops: f64,
    barrier: Arc<Collective>,
}

impl FtSkeleton {
    /// The skeleton of a run on a box: variant and transport by their names (`one-sided` or `two-sided`), the
    /// number of inverse transforms, and the operations that a PE computes in a second.
    ///
    /// # Errors
    /// If there is no such variant or transport, or the box cannot be distributed like that.
    pub fn new(
        [nx, ny, nz]: [usize; 3],
        split: FtSplit,
        variant: &str,
        transport: &str,
        iterations: usize,
        flops: f64,
    ) -> Result<Self, String> {
        let problem = Problem { nx, ny, nz, iterations };
        let variant = by_name::<Variant>(variant)?;
        let transport = by_name::<Transport>(transport)?;
        if transport == Transport::Collectives {
            return Err(
                "a skeleton is one-sided or two-sided: all-to-alls that overlap are not modelled".into()
            );
        }
        layout_of(problem, split, 0)?;
        let dissemination = find(Operation::Barrier, "dissemination").ok_or("no dissemination barrier")?;
        let barrier = Arc::new(Collective::world(dissemination, split.pes(), 0, 1));
        Ok(FtSkeleton { problem, split, variant, transport, flops, barrier })
    }

    /// The number of elements of the box.
    pub fn points(&self) -> usize {
        self.problem.points()
    }

    /// The time of `count` FFTs of `len` elements.
    fn computing(&self, count: usize, len: usize) -> Action {
        Action::Compute((count as f64 * operations(len) / self.flops * SECOND as f64).round() as Time)
    }

    fn barriers(&self, count: usize) -> impl Iterator<Item = Action> + use<> {
        repeat_n(Action::Collective(self.barrier.clone()), count)
    }

    /// A 3-D FFT of a PE.
    fn transform(&self, plan: Plan) -> impl Iterator<Item = Action> + use<> {
        let (this, last) = (self.clone(), *plan.last());
        let (rounds, outer) = (plan.transpositions.len(), plan.outer_len());
        let elements = last.planes * last.plane_len();
        let end = [copy(elements), self.computing(elements / outer, outer)];
        let has_whole_rows = plan.has_whole_rows();
        let rounds = plan.transpositions.into_iter().enumerate().flat_map(move |(number, round)| {
            // The exclusive phase of an inbox begins and ends with one; that of the first of two ends here.
            let barriers = if number + 1 < rounds { 1 } else { rounds };
            this.round(round, number > 0, has_whole_rows).chain(this.barriers(barriers))
        });
        rounds.chain(end).chain(self.barriers(1))
    }

    /// A round of communication with the FFTs before it.
    fn round(
        &self,
        round: Transposition,
        is_received: bool,
        has_whole_rows: bool,
    ) -> impl Iterator<Item = Action> + use<> {
        let (this, is_two_sided) = (self.clone(), self.transport == Transport::TwoSided);
        let posted = (0..if is_two_sided { round.steps() } else { 0 }).flat_map(move |step| {
            let peers = round.team.in_turn().filter(move |rank| *rank != round.team.me);
            peers.map(move |rank| Action::Receive { of: round.team.pe(rank) as u32, tag: step as u32 })
        });
        let units = (0..round.units()).flat_map(move |unit| {
            let rows = round.unit_len() / round.row_len;
            let lines = round.unit_planes() * round.row_len;
            let gathered = is_received.then(|| copy(round.unit_len()));
            let turned = [this.computing(lines, round.line_len()), copy(round.unit_len())];
            let is_whole = has_whole_rows && round.pieces != Pieces::Pencils;
            let completed = is_whole.then(|| this.computing(rows, round.row_len));
            let this = this.clone();
            let sent = round.messages_of(unit).flat_map(move |message| {
                let is_row = has_whole_rows && round.pieces == Pieces::Pencils;
                let completed = is_row.then(|| this.computing(1, round.row_len));
                completed.into_iter().chain(once(this.send(&round, message)))
            });
            gathered.into_iter().chain(turned).chain(completed).chain(sent)
        });
        posted.chain(units).chain(once(if is_two_sided { Action::Finish } else { Action::Complete }))
    }

    fn send(&self, round: &Transposition, message: Message) -> Action {
        let (to, bytes) = (message.pe as u32, (message.len * ELEMENT_BYTES) as u64);
        match self.transport {
            Transport::TwoSided if message.rank == round.team.me => Action::Copy { bytes },
            Transport::TwoSided => Action::Send { to, bytes, tag: message.step as u32 },
            _ => Action::Put { to, bytes, signal: None },
        }
    }
}

impl Workload for FtSkeleton {
    fn ranks(&self) -> usize {
        self.split.pes()
    }

    fn program(&self, rank: usize) -> Program<'_> {
        // `new` has tried the box, and it fits every PE or none.
        let layout = layout_of(self.problem, self.split, rank).into_iter();
        let plans = layout.flat_map(move |layout: Layout| {
            let inverse = layout.inverse(self.variant);
            once(layout.forward(self.variant)).chain(repeat_n(inverse, self.problem.iterations))
        });
        Box::new(plans.flat_map(|plan| self.transform(plan)))
    }
}

fn copy(elements: usize) -> Action {
    Action::Copy { bytes: (elements * ELEMENT_BYTES) as u64 }
}

fn by_name<T: Named>(name: &str) -> Result<T, String> {
    match Choice::from_name(name)? {
        Choice::One(one) => Ok(one),
        Choice::All => Err(format!("a skeleton has one {}", T::NOUN)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pelago::Spmd;
    use pelago_model::{Machine, run};

    use super::super::classes::Class;
    use super::super::grid::Grid;
    use super::super::plan::Tally;
    use super::super::solver::{Run, Solver};
    use super::*;

    const TRANSPORTS: [Transport; 2] = [Transport::OneSided, Transport::TwoSided];

    /// The distributions of a box over `pes` PEs, with their variants.
    fn splits(problem: &Problem, pes: usize) -> Vec<(FtSplit, Variant)> {
        let planes = problem.nz.is_multiple_of(pes) && problem.nx.is_multiple_of(pes);
        let planes = planes.then_some(FtSplit::Planes(pes)).into_iter();
        let of =
            |split: FtSplit, is_2d: bool| Variant::of(is_2d).iter().map(move |variant| (split, *variant));
        let grids = Grid::possible(problem, pes).into_iter().map(|grid| FtSplit::Grid(grid.ty, grid.tz));
        planes.flat_map(|split| of(split, false)).chain(grids.flat_map(|split| of(split, true))).collect()
    }

    fn skeleton(problem: Problem, (split, variant): (FtSplit, Variant), transport: Transport) -> FtSkeleton {
        let Problem { nx, ny, nz, iterations } = problem;
        let names = (variant.name(), transport.name());
        FtSkeleton::new([nx, ny, nz], split, names.0, names.1, iterations, 1e9).unwrap()
    }

    /// The messages of a rank to each PE, and the number of its barriers. A piece that the rank copies to
    /// itself is no message.
    fn sent(skeleton: &FtSkeleton, rank: usize) -> (BTreeMap<usize, Tally>, u64) {
        let (mut sent, mut barriers) = (BTreeMap::<usize, Tally>::new(), 0);
        for action in skeleton.program(rank) {
            let (to, bytes) = match action {
                Action::Put { to, bytes, signal: None } | Action::Send { to, bytes, .. } => {
                    (to as usize, bytes)
                }
                Action::Collective(_) => {
                    barriers += 1;
                    continue;
                }
                _ => continue,
            };
            let of = sent.entry(to).or_default();
            *of = of.plus(Tally { messages: 1, bytes });
        }
        (sent, barriers)
    }

    /// Runs the application and returns what each PE sent to each PE; with one-sided transport the runtime's
    /// own counters have seen the same puts.
    fn run_application(problem: Problem, way: (FtSplit, Variant), transport: Transport) -> Vec<Vec<Tally>> {
        let (split, variant) = way;
        let results = Spmd::new(split.pes()).counters(true).run(|world| {
            let layout = layout_of(problem, split, world.my_pe()).unwrap();
            let run = Run { variant, transport, simulated_gflops: 1.0 };
            let mut solver = Solver::new(world, layout, run).unwrap();
            solver.initialise();
            solver.forward().unwrap();
            let before = world.counters();
            solver.initialise();
            solver.forward().unwrap();
            let between = world.counters();
            let outcome = solver.solve(&mut |_| ()).unwrap();
            let after = world.counters();
            if transport == Transport::OneSided {
                // `solve` has an untimed forward transform more.
                let untimed = between.puts - before.puts;
                let seen = after.puts - between.puts - untimed;
                assert_eq!(seen, Tally::sum(&outcome.sent).messages, "{split:?} {variant:?}");
            }
            outcome.sent
        });
        results.unwrap()
    }

    #[test]
    fn a_skeleton_sends_between_each_pair_what_the_application_sends() {
        let problem = Problem { nx: 16, ny: 16, nz: 16, iterations: 2 };
        let mut compared = 0;
        for pes in [2, 4, 8, 16] {
            for way in splits(&problem, pes) {
                for transport in TRANSPORTS {
                    let real = run_application(problem, way, transport);
                    let skeleton = skeleton(problem, way, transport);
                    for (rank, real) in real.iter().enumerate() {
                        let (mut ours, _) = sent(&skeleton, rank);
                        if transport == Transport::TwoSided {
                            // The application counts its own pieces, which it copies.
                            ours.insert(rank, real[rank]);
                        }
                        let real = real.iter().copied().enumerate().filter(|(_, tally)| tally.messages > 0);
                        assert_eq!(ours, real.collect(), "{way:?} {transport:?}: PE {rank}");
                        compared += 1;
                    }
                }
            }
        }
        assert_eq!(compared, 2 * (2 + 4 + 8 + 16) * 3 + 2 * 2 * (2 * 2 + 4 * 3 + 8 * 4 + 16 * 5));
    }

    /// Every receive has its message, and the simulator counts what the skeleton sends.
    #[test]
    fn every_skeleton_ends_on_a_modelled_machine() {
        let machine = Machine::load("bluegene-p").unwrap();
        let problem = Class::from_name("S").unwrap().problem;
        for pes in [1, 4, 16] {
            for way in splits(&problem, pes) {
                let [one, two] = TRANSPORTS.map(|transport| {
                    let skeleton = skeleton(Problem { iterations: 1, ..problem }, way, transport);
                    (run(&machine, &skeleton).unwrap_or_else(|error| panic!("{way:?}: {error}")), skeleton)
                });
                let barriers = sent(&one.1, 0).1 * (pes as f64).log2() as u64 * pes as u64;
                let puts: u64 =
                    (0..pes).flat_map(|rank| sent(&one.1, rank).0.into_values()).map(|t| t.messages).sum();
                assert_eq!(one.0.messages, puts + barriers, "{way:?}");
                assert!(two.0.bytes <= one.0.bytes, "{way:?}: pieces of a PE to itself are copies");
            }
        }
    }

    #[test]
    fn computation_is_that_of_the_customary_count() {
        let problem = Problem { nx: 64, ny: 64, nz: 64, iterations: 0 };
        for way in splits(&problem, 4) {
            let skeleton = skeleton(problem, way, Transport::OneSided);
            let computed: Time = skeleton
                .program(3)
                .map(|action| if let Action::Compute(time) = action { time } else { 0 })
                .sum();
            let wanted = (operations(64) * 3.0 * 4096.0 / 4.0 / 1e9 * SECOND as f64) as Time;
            assert!(computed.abs_diff(wanted) < 4096, "{way:?}: {computed} beside {wanted}");
        }
    }

    #[test]
    fn wrong_names_and_boxes_are_refused() {
        let refused = |variant, transport, split| {
            FtSkeleton::new([8, 8, 8], split, variant, transport, 1, 1e9).unwrap_err()
        };
        assert!(refused("slap", "one-sided", FtSplit::Planes(2)).contains("did you mean slabs?"));
        assert!(refused("slabs", "collectives", FtSplit::Planes(2)).contains("one-sided or two-sided"));
        assert!(refused("all", "one-sided", FtSplit::Planes(2)).contains("one variant"));
        assert!(refused("slabs", "one-sided", FtSplit::Planes(3)).contains("3 PEs"));
    }
}
