//! Atomic memory operations in C: `c/amo.c`.

use crate::common::{assert_mistakes, c_file, run, run_everywhere};

#[test]
fn do_as_their_models() {
    run_everywhere(&c_file("amo", &[]));
}

/// Counting closes the fast path, though all PEs are mapped.
#[test]
fn do_so_while_they_are_counted() {
    run(&c_file("amo", &[]), 3, &[("PELAGO_COUNTERS", "on")]).assert_silent();
}

#[test]
fn refuse_mistakes_in_words() {
    let program = c_file("amo", &[]);
    let mistakes: [(&str, &[&str]); 13] = [
        ("pe", &["shmem_long_atomic_add", "pe is 2"]),
        ("negative pe", &["shmem_int_atomic_fetch_inc", "pe is -1"]),
        ("address", &["shmem_long_atomic_fetch_add", "dest", "not symmetric"]),
        ("source", &["shmem_double_atomic_fetch", "source", "not symmetric"]),
        ("null", &["shmem_ulong_atomic_xor", "dest", "0x0"]),
        ("alignment", &["shmem_long_atomic_swap", "dest", "multiple of 8"]),
        ("alignment of a set", &["shmem_int_atomic_set", "dest", "multiple of 4"]),
        ("alignment of a comparison", &["shmem_long_atomic_compare_swap", "multiple of 8"]),
        ("context", &["shmem_ctx_int_atomic_inc", "SHMEM_CTX_INVALID"]),
        ("nbi", &["shmem_long_atomic_fetch_inc_nbi", "dest", "not symmetric"]),
        ("comparison nbi", &["shmem_long_atomic_compare_swap_nbi", "pe is 7"]),
        ("old name", &["shmem_long_fadd", "pe is 2"]),
        ("finalized", &["shmem_int_atomic_inc", "shmem_init"]),
    ];
    assert_mistakes(&program, &mistakes);
}
