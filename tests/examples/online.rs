//! Checks the online tuner of collective operations: how good its choices are, and the cost of its trials.
//!
//! For each operation and size the program makes calls until the tuner has chosen, and then measures the
//! forms that it has tried and all others, in rounds that have a block of calls of each form. It prints for
//! each cell the form that was chosen and the best one, with medians of a call, whether the choice is within
//! 10 % of the best or within its quartiles, the same of the form with the lowest estimate, and the cost of a
//! trial in hundredths of 10,000 calls: how much longer the calls of the trial take than as many calls after
//! it, the medians of several trials by teams of their own. A second line has the medians of all forms.
//!
//! ```console
//! $ cargo build --release -p pelago-cli -p pelago-tests --example online --bin pelago
//! $ target/release/pelago run -n 4 --env PELAGO_ROUTE=net target/release/examples/online reduce 8,65536
//! ```

use pelago::binding::{init_with, node_of};
use pelago::coll::candidates::Candidate;
use pelago::coll::online::{Form, Found};
use pelago::coll::select::Laws;
use pelago::coll::shape::{Operation, Shape};
use pelago::prelude::*;
use std::collections::BTreeSet;
use std::time::Instant;

const SETTINGS: [(&str, &str); 2] = [("PELAGO_COLL_ONLINE", "on"), ("PELAGO_COLL_ONLINE_FOLDER", "off")];
const INTEGERS: Laws = Laws { is_associative: true, is_commutative: true };
const OPERATIONS: [Operation; 5] = [
    Operation::Broadcast,
    Operation::Reduce,
    Operation::AllReduce,
    Operation::AllGather,
    Operation::AllToAll,
];
const SIZES: [usize; 8] = [8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const ROUNDS: usize = 11;
/// Calls after which every trial is over.
const TRIAL_CALLS: usize = 2200;
/// The time of a block in nanoseconds, about.
const BLOCK_NS: f64 = 10e6;

/// The memory of the calls, and the words by which the PEs agree on times.
struct Bench<'w> {
    world: &'w World,
    target: Symmetric<'w, u64>,
    source: Symmetric<'w, u64>,
    times: Symmetric<'w, f64>,
}

/// An operation with blocks of one size.
#[derive(Clone, Copy)]
struct Cell {
    operation: Operation,
    bytes: usize,
}

/// The verdict on a cell.
struct Judged {
    /// Whether the choice is within 10 % of the best form, or within its quartiles.
    choice: bool,
    /// The same of the form with the lowest estimate, without a trial.
    guess: bool,
    /// The cost of the trial in percent of 10,000 calls.
    cost: f64,
}

impl Cell {
    fn laws(self) -> Option<Laws> {
        self.operation.combines().then_some(INTEGERS)
    }
}

