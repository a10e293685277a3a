//! Strided remote memory access in C: `c/strided.c`.

use crate::common::{assert_mistakes, c_file, run, run_everywhere};

#[test]
fn do_as_their_models() {
    run_everywhere(&c_file("strided", &[]));
}

/// Counting closes the fast path, though all PEs are mapped.
#[test]
fn do_so_while_they_are_counted() {
    run(&c_file("strided", &[]), 3, &[("PELAGO_COUNTERS", "on")]).assert_silent();
}

#[test]
fn refuse_mistakes_in_words() {
    let program = c_file("strided", &[]);
    let mistakes: [(&str, &[&str]); 14] = [
        ("dst", &["shmem_long_iput", "dst is 0"]),
        ("sst", &["shmem_long_iput", "sst is -1"]),
        ("dst of get", &["shmem_iget32", "dst is -5"]),
        ("sst of get", &["shmem_double_iget", "sst is 0"]),
        ("block", &["shmem_ibput64", "dst is 3"]),
        ("block of get", &["shmem_int_ibget", "sst is 3"]),
        ("pe", &["shmem_long_iput", "pe is 2"]),
        ("pe of nothing", &["shmem_long_iget", "pe is -1"]),
        ("dest", &["shmem_long_iput", "dest", "not symmetric"]),
        ("source", &["shmem_long_iget", "source", "not symmetric"]),
        ("end", &["shmem_iput8", "dest", "not symmetric"]),
        ("overflow", &["shmem_long_iput", "dest", "not symmetric"]),
        ("overflow here", &["shmem_long_iget", "address space"]),
        ("context", &["shmem_ctx_iput16", "SHMEM_CTX_INVALID"]),
    ];
    assert_mistakes(&program, &mistakes);
}
