//! Remote memory access in C: `c/rma.c`.

use crate::common::{ROUTES, c_file, run, run_everywhere, run_with};

#[test]
fn does_as_its_model() {
    run_everywhere(&c_file("rma", &[]));
}

/// Both close the fast path, though all PEs are mapped.
#[test]
fn does_so_while_it_is_counted_or_checked() {
    for setting in [("PELAGO_COUNTERS", "on"), ("PELAGO_CHECK", "on")] {
        run(&c_file("rma", &[]), 3, &[setting]).assert_silent();
    }
}

/// Mistakes, and what is said of each beside the name of the call.
const MISTAKES: [(&str, &str, &str); 35] = [
    ("pe of p", "shmem_long_p: pe is 2", "numbered 0 to 1"),
    ("pe of g", "shmem_double_g: pe is -1", "2 PEs"),
    ("pe of put", "shmem_float_put: pe is -1", "2 PEs"),
    ("pe of get", "shmem_get32: pe is 7", "2 PEs"),
    ("pe of nbi", "shmem_putmem_nbi: pe is -2147483648", "2 PEs"),
    ("pe of nothing", "shmem_long_put: pe is 2", "2 PEs"),
    ("pe of get of nothing", "shmem_getmem_nbi: pe is -2", "2 PEs"),
    ("pe of long double", "shmem_longdouble_p: pe is 2", "2 PEs"),
    ("pe of team", "shmem_ctx_long_get: pe is 1", "1 PE"),
    ("dest", "shmem_long_put: dest is 32 bytes", "not symmetric"),
    ("dest of p", "shmem_int_p: dest is 4 bytes", "shmem_malloc"),
    ("dest of nbi", "shmem_put16_nbi: dest is 8 bytes", "not symmetric"),
    ("source", "shmem_long_get: source is 32 bytes", "not symmetric"),
    ("source of g", "shmem_short_g: source is 2 bytes", "not symmetric"),
    ("source of nbi", "shmem_getmem_nbi: source is 4 bytes", "not symmetric"),
    ("source of long double", "shmem_longdouble_g: source is 16 bytes", "not symmetric"),
    ("null dest", "shmem_uint8_put: dest is 4 bytes at 0x0", "not symmetric"),
    ("null of p", "shmem_char_p: dest is 1 bytes at 0x0", "not symmetric"),
    ("null source", "shmem_get64: source is 8 bytes at 0x0", "not symmetric"),
    ("null of g", "shmem_int_g: source is 4 bytes at 0x0", "not symmetric"),
    ("function", "shmem_int_p: dest is 4 bytes", "not symmetric"),
    ("end", "shmem_putmem: dest is 1099511627776 bytes", "not symmetric"),
    ("end of get", "shmem_long_get: source is 1099511627776 bytes", "not symmetric"),
    ("end of statics", "shmem_put8: dest is 8589934592 bytes", "not symmetric"),
    ("behind the end", "shmem_long_p: dest is 8 bytes", "not symmetric"),
    ("before the start", "shmem_char_get: source is 1 bytes", "not symmetric"),
    ("overflow", "shmem_long_put: dest is 18446744073709551615 bytes", "not symmetric"),
    ("overflow of get", "shmem_get128_nbi: source is 18446744073709551615 bytes", "not symmetric"),
    ("overflow to 0", "shmem_put64: dest is 18446744073709551615 bytes", "not symmetric"),
    ("overflow of statics", "shmem_long_put: dest is 18446744073709551615 bytes", "not symmetric"),
    ("no context", "shmem_ctx_long_p: ", "SHMEM_CTX_INVALID"),
    ("put on none", "shmem_ctx_putmem: ", "SHMEM_CTX_INVALID"),
    ("nothing on none", "shmem_ctx_getmem: ", "SHMEM_CTX_INVALID"),
    ("destroyed", "shmem_ctx_long_put: ", "destroyed"),
    ("g on destroyed", "shmem_ctx_long_g: ", "destroyed"),
];

#[test]
fn refuses_mistakes_in_words() {
    let program = c_file("rma", &[]);
    for (which, call, words) in MISTAKES {
        for variables in ROUTES {
            run_with(&program, &[which], 2, variables).assert_refused(1, &[call, words]);
        }
    }
}

#[test]
fn refuses_calls_before_and_after() {
    let program = c_file("rma", &[]);
    let mistakes = [
        ("p before", "shmem_long_p: called before shmem_init"),
        ("put before", "shmem_putmem: called before shmem_init"),
        ("ptr before", "shmem_ptr: called before shmem_init"),
        ("g after", "shmem_long_g: called before shmem_init, or after the last shmem_finalize"),
        ("get after", "shmem_long_get: called before shmem_init, or after the last shmem_finalize"),
        ("nbi after", "shmem_put64_nbi: called before shmem_init, or after the last shmem_finalize"),
    ];
    for (which, words) in mistakes {
        run_with(&program, &[which, "the library"], 2, &[]).assert_refused(1, &[words]);
    }
}