impl Bench<'_> {
    fn call(&self, team: &Team<'_>, cell: Cell, number: usize) {
        let (count, n) = (cell.bytes / 8, self.world.n_pes());
        let (blocks, one) = (self.target.span(0..n * count), self.target.span(0..count));
        let (source, all) = (self.source.span(0..count), self.source.span(0..n * count));
        match cell.operation {
            Operation::Broadcast => team.broadcast(number % n, one, source),
            Operation::Reduce => team.reduce(ReduceOp::Sum, number % n, one, source),
            Operation::AllReduce => team.all_reduce(ReduceOp::Sum, one, source),
            Operation::AllGather => team.all_gather(blocks, source),
            _ => team.all_to_all(blocks, all),
        }
        .unwrap();
    }

    /// The time of `calls` calls at the slowest PE, in nanoseconds, which all PEs know.
    fn block_ns(&self, team: &Team<'_>, cell: Cell, calls: usize) -> f64 {
        self.world.barrier();
        let begun = Instant::now();
        (0..calls).for_each(|number| self.call(team, cell, number));
        let ns = begun.elapsed().as_nanos() as f64;
        for pe in 0..self.world.n_pes() {
            self.times.put(pe, self.world.my_pe(), &[ns]).unwrap();
        }
        self.world.barrier();
        let slowest = self.times.local().to_vec().into_iter().fold(0.0, f64::max);
        self.world.barrier();
        slowest
    }

    /// The forms that the tuner has tried, and all others that a call may take.
    fn all_forms(&self, Cell { operation, bytes }: Cell, tried: &[Form]) -> Vec<Form> {
        let team = self.world.team();
        let nodes: Vec<u32> = (0..team.n_pes()).map(|rank| node_of(self.world, rank)).collect();
        let count = nodes.iter().collect::<BTreeSet<_>>().len();
        let shape = Shape { nodes: nodes.into(), ..Shape::new(operation, 0, team.n_pes(), bytes / 8, 8) };
        let leaders =
            Shape { nodes: (0..count as u32).collect(), ..Shape::new(operation, 0, count, bytes / 8, 8) };
        let has_leaders = tried.iter().any(|form| matches!(form, Form::Leaders(_)));
        let of_all = Candidate::all(operation).filter(|one| one.can_do(&shape)).map(Form::All);
        let of_leaders = Candidate::all(operation).filter(|one| has_leaders && one.can_do(&leaders));
        let others: Vec<_> = of_all.chain(of_leaders.map(Form::Leaders)).collect();
        let others = others.into_iter().filter(|form| !tried.contains(form));
        tried.iter().copied().chain(others).collect()
    }

    /// Measures a cell.
    fn cell(&self, cell: Cell) -> Option<Judged> {
        let Cell { operation, bytes } = cell;
        let (n, is_first) = (self.world.n_pes(), self.world.my_pe() == 0);
        // Each team tunes for itself. The choice of the first one is judged.
        let teams = if bytes <= 64 << 10 { 5 } else { 2 };
        let teams: Vec<_> = (0..teams)
            .map(|_| self.world.team().split_strided(0, 1, n).unwrap().expect("all are members"))
            .collect();
        let [mut trials, mut later] = [Vec::new(), Vec::new()];
        for team in &teams {
            trials.push(self.block_ns(team, cell, TRIAL_CALLS));
            later.push(self.block_ns(team, cell, TRIAL_CALLS));
        }
        let middle = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[(times.len() - 1) / 2]
        };
        let (trial_ns, later_ns) = (middle(&mut trials), middle(&mut later));
        let cost = (trial_ns / later_ns - 1.0) * TRIAL_CALLS as f64 / 100.0;
        let team = &teams[0];
        let Some(Found { forms, guess, best: chosen }) = team.tuned(operation, bytes, cell.laws()) else {
            if is_first {
                println!("{operation} {bytes}: no trial");
            }
            return None;
        };
        let all = self.all_forms(cell, &forms);
        let mut times = vec![Vec::new(); all.len()];
        for round in 0..=ROUNDS {
            for (form, times) in all.iter().zip(&mut times) {
                team.take_tuned(operation, bytes, cell.laws(), Some(*form));
                let calls = (BLOCK_NS / (later_ns / TRIAL_CALLS as f64)).clamp(8.0, 400.0) as usize;
                let calls = calls.next_multiple_of(n);
                let ns = self.block_ns(team, cell, calls) / calls as f64;
                // The first round fills caches and makes plans.
                times.extend((round > 0).then_some(ns));
            }
        }
        times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
        let at = |number: usize, place: usize| times[number][place] / 1000.0;
        let median = |number: usize| at(number, ROUNDS / 2);
        let best = (0..all.len()).min_by(|a, b| median(*a).total_cmp(&median(*b))).unwrap_or(0);
        let is_within = |form: usize| at(form, ROUNDS / 4) <= at(best, ROUNDS - 1 - ROUNDS / 4);
        let is_good = |form: usize| median(form) <= 1.1 * median(best) || is_within(form);
        let judged = Judged { choice: is_good(chosen), guess: is_good(guess), cost };
        if is_first {
            println!(
                "{operation} {bytes}: {} {:.1} us; best {} {:.1} us ({:.1} to {:.1}); usual {:.1} us; \
                 ratio {:.3} {}; first guess {} {:.3} {}; trial {cost:.2} %; {} forms of {}",
                forms[chosen],
                median(chosen),
                all[best],
                median(best),
                at(best, ROUNDS / 4),
                at(best, ROUNDS - 1 - ROUNDS / 4),
                median(0),
                median(chosen) / median(best),
                word(judged.choice),
                forms[guess],
                median(guess) / median(best),
                word(judged.guess),
                forms.len(),
                all.len()
            );
            let all = all.iter().enumerate().map(|(form, name)| format!("{name} {:.1}", median(form)));
            println!("  {}", all.collect::<Vec<_>>().join(", "));
        }
        Some(judged)
    }
}

fn word(is_good: bool) -> &'static str {
    if is_good { "good" } else { "BAD" }
}

fn main() -> pelago::Result<()> {
    let mut args = std::env::args().skip(1);
    let operations: Vec<_> = args.next().map_or(OPERATIONS.to_vec(), |names| {
        names.split(',').map(|name| Operation::from_name(name).expect("operations")).collect()
    });
    let sizes: Vec<usize> = args.next().map_or(SIZES.to_vec(), |sizes| {
        sizes.split(',').map(|bytes| bytes.parse().expect("sizes in bytes")).collect()
    });
    let world = init_with(&SETTINGS)?;
    let most = sizes.iter().max().map_or(1, |bytes| bytes / 8 * world.n_pes());
    let bench = Bench {
        world: &world,
        target: world.alloc_zeroed(most)?,
        source: world.alloc_zeroed(most)?,
        times: world.alloc_zeroed(world.n_pes())?,
    };
    let cells = operations.iter().flat_map(|operation| sizes.iter().map(|bytes| (*operation, *bytes)));
    let found: Vec<_> =
        cells.filter_map(|(operation, bytes)| bench.cell(Cell { operation, bytes })).collect();
    if world.my_pe() == 0 {
        let good = found.iter().filter(|judged| judged.choice).count();
        let guessed = found.iter().filter(|judged| judged.guess).count();
        let cost: f64 = found.iter().map(|judged| judged.cost).sum::<f64>() / found.len() as f64;
        let mut costs: Vec<_> = found.iter().map(|judged| judged.cost).collect();
        costs.sort_by(f64::total_cmp);
        println!(
            "{good} of {} cells are good, {guessed} by the first guess; a trial costs {cost:.2} % of \
             10,000 calls, median {:.2} %",
            found.len(),
            costs[costs.len() / 2]
        );
    }
    Ok(())
}
