//! Null where a call writes its results, and calls after the last finalisation: a message that names the
//! function and the argument, and the end of the job, in place of a crash.

use crate::common::{c_file, run_with};

/// Cases of `nulls.c`, each with the function and the argument that the message names, for functions that
/// always look.
const COLD: [(&str, &str, &str); 39] = [
    ("init_thread", "shmem_init_thread", "provided"),
    ("query_initialized", "shmem_query_initialized", "initialized"),
    ("query_thread", "shmem_query_thread", "provided"),
    ("info_get_version-major", "shmem_info_get_version", "major"),
    ("info_get_version-minor", "shmem_info_get_version", "minor"),
    ("info_get_name", "shmem_info_get_name", "name"),
    ("ctx_create", "shmem_ctx_create", "ctx"),
    ("team_create_ctx", "shmem_team_create_ctx", "ctx"),
    ("ctx_get_team", "shmem_ctx_get_team", "team"),
    ("team_get_config", "shmem_team_get_config", "config"),
    ("team_split_strided", "shmem_team_split_strided", "new_team"),
    ("team_split_2d-x", "shmem_team_split_2d", "xaxis_team"),
    ("team_split_2d-y", "shmem_team_split_2d", "yaxis_team"),
    ("test_all_vector", "shmem_long_test_all_vector", "cmp_values"),
    ("test_any_vector", "shmem_long_test_any_vector", "cmp_values"),
    ("test_some_vector", "shmem_long_test_some_vector", "cmp_values"),
    ("wait_until_all_vector", "shmem_long_wait_until_all_vector", "cmp_values"),
    ("wait_until_any_vector", "shmem_long_wait_until_any_vector", "cmp_values"),
    ("test_some", "shmem_long_test_some", "indices"),
    ("wait_until_some", "shmem_long_wait_until_some", "indices"),
    ("wait_until_some_vector", "shmem_long_wait_until_some_vector", "indices"),
    ("p", "shmem_long_p", "dest"),
    ("atomic_add", "shmem_long_atomic_add", "dest"),
    ("wait_until", "shmem_long_wait_until", "ivar"),
    ("set_lock", "shmem_set_lock", "lock"),
    ("sum_reduce", "shmem_long_sum_reduce", "dest"),
    ("pe_quiet", "shmem_pe_quiet", "target_pes"),
    ("space_create", "shmemx_space_create", "space"),
    ("team_split_color", "shmemx_team_split_by_color", "new_team"),
    ("team_split_3d", "shmemx_team_split_xyz", "yaxis_team"),
    ("pcntr_get_issued_write", "shmemx_pcntr_get_issued_write", "cntr_value"),
    ("pcntr_get_completed_target", "shmemx_pcntr_get_completed_target", "cntr_value"),
    ("pcntr_get_all", "shmemx_pcntr_get_all", "pcntr"),
    ("ct_create", "shmemx_ct_create", "ct"),
    ("team_sync_nb", "shmemx_team_sync_nb", "request"),
    ("req_test", "shmemx_req_test", "request"),
    ("after-free", "shmem_free", "after the last shmem_finalize"),
    ("after-malloc", "shmem_malloc", "after the last shmem_finalize"),
    ("after-ptr", "shmem_ptr", "after the last shmem_finalize"),
];

/// The same for functions of the fast path, which look when `PELAGO_CHECK` is on.
const HOT: [(&str, &str, &str); 11] = [
    ("put", "shmem_long_put", "source"),
    ("get", "shmem_long_get", "dest"),
    ("put_nbi", "shmem_long_put_nbi", "source"),
    ("get_nbi", "shmem_long_get_nbi", "dest"),
    ("iput", "shmem_long_iput", "source"),
    ("iget", "shmem_long_iget", "dest"),
    ("put_signal", "shmem_long_put_signal", "source"),
    ("atomic_fetch_nbi", "shmem_long_atomic_fetch_nbi", "fetch"),
    ("atomic_fetch_add_nbi", "shmem_long_atomic_fetch_add_nbi", "fetch"),
    ("atomic_compare_swap_nbi", "shmem_long_atomic_compare_swap_nbi", "fetch"),
    ("atomic_swap_nbi", "shmem_long_atomic_swap_nbi", "fetch"),
];

/// Calls after the last finalisation that say so.
const AFTER: [&str; 26] = [
    "p",
    "g",
    "put",
    "get",
    "put_nbi",
    "iput",
    "iget",
    "fetch_add",
    "fetch_add_nbi",
    "put_signal",
    "signal_fetch",
    "wait_until",
    "test",
    "test_some",
    "sum_reduce",
    "broadcast",
    "collect",
    "set_lock",
    "barrier_all",
    "sync_all",
    "quiet",
    "fence",
    "my_pe",
    "ctx_p",
    "ctx_fetch_add",
    "ctx_quiet",
];

/// The failures of all these cases together.
fn failures(cases: &[(&str, &str, &str)], checks: &[&str]) -> Vec<String> {
    let program = c_file("nulls", &[]);
    let mut failures = Vec::new();
    for (which, function, argument) in cases {
        for check in checks {
            let ended = run_with(&program, &[which], 1, &[("PELAGO_CHECK", check)]);
            let names = [*function, argument].iter().all(|word| ended.stderr.contains(word));
            if ended.status != 1 || !names {
                failures.push(format!("{which}, check {check}: {} {}", ended.status, ended.stderr.trim()));
            }
        }
    }
    failures
}

#[test]
fn null_outputs_are_named() {
    assert_eq!(failures(&COLD, &["on", "off"]), [""; 0]);
}

#[test]
fn null_buffers_are_named_by_the_check() {
    assert_eq!(failures(&HOT, &["on"]), [""; 0]);
}

#[test]
fn calls_after_the_end_say_so() {
    let after: Vec<_> = AFTER.iter().map(|call| format!("after-{call}")).collect();
    let cases: Vec<_> =
        after.iter().map(|call| (&call[..], "shmem_", "after the last shmem_finalize")).collect();
    assert_eq!(failures(&cases, &["off", "on"]), [""; 0]);
}
