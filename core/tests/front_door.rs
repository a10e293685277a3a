//! The example front door as a job of several PEs.

use pelago_boot::{JobSpec, launch};
use std::path::PathBuf;
use std::time::Duration;

/// The example, which cargo builds beside the tests.
fn example() -> PathBuf {
    let tests = std::env::current_exe().expect("a test program has a path");
    let target = tests.ancestors().nth(2).expect("it lies in a folder of the target");
    target.join("examples/front_door")
}

/// Runs the example on four PEs with these variables.
fn passes(variables: &[(&str, &str)]) {
    let mut spec = JobSpec::new(4, example());
    spec.env = variables.iter().map(|&(name, value)| (name.into(), value.into())).collect();
    spec.timeout = Some(Duration::from_secs(120));
    spec.capture = true;
    let report = launch(&spec).expect("the job starts");
    let output: String = report.output.iter().map(|each| each.stdout.as_str()).collect();
    assert!(report.status == 0 && report.failures.is_empty(), "{:?}\n{output}", report.failures);
    for pe in 0..4 {
        assert!(output.contains(&format!("PE {pe} of 4: passed")), "{output}");
    }
}

#[test]
fn on_one_node() {
    passes(&[]);
}

#[test]
fn on_two_nodes() {
    passes(&[("PELAGO_SIM_NODES", "2")]);
}

#[test]
fn over_the_network_alone() {
    passes(&[("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "tcp")]);
}
