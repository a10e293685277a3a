//! Point-to-point synchronisation in C: `c/p2p.c`.

use crate::common::{assert_mistakes, c_file, run, run_everywhere, run_with};

#[test]
fn do_as_their_models() {
    run_everywhere(&c_file("p2p", &[]));
}

/// Counting closes the fast path, though all PEs are mapped.
#[test]
fn do_so_while_they_are_counted() {
    run(&c_file("p2p", &[]), 3, &[("PELAGO_COUNTERS", "on")]).assert_silent();
}

#[test]
fn refuse_mistakes_in_words() {
    let program = c_file("p2p", &[]);
    let mistakes: [(&str, &[&str]); 12] = [
        ("cmp", &["shmem_long_wait_until", "cmp is 7"]),
        ("cmp of test", &["shmem_int_test", "cmp is -1"]),
        ("cmp of all", &["shmem_long_wait_until_all", "cmp is 0"]),
        ("ivar", &["shmem_long_wait_until", "ivar", "not symmetric"]),
        ("null", &["shmem_uint_wait_until", "ivar", "0x0"]),
        ("alignment", &["shmem_long_wait_until", "ivar", "multiple of 8"]),
        ("test", &["shmem_long_test", "ivar", "not symmetric"]),
        ("any", &["shmem_long_wait_until_any", "ivars", "not symmetric"]),
        ("some", &["shmem_long_test_some", "ivars", "not symmetric"]),
        ("length", &["shmem_long_test_all", "ivars", "not symmetric"]),
        ("vector", &["shmem_long_test_any_vector", "ivars", "multiple of 8"]),
        ("old name", &["shmem_wait", "ivar", "not symmetric"]),
    ];
    assert_mistakes(&program, &mistakes);
}

/// A wait for what nobody sends ends with words once it has taken too long.
#[test]
fn do_not_wait_for_ever() {
    let ended = run_with(&c_file("p2p", &[]), &["in vain"], 2, &[("PELAGO_WAIT_LIMIT", "1")]);
    ended.assert_refused(101, &["has waited 1s", "PELAGO_WAIT_LIMIT"]);
}
