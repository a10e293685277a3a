//! Collective operations on private memory as jobs of several PEs, by every algorithm.

use pelago_boot::{JobSpec, launch};
use pelago_core::coll::shape::Operation;
use pelago_schedule::table::algorithms;
use std::path::PathBuf;
use std::time::Duration;

/// The example. `cargo test -p pelago-core` builds it; `--test message_coll` alone runs the one that is
/// there, so build it before: `cargo build -p pelago-core --example message_coll`.
fn example() -> PathBuf {
    let tests = std::env::current_exe().expect("a test program has a path");
    let target = tests.ancestors().nth(2).expect("it lies in a folder of the target");
    target.join("examples/message_coll")
}

/// Runs the example on `n` PEs with these variables.
fn passes(n: usize, variables: &[(&str, &str)]) {
    passes_with(n, variables, &[]);
}

/// The same with arguments. Returns the output.
fn passes_with(n: usize, variables: &[(&str, &str)], args: &[&str]) -> String {
    let args = args.iter().map(Into::into).collect();
    let mut spec = JobSpec { args, ..JobSpec::new(n, example()) };
    spec.env = variables.iter().map(|&(name, value)| (name.into(), value.into())).collect();
    spec.timeout = Some(Duration::from_secs(300));
    spec.capture = true;
    let report = launch(&spec).expect("the job starts");
    let output: String =
        report.output.iter().flat_map(|each| [each.stdout.as_str(), each.stderr.as_str()]).collect();
    let is_sound = report.status == 0 && report.failures.is_empty();
    assert!(is_sound, "{n} PEs, {variables:?}: {:?}\n{output}", report.failures);
    for pe in 0..n {
        assert!(output.contains(&format!("PE {pe} of {n}: passed")), "{n} PEs, {variables:?}: {output}");
    }
    output
}

/// Settings that have every algorithm of every operation once: the first algorithms, the second ones, and so
/// on.
fn choices() -> Vec<String> {
    let of = |operation: Operation| -> Vec<&str> {
        let fitting = algorithms().filter(|algorithm| algorithm.operation == operation);
        fitting.map(|algorithm| algorithm.name).collect()
    };
    let most = Operation::ALL.into_iter().map(|operation| of(operation).len()).max().unwrap_or(0);
    let choice = |i: usize| {
        let named = Operation::ALL.into_iter().map(|operation| {
            let names = of(operation);
            format!("{operation}={}", names[i % names.len()])
        });
        named.collect::<Vec<_>>().join(",")
    };
    (0..most).map(choice).collect()
}

#[test]
fn on_one_node() {
    (1..=8).for_each(|n| passes(n, &[]));
}

#[test]
fn in_two_levels_on_several_nodes() {
    for (n, nodes) in [(2, "2"), (3, "2"), (4, "2"), (5, "2"), (8, "3")] {
        for fabric in ["tcp", "auto"] {
            passes(n, &[("PELAGO_SIM_NODES", nodes), ("PELAGO_FABRIC", fabric)]);
        }
        passes(n, &[("PELAGO_SIM_NODES", nodes), ("PELAGO_FABRIC", "tcp"), ("PELAGO_DETERMINISTIC", "on")]);
        passes(n, &[("PELAGO_SIM_NODES", nodes), ("PELAGO_FABRIC", "tcp"), ("PELAGO_CHECK", "on")]);
    }
    passes(3, &[("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "tcp")]);
}

#[test]
fn results_are_right_while_forms_are_tried() {
    let online =
        [("PELAGO_COLL_ONLINE", "on"), ("PELAGO_COLL_ONLINE_FOLDER", "off"), ("PELAGO_LOG", "coll=info")];
    // On one node an operation has its direct form, and no other is tried unless schedules are demanded; even
    // then all-reduce and broadcast have a single form.
    for (n, more) in [
        (3, &[("PELAGO_COLL_FORM", "schedule")][..]),
        (2, &[("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp")]),
        (4, &[("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp")]),
        (3, &[("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "tcp")]),
    ] {
        let output = passes_with(n, &[&online[..], more].concat(), &["again"]);
        let settled = |what: &str| output.contains(&format!("{what} B on {n} PEs: "));
        let is_scheduled = more.iter().any(|&(_, value)| value == "schedule");
        let of = if is_scheduled { ["all_gather", "all_to_all"] } else { ["all_reduce", "broadcast"] };
        for operation in of {
            let sizes = [4096, 8192].map(|bytes| format!("{operation} of up to {bytes}"));
            assert!(sizes.iter().any(|size| settled(size)), "{operation}, {n}: {output}");
        }
    }
}

#[test]
fn by_every_algorithm_over_a_network() {
    for choice in choices() {
        for n in [2, 3, 6] {
            passes(n, &[("PELAGO_COLL", &choice), ("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "tcp")]);
        }
    }
}

#[test]
fn by_every_algorithm_on_several_nodes() {
    for choice in choices() {
        for (n, nodes) in [(2, "2"), (5, "2"), (8, "3")] {
            passes(n, &[("PELAGO_COLL", &choice), ("PELAGO_SIM_NODES", nodes)]);
        }
    }
}
