//! Distributed locks in C: `c/lock.c`.

use crate::common::{assert_mistakes, c_file, run, run_everywhere};

#[test]
fn do_as_their_models() {
    run_everywhere(&c_file("lock", &[]));
}

/// Counting closes the fast path, though all PEs are mapped.
#[test]
fn do_so_while_they_are_counted() {
    run(&c_file("lock", &[]), 3, &[("PELAGO_COUNTERS", "on")]).assert_silent();
}

#[test]
fn refuse_mistakes_in_words() {
    let program = c_file("lock", &[]);
    let mistakes: [(&str, &[&str]); 9] = [
        ("set", &["shmem_set_lock", "lock", "not symmetric"]),
        ("test", &["shmem_test_lock", "lock", "not symmetric"]),
        ("clear", &["shmem_clear_lock", "lock", "not symmetric"]),
        ("null", &["shmem_set_lock", "lock", "0x0"]),
        ("alignment", &["shmem_set_lock", "lock", "multiple of 8"]),
        ("not held", &["shmem_clear_lock", "does not hold"]),
        ("held twice", &["shmem_set_lock", "holds or waits for already"]),
        ("cleared twice", &["shmem_clear_lock", "does not hold"]),
        ("of another", &["shmem_clear_lock", "does not hold"]),
    ];
    assert_mistakes(&program, &mistakes);
}
