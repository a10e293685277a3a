//! Contexts and sessions of the C library.

use crate::common::{assert_mistakes, c_file, run_everywhere};

#[test]
fn operations_and_queries() {
    run_everywhere(&c_file("context", &[]));
}

#[test]
fn mistakes_are_told() {
    let cases: [(&str, &[&str]); 11] = [
        ("put", &["shmem_ctx_long_p", "ctx", "was destroyed"]),
        ("quiet", &["shmem_ctx_quiet", "ctx", "was destroyed"]),
        ("twice", &["shmem_ctx_destroy", "ctx", "was destroyed"]),
        ("session", &["shmem_ctx_session_start", "ctx", "was destroyed"]),
        ("invalid", &["shmem_ctx_long_p", "ctx is SHMEM_CTX_INVALID"]),
        ("default", &["shmem_ctx_destroy", "ctx is SHMEM_CTX_DEFAULT"]),
        ("garbage", &["shmem_ctx_destroy", "ctx is 0x7654321", "never made"]),
        ("team", &["shmem_team_create_ctx", "team is 0x7654321", "never made"]),
        ("pe", &["shmem_ctx_long_p", "pe is 1", "1 PEs"]),
        ("after its team", &["shmem_ctx_long_p", "ctx", "was destroyed"]),
        ("session config", &["shmem_ctx_session_start", "config is null"]),
    ];
    let program = c_file("context", &[]);
    assert_mistakes(&program, &cases);
}
