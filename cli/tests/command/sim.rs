//! `pelago sim`: applications over a simulated network.

use super::process::run;

/// The JSON output of `ft` for one variant on a simulated network.
fn ft(options: &[&str]) -> serde_json::Value {
    let ended = run(&[&["sim", "-n", "4"], options, &["ft", "--variant", "slabs", "--json"]].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{options:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn virtual_times_are_those_of_the_network_and_the_same_on_every_run() {
    let fast = ft(&["--bandwidth", "100G"]);
    assert_eq!(fast, ft(&["--bandwidth", "100G"]));
    let slow = ft(&["--bandwidth", "10M", "--latency", "50us"]);
    let seconds = |report: &serde_json::Value| report["seconds"].as_f64().unwrap();
    assert!(seconds(&slow) > 2.0 * seconds(&fast), "{slow} {fast}");
}

/// Checks the statement of `pelago sim --help` for all applications but `hello`.
#[test]
fn what_applications_print_is_the_same_on_every_run() {
    let help = run(&["sim", "--help"]).stdout;
    assert!(help.contains("perf measures in virtual") && help.contains("--simulated-gflops"), "{help}");
    let apps: [&[&str]; 15] = [
        &["ring"],
        &["ft"],
        &["qtc", "--points", "256"],
        &["gups", "--table-log2", "8", "--method", "atomics"],
        &["hash-table", "--keys", "200"],
        &["histogram", "--table", "64", "--indices", "64"],
        &["index-gather", "--table", "64", "--indices", "64"],
        &["matmul", "--n", "50", "--block", "8", "--variant", "all"],
        &["cholesky", "--n", "50", "--block", "8", "--transport", "all"],
        &["stencil", "--n", "16", "--iterations", "5", "--variant", "all"],
        &["integer-sort", "--keys", "1000", "--variant", "all"],
        &["perf", "--quick", "messages"],
        &["perf", "--quick", "ping"],
        &["perf", "--quick", "contention"],
        &["perf", "--quick", "coll", "--operations", "barrier,all-to-all"],
    ];
    for app in apps {
        let [first, second] = [(); 2].map(|()| run(&[&["sim", "-n", "2"], app].concat()));
        assert_eq!((first.status, first.stderr.as_str()), (0, ""), "{app:?}");
        assert_eq!((first.status, first.stdout), (second.status, second.stdout), "{app:?}");
    }
}

#[test]
fn pes_of_one_node_need_no_network() {
    let seconds = |nodes: &str| ft(&["--bandwidth", "10M", "--nodes", nodes])["seconds"].as_f64().unwrap();
    assert!(seconds("2") > 2.0 * seconds("1"));
}

#[test]
fn a_network_that_misbehaves_changes_no_result() {
    for seed in ["1", "2"] {
        assert_eq!(ft(&["--chaos", seed])["verified"], true);
    }
}

#[test]
fn bad_networks_are_refused() {
    for (options, part) in [
        (["--bandwidth", "0"], "a bandwidth is bytes a second"),
        (["--latency", "1"], "a time is a number and ns, us, ms or s"),
        (["--chaos", "x"], "invalid value 'x'"),
        (["-n", "0"], "0 is not in 1..=4096"),
        (["--nodes", "0"], "0 is not in 1..=4096"),
        (["--nodes", "3"], "2 PEs cannot be on 3 nodes"),
    ] {
        let ended = run(&[&["sim"], &options[..], &["-n", "2", "hello"]].concat());
        assert!(ended.status == 2 && ended.stderr.contains(part), "{options:?}: {}", ended.stderr);
    }
    let ended = run(&["sim", "-n", "2", "helo"]);
    assert!(ended.status == 2 && ended.stderr.contains("did you mean hello?"), "{}", ended.stderr);
}
