//! The applications of dense linear algebra: `matmul`, `cholesky`.

use pelago::sim::SimParams;
use pelago::testing::{JobReport, expect_success};
use pelago::{Spmd, World, try_processes};

use super::{NET, USAGE, check_refused, end, objects};

fn both(world: &World) {
    end(world, "matmul --n 150 --block 16 --variant all --repeat 1 --json", 0);
    end(world, "cholesky --n 150 --block 16 --transport all --repeat 1 --json", 0);
}

/// Checks the objects that `both` has printed.
fn check_both(report: &JobReport, grid: &str) {
    let objects = objects(report);
    let of = |field: &str| -> Vec<String> {
        objects.iter().filter_map(|object| object[field].as_str()).map(str::to_owned).collect()
    };
    assert_eq!(of("variant"), ["blocking", "prefetch", "one-sided"]);
    assert_eq!(of("transport"), ["one-sided", "collectives"]);
    assert_eq!(of("grid"), [grid; 5]);
    for object in objects {
        assert_eq!((&object["verified"], &object["n"]), (&true.into(), &150.into()), "{object}");
        assert!(object["gflops"].as_f64() > Some(0.0), "{object}");
    }
}

#[test]
fn matmul_and_cholesky_are_verified_as_processes() {
    let (two, four) = (try_processes!(2, [], both), { try_processes!(4, [], both) });
    check_both(&two, "1x2");
    check_both(&four, "2x2");
}

#[test]
fn matmul_and_cholesky_are_verified_over_the_net() {
    check_both(&try_processes!(3, NET, both), "1x3");
}

#[test]
fn matmul_and_cholesky_are_verified_on_simulated_networks() {
    let job = Spmd::new(4).sim(SimParams::chaos(5)).run(|world| {
        end(world, "matmul --n 30 --block 7 --variant all --grid 4x1", 0);
        end(world, "cholesky --n 30 --block 7 --transport all --grid 4x1", 0);
    });
    job.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn problems_that_cannot_run_are_refused_once() {
    let small = [("PELAGO_HEAP_SIZE", "4m")];
    let short = try_processes!(2, small, |world| end(world, "matmul --n 1024", USAGE));
    let reports = [
        try_processes!(2, [], |world| end(world, "matmul --grid 2x2", USAGE)),
        try_processes!(2, [], |world| end(world, "matmul --n 1000000", USAGE)),
        try_processes!(2, [], |world| end(world, "cholesky --grid 3x1", USAGE)),
        try_processes!(2, [], |world| end(world, "cholesky --n 64 --block 8 --diagonal -1", USAGE)),
    ];
    let expected = [
        ("matmul: a grid of 2x2 has 4 PEs", ["the job has 2", "try --grid 1x2"]),
        ("matmul: matrices of order 1000000 needs", ["the node has", "take a smaller --n"]),
        ("cholesky: a grid of 3x1 has 3 PEs", ["the job has 2", "try --grid 1x2"]),
        ("cholesky: the matrix is not positive definite", ["up to column 0 of 64", "--diagonal 64"]),
    ];
    for (report, (speaker, parts)) in reports.iter().zip(&expected) {
        check_refused(report, speaker, parts);
    }
    check_refused(&short, "matmul: matrices of order 1024 needs", &["set PELAGO_HEAP_SIZE="]);
}

#[test]
fn help_teaches_by_examples() {
    let reports = [
        try_processes!(2, [], |world| end(world, "matmul --help", 0)),
        try_processes!(2, [], |world| end(world, "cholesky --help", 0)),
    ];
    for (report, name) in reports.iter().zip(["matmul", "cholesky"]) {
        expect_success(report);
        assert!(report.output[0].stdout.contains(&format!("  pelago run -n 2 {name} ")), "{name}");
    }
}
