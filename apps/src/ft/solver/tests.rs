//! Whole runs with PEs as threads: against the definition on small boxes, against NASA on class S, and against the
//! formulas for messages.

use super::super::classes::Class;
use super::super::naive;
use super::super::report::Report;
use super::*;

/// Boxes that every combination of odd lengths, few rows and one-element blocks occurs in, with their PE counts.
const BOXES: [(Problem, &[usize]); 4] = [
    (Problem { nx: 4, ny: 4, nz: 4, iterations: 2 }, &[1, 2, 4]),
    (Problem { nx: 2, ny: 8, nz: 4, iterations: 2 }, &[1, 2, 4]),
    (Problem { nx: 5, ny: 6, nz: 3, iterations: 2 }, &[1, 3]),
    (Problem { nx: 2, ny: 8, nz: 8, iterations: 2 }, &[8]),
];

fn on_threads<R: Send>(pes: usize, body: impl Fn(&World, Layout) -> R + Sync, problem: Problem) -> Vec<R> {
    pelago::Spmd::new(pes)
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
            let solved =
                on_threads(pes, |world, layout| solve(world, layout, Variant::Exchange, &mut |_| ()), problem);
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
                    let outcome = solve(world, layout, variant, &mut |step| steps_seen.push(step)).unwrap();
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
        for outcome in on_threads(pes, |world, layout| solve(world, layout, Variant::Exchange, &mut |_| ()), problem)
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
