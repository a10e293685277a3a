//! Teams of the C library.

use crate::common::{assert_mistakes, c_file, run_everywhere};

#[test]
fn splits_and_queries() {
    run_everywhere(&c_file("team", &[]));
}

#[test]
fn mistakes_are_told() {
    let cases: [(&str, &[&str]); 13] = [
        ("destroyed", &["shmem_team_sync", "team", "was destroyed"]),
        ("destroyed twice", &["shmem_team_destroy", "team", "was destroyed"]),
        ("query", &["shmem_team_n_pes", "team", "was destroyed"]),
        ("garbage", &["shmem_team_sync", "team is 0x1234567", "never made"]),
        ("inside", &["shmem_team_my_pe", "team", "never made"]),
        ("invalid", &["shmem_team_sync", "team is SHMEM_TEAM_INVALID"]),
        ("world", &["shmem_team_destroy", "team is SHMEM_TEAM_WORLD"]),
        ("shared", &["shmem_team_destroy", "team is SHMEM_TEAM_SHARED"]),
        ("config", &["shmem_team_split_strided", "configuration is null"]),
        ("get config", &["shmem_team_get_config", "config is null"]),
        ("contexts", &["shmem_team_split_strided", "num_contexts is -3"]),
        ("arguments", &["shmem_team_split_strided", "other arguments"]),
        ("other split", &["shmem_team_split", "split_2d", "split_strided"]),
    ];
    let program = c_file("team", &[]);
    assert_mistakes(&program, &cases);
}
