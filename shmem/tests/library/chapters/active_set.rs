//! Active sets: the deprecated collective operations of the C library.

use crate::common::{ROUTES, assert_mistakes, c_file, run, run_everywhere, run_with};

#[test]
fn operations() {
    run_everywhere(&c_file("active_set", &[]));
}

#[test]
fn operations_with_checks() {
    run(&c_file("active_set", &[]), 3, &[("PELAGO_CHECK", "on")]).assert_silent();
}

/// No algorithm writes at the root, whose target a broadcast over an active set leaves as it is.
#[test]
fn broadcasts_by_every_algorithm_leave_the_target_of_the_root() {
    let program = c_file("active_set", &[]);
    for variables in ROUTES {
        run_with(&program, &["broadcasts"], 4, variables).assert_silent();
    }
    let algorithms = [
        "linear",
        "balanced_tree",
        "binomial",
        "k_nomial",
        "scatter_all_gather",
        "chain",
        "doubling",
        "fixed_tree",
        "hierarchical",
    ];
    for algorithm in algorithms {
        let choice = format!("broadcast={algorithm}");
        for form in ["auto", "schedule"] {
            let variables =
                [("PELAGO_SIM_NODES", "2"), ("PELAGO_COLL", choice.as_str()), ("PELAGO_COLL_FORM", form)];
            run_with(&program, &["broadcasts"], 4, &variables).assert_silent();
        }
    }
}

#[test]
fn mistakes_are_told() {
    let cases: [(&str, &[&str]); 11] = [
        ("not a member", &["shmem_barrier", "is not in the active set"]),
        ("no members", &["shmem_sync", "PE_size 0 name no set"]),
        ("too many", &["shmem_barrier", "PE_size 3 name no set"]),
        ("too far", &["shmem_barrier", "logPE_stride 3"]),
        ("negative", &["shmem_barrier", "PE_start -1"]),
        ("stride", &["shmem_barrier", "logPE_stride -1"]),
        ("huge stride", &["shmem_barrier", "logPE_stride 63"]),
        ("root", &["shmem_broadcast64", "PE_root is 2"]),
        ("nreduce", &["shmem_long_sum_to_all", "nreduce is -1"]),
        ("dest", &["shmem_long_sum_to_all", "dest is 8 bytes", "not symmetric"]),
        ("long double", &["shmem_longdouble_sum_to_all", "nreduce is -7"]),
    ];
    let program = c_file("active_set", &[]);
    assert_mistakes(&program, &cases);
}

#[test]
fn more_is_told_under_checks() {
    let cases: [(&str, &[&str]); 5] = [
        ("psync", &["shmem_long_sum_to_all", "pSync[7] is 5", "SHMEM_SYNC_VALUE"]),
        ("local psync", &["shmem_barrier", "pSync is 64 bytes", "not symmetric"]),
        ("other root", &["shmem_broadcast64", "root 0", "root 1"]),
        ("other size", &["shmem_broadcast64", "0 elements of 8 bytes", "1 elements of 8 bytes"]),
        ("other call", &["barrier", "broadcast"]),
    ];
    let program = c_file("active_set", &[]);
    for (mistake, words) in cases {
        let ended = run_with(&program, &[mistake], 2, &[("PELAGO_CHECK", "on")]);
        assert_ne!(ended.status, 98, "{}", ended.line);
        ended.assert_refused(ended.status.max(1), words);
    }
}
