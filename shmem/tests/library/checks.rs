//! The mistakes that `PELAGO_CHECK=on` finds, in `c/checks.c`; programs without mistakes pass under it.

use crate::common::{ROUTES, c_file, c_program, run, run_with};

const CHECKED: (&str, &str) = ("PELAGO_CHECK", "on");

/// Programs of these tests that make no mistake unless they are asked to.
const PROGRAMS: [&str; 10] =
    ["checks", "strided", "amo", "signal", "p2p", "lock", "context", "team", "statics", "extension_memory"];

#[test]
fn programs_without_mistakes_are_let_pass() {
    for name in PROGRAMS {
        let program = c_file(name, &[]);
        for route in ROUTES {
            run(&program, 3, &[&[CHECKED], route].concat()).assert_silent();
        }
    }
}

#[test]
fn mistakes_are_told_in_words() {
    let block = "the block of 40 bytes at";
    let freed = ["given back", "shmem_free", "800 bytes"];
    let changed = ["800 bytes", "has changed while it was in use"];
    let mistakes: [(&str, &[&str]); 33] = [
        ("beyond", &["shmem_long_put: dest is 48 bytes", "only 40", block, "shmem_calloc"]),
        ("beyond get", &["shmem_long_get: source is 40 bytes", "only 32", block]),
        ("beyond static", &["shmem_long_put: dest is 32 bytes", "only 24", "the variable table of 40 bytes"]),
        ("beyond strided", &["shmem_long_iput: dest is 56 bytes", "only 40", block]),
        ("beyond source", &["shmem_long_put: source is 48 bytes", "only 40", block]),
        ("beyond dest", &["shmem_long_get: dest is 48 bytes", "only 40", block]),
        ("beyond signal", &["shmem_long_put_signal: dest is 48 bytes", "only 40", block]),
        ("beyond broadcast", &["shmem_long_broadcast: source is 48 bytes", "only 40", block]),
        ("beyond wait", &["shmem_long_wait_until_all: ivars is 48 bytes", "only 40", block]),
        ("null source", &["shmem_long_put: source is null", "16 bytes"]),
        ("null dest", &["shmem_long_get: dest is null", "16 bytes"]),
        ("between", &["shmem_long_p: dest", "in no block", "8 bytes behind the end of", block]),
        ("freed", &["shmem_long_p: dest", freed[0], freed[1], freed[2]]),
        ("freed atomic", &["shmem_long_atomic_add: dest", freed[0], freed[1], freed[2]]),
        ("freed wait", &["shmem_long_wait_until: ivar", freed[0], freed[1], freed[2]]),
        ("freed source", &["shmem_long_put: source", freed[0], freed[1], freed[2]]),
        ("freed reduce", &["shmem_long_sum_reduce: source", freed[0], freed[1], freed[2]]),
        ("moved", &["shmem_long_p: dest", "given back", "shmem_realloc", block]),
        ("shrunk", &["shmem_long_p: dest", "0 bytes behind the end of the block of 24 bytes"]),
        ("changed quiet", &["shmem_quiet: the source of shmem_long_put_nbi", changed[0], changed[1]]),
        ("changed barrier", &["shmem_barrier_all: the source of shmem_long_put_nbi", changed[0], changed[1]]),
        ("changed signal", &["shmem_finalize: the source of shmem_long_put_signal_nbi", changed[1]]),
        ("changed context", &["shmem_ctx_destroy: the source of shmem_ctx_putmem_nbi", changed[1]]),
        ("changed free", &["shmem_free: the source of shmem_long_put_nbi", changed[1]]),
        ("changed request", &["shmemx_req_wait: the source of shmemx_long_sum_reduce_nb", changed[1]]),
        ("unmapped", &["shmem_quiet: the source of shmem_putmem_nbi", "is no memory any more"]),
        ("operation", &["shmem_long_", "disagree", "all_reduce(sum of i64", "all_reduce(max of i64"]),
        ("operation of many", &["disagree", "all_reduce(and of u64, blocks of 1000", "all_reduce(or of u64"]),
        ("operation of set", &["_to_all", "disagree", "all_reduce(product of i64", "all_reduce(min of i64"]),
        ("operation of request", &["_reduce_nb", "disagree", "all_reduce(sum of i64", "all_reduce(max of"]),
        ("operation of long double", &["disagree", "sum of long double", "product of long double"]),
        ("element", &["disagree", "all_reduce(sum of i64", "all_reduce(sum of f64"]),
        ("element of scan", &["_sum_inscan", "inclusive_scan(sum of i64", "inclusive_scan(sum of f64"]),
    ];
    let program = c_file("checks", &[]);
    for (which, words) in mistakes {
        for route in ROUTES {
            run_with(&program, &[which], 2, &[&[CHECKED], route].concat()).assert_refused(1, words);
        }
    }
}

/// A wait for what never comes is told with the name of the call, checked or not.
#[test]
fn waits_that_cannot_end_name_the_call() {
    let text = r#"
        #include <shmem.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        static int flag;
        int main(int argc, char **argv) {
            (void) argc;
            shmem_init();
            long *block = shmem_malloc(8);
            if (shmem_my_pe() == 0) {
                if (strcmp(argv[1], "wait") == 0) shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
                if (strcmp(argv[1], "any") == 0) shmem_int_wait_until_any(&flag, 1, NULL, SHMEM_CMP_EQ, 1);
                if (strcmp(argv[1], "free") == 0) shmem_free(block);
                if (strcmp(argv[1], "malloc") == 0) shmem_malloc(8);
                if (strcmp(argv[1], "finalize") == 0) shmem_finalize();
                return 97;
            }
            for (;;) pause();
        }
    "#;
    let program = c_program(text, &["-D_GNU_SOURCE"]);
    let calls = [
        ("wait", "shmem_int_wait_until"),
        ("any", "shmem_int_wait_until_any"),
        ("free", "shmem_free"),
        ("malloc", "shmem_malloc"),
        ("finalize", "shmem_finalize"),
    ];
    for (which, call) in calls {
        let ended = run_with(&program, &[which], 2, &[("PELAGO_WAIT_LIMIT", "1")]);
        assert_ne!(ended.status, 0, "{}", ended.line);
        assert!(ended.stderr.contains(&format!(", in {call}")), "{}: {}", ended.line, ended.stderr);
    }
}
