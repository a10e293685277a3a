//! Estimates beside simulations: their deviations, and whether the first guess is right.

use super::machine_of;
use pelago_model::action::Collective;
use pelago_model::fit::Deviation;
use pelago_model::{Machine, run};
use pelago_schedule::candidates::Candidate;
use pelago_schedule::shape::{Operation, Shape};
use pelago_schedule::table::find;
use std::sync::Arc;

/// The time of a candidate in nanoseconds.
fn simulated(machine: &Machine, candidate: &Candidate, shape: &Shape) -> f64 {
    let shape = Shape { tuning: candidate.tuning, ..shape.clone() };
    let plain = Collective::world(candidate.algorithm, shape.n, 0, machine.pes_per_node);
    run(machine, &Arc::new(Collective { shape, ..plain })).unwrap().time as f64 / 1e3
}

fn shape(machine: &Machine, operation: Operation, n: usize, bytes: usize) -> Shape {
    let any = Candidate::all(operation).next().unwrap().algorithm;
    Collective::world(any, n, bytes, machine.pes_per_node).shape
}

/// The relative deviations of all estimates, and the cells whose first guess is within 10 % of the best.
fn compared(machine: &Machine, teams: &[usize], sizes: &[usize]) -> (Vec<f64>, usize, usize) {
    let costs = machine.costs(64).unwrap();
    let (mut deviations, mut right, mut cells) = (Vec::new(), 0, 0);
    for operation in Operation::ALL {
        for (n, bytes) in teams.iter().flat_map(|n| sizes.iter().map(move |bytes| (*n, *bytes))) {
            if operation == Operation::Barrier && bytes != sizes[0] {
                continue;
            }
            let bytes = if operation == Operation::Barrier { 0 } else { bytes };
            let shape = shape(machine, operation, n, bytes);
            let all: Vec<_> = Candidate::all(operation).filter(|one| one.can_do(&shape)).collect();
            let ranking = costs.ranking(all, &shape);
            let times: Vec<f64> = ranking.iter().map(|(one, _)| simulated(machine, one, &shape)).collect();
            let best = times.iter().copied().fold(f64::INFINITY, f64::min);
            for ((candidate, guess), time) in ranking.iter().zip(&times) {
                deviations.push((guess / time - 1.0).abs());
                if std::env::var_os("SHOW").is_some() && deviations.last() > Some(&0.3) {
                    println!("{operation} {candidate} n {n} {bytes} B: {guess:.0} for {time:.0}");
                }
            }
            cells += 1;
            right += usize::from(times[0] <= 1.1 * best);
            if std::env::var_os("SHOW").is_some() && times[0] > 1.1 * best {
                println!(
                    "wrong: {operation} n {n} {bytes} B: {} {:.0} for {best:.0}",
                    ranking[0].0, times[0]
                );
            }
        }
    }
    (deviations, right, cells)
}

/// The estimate decides what is simulated. Ranks that are multiples of a power of two send most in a tree.
#[test]
fn messages_are_estimated() {
    let machine = machine_of("hdr-fat-tree", 32);
    let cases = [
        (Operation::Barrier, "dissemination"),
        (Operation::Barrier, "hierarchical"),
        (Operation::Broadcast, "binomial"),
        (Operation::Broadcast, "chain"),
        (Operation::AllReduce, "recursive_doubling"),
        (Operation::AllGather, "ring"),
    ];
    for (operation, name) in cases {
        for n in [2, 48, 100, 1000, 1024, 2048] {
            let algorithm = find(operation, name).unwrap_or_else(|| panic!("{operation} has no {name}"));
            let workload = Arc::new(Collective::world(algorithm, n, 64, machine.pes_per_node));
            let (estimated, outcome) = (workload.messages(), run(&machine, &workload).unwrap());
            let ratio = estimated / outcome.messages as f64;
            assert!((0.5..2.0).contains(&ratio), "{operation} by {name}, {n} ranks: {ratio}");
        }
    }
}

#[test]
fn the_first_guess_is_nearly_always_within_ten_percent_of_the_best() {
    for (name, pes_per_node) in [("tcp-veth", 1), ("hdr-fat-tree", 1), ("hdr-fat-tree", 8)] {
        let machine = machine_of(name, pes_per_node);
        let (deviations, right, cells) = compared(&machine, &[2, 5, 8, 16, 33, 64], &[8, 1 << 10, 64 << 10]);
        let Deviation { median, worst } = Deviation::among(deviations);
        println!(
            "{name}, {pes_per_node} a node: deviation {median:.4}, worst {worst:.3}; {right} of {cells}"
        );
        assert!(median < 0.05 && right * 10 >= cells * 9, "{name}: {median}, {right} of {cells}");
    }
}
