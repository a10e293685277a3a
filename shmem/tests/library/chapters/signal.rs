//! Signalling operations in C: `c/signal.c`.

use crate::common::{assert_mistakes, c_file, run, run_everywhere};

#[test]
fn do_as_their_models() {
    run_everywhere(&c_file("signal", &[]));
}

/// Counting closes the fast path, though all PEs are mapped.
#[test]
fn do_so_while_they_are_counted() {
    run(&c_file("signal", &[]), 3, &[("PELAGO_COUNTERS", "on")]).assert_silent();
}

#[test]
fn refuse_mistakes_in_words() {
    let program = c_file("signal", &[]);
    let mistakes: [(&str, &[&str]); 14] = [
        ("sig_op", &["shmem_long_put_signal", "sig_op is 7"]),
        ("sig_op of nothing", &["shmem_long_put_signal", "sig_op is -1"]),
        ("pe", &["shmem_long_put_signal", "pe is 2"]),
        ("dest", &["shmem_putmem_signal", "dest", "not symmetric"]),
        ("sig_addr", &["shmem_put8_signal", "sig_addr", "not symmetric"]),
        ("alignment", &["shmem_long_put_signal_nbi", "sig_addr", "multiple of 8"]),
        ("set", &["shmem_signal_set", "sig_addr", "not symmetric"]),
        ("add", &["shmem_signal_add", "pe is -3"]),
        ("alignment of add", &["shmem_signal_add", "sig_addr", "multiple of 8"]),
        ("fetch", &["shmem_signal_fetch", "sig_addr", "not symmetric"]),
        ("alignment of fetch", &["shmem_signal_fetch", "sig_addr", "multiple of 8"]),
        ("wait", &["shmem_signal_wait_until", "sig_addr", "not symmetric"]),
        ("cmp", &["shmem_signal_wait_until", "cmp is 0"]),
        ("context", &["shmem_ctx_long_put_signal", "SHMEM_CTX_INVALID"]),
    ];
    assert_mistakes(&program, &mistakes);
}
