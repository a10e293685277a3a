//! Collective operations of the C library on teams.

use crate::common::{assert_mistakes, c_file, run, run_everywhere, run_with};

#[test]
fn operations() {
    run_everywhere(&c_file("collective", &["-lpthread"]));
}

#[test]
fn operations_with_checks_and_as_schedules() {
    let program = c_file("collective", &["-lpthread"]);
    for setting in [("PELAGO_CHECK", "on"), ("PELAGO_COLL_FORM", "schedule")] {
        run(&program, 3, &[setting]).assert_silent();
    }
}

#[test]
fn mistakes_are_told() {
    let cases: [(&str, &[&str]); 12] = [
        ("root", &["shmem_long_broadcast", "PE_root is 2"]),
        ("negative root", &["shmem_long_broadcast", "PE_root is -1"]),
        ("team", &["shmem_double_sum_reduce", "team is SHMEM_TEAM_INVALID"]),
        ("local source", &["shmem_long_fcollect", "source is 8 bytes", "not symmetric"]),
        ("local dest", &["shmem_long_alltoall", "dest is 16 bytes", "not symmetric"]),
        ("null", &["shmem_long_collect", "dest is 16 bytes at 0x0", "not symmetric"]),
        ("size", &["shmem_long_sum_reduce", "dest is 18446744073709551615 bytes"]),
        ("long", &["shmem_long_fcollect", "dest is 17592186044416 bytes"]),
        ("misaligned", &["shmem_long_sum_reduce", "source is at", "multiples of 8"]),
        ("stride", &["shmem_long_alltoalls", "dst is 0"]),
        ("negative stride", &["shmem_long_alltoalls", "sst is -2"]),
        ("long double", &["shmem_longdouble_sum_reduce", "dest is 16 bytes", "not symmetric"]),
    ];
    let program = c_file("collective", &["-lpthread"]);
    assert_mistakes(&program, &cases);
}

/// Programs get away with it elsewhere, so it is let pass without checks.
#[test]
fn overlap_is_told_under_checks() {
    let program = c_file("collective", &["-lpthread"]);
    for (mistake, call) in [
        ("overlap", "shmem_long_sum_reduce"),
        ("strided overlap", "shmem_long_alltoalls"),
        ("in place", "shmem_long_alltoall"),
    ] {
        let ended = run_with(&program, &[mistake], 2, &[("PELAGO_CHECK", "on")]);
        ended.assert_refused(1, &[call, "overlap"]);
    }
}

#[test]
fn calls_that_differ_are_told_under_checks() {
    let cases: [(&str, &[&str]); 5] = [
        ("other root", &["shmem_long_broadcast", "broadcast(root 0", "broadcast(root 1"]),
        ("other size", &["shmem_long_sum_reduce", "blocks of 1 elements", "blocks of 2 elements"]),
        ("other type", &["sum_reduce", "elements of 4 bytes", "elements of 8 bytes"]),
        ("other call", &["barrier", "all_gather"]),
        ("collect", &["_collect", "with elements of", "4 bytes", "8 bytes"]),
    ];
    let program = c_file("collective", &["-lpthread"]);
    for (mistake, words) in cases {
        for route in ["auto", "net"] {
            let ended = run_with(&program, &[mistake], 2, &[("PELAGO_CHECK", "on"), ("PELAGO_ROUTE", route)]);
            assert_ne!(ended.status, 98, "{}", ended.line);
            ended.assert_refused(ended.status.max(1), words);
        }
    }
    let ended = run_with(&program, &["other call"], 2, &[("PELAGO_CHECK", "on")]);
    let names = ["in shmem_team_sync", "shmem_long_fcollect: "];
    assert!(names.iter().any(|name| ended.stderr.contains(name)), "{}", ended.stderr);
}
