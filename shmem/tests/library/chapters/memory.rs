//! Memory management in C: `c/memory.c`.

use crate::common::{ROUTES, c_file, run, run_everywhere, run_with};

#[test]
fn does_as_its_model() {
    run_everywhere(&c_file("memory", &[]));
}

#[test]
fn does_so_in_a_small_heap_and_under_checks() {
    let program = c_file("memory", &[]);
    for variables in [("SHMEM_SYMMETRIC_SIZE", "3m"), ("PELAGO_CHECK", "on")] {
        run(&program, 3, &[variables]).assert_silent();
    }
}

/// Mistakes that one PE makes for itself, and what is said of each.
const MISTAKES: [(&str, &str, &str); 6] = [
    ("free twice", "shmem_free: ptr is 0x", "it was freed"),
    ("free inside", "shmem_free: ptr is 0x", "no block of the symmetric heap begins"),
    ("free local", "shmem_free: ptr is 0x", "not allocated by shmem_malloc"),
    ("free statics", "shmem_free: ptr is 0x", "not allocated by shmem_malloc"),
    ("free beyond", "shmem_free: ptr is 0x", "no block of the symmetric heap begins"),
    ("realloc local to nothing", "shmem_realloc: ptr is 0x", "not allocated by shmem_malloc"),
];

#[test]
fn refuses_mistakes_in_words() {
    let program = c_file("memory", &[]);
    for (which, call, words) in MISTAKES {
        run_with(&program, &[which], 2, &[]).assert_refused(1, &[call, words]);
    }
}

/// Where no block begins, there is none to free: the result is null, and the program goes on.
#[test]
fn gives_null_to_realloc_without_a_block() {
    let program = c_file("memory", &[]);
    let words = "shmem_realloc: ptr is 0x";
    for which in ["realloc freed", "realloc inside", "realloc local"] {
        for variables in ROUTES {
            run_with(&program, &[which], 2, variables).assert_refused(0, &[words, "null"]);
        }
        run_with(&program, &[which], 2, &[("PELAGO_CHECK", "on")]).assert_refused(1, &[words]);
    }
    let all = [words, "shmem_realloc: ", "the PEs disagree", "heap offset 64,"];
    run_with(&program, &["realloc local on one"], 2, &[]).assert_refused(1, &all);
}

/// Calls that should be the same on all PEs, and what PE 0 and PE 1 do.
const DIFFERENCES: [(&str, &str, &str, &str); 10] = [
    ("malloc differs", "shmem_malloc: ", "alloc(1000 bytes", "alloc(2000 bytes"),
    ("calloc differs", "shmem_calloc: ", "alloc(8000 bytes", "alloc(16000 bytes"),
    ("calloc overflows on one", "shmem_calloc: ", "alloc(18446744073709551615 bytes", "alloc(8 bytes"),
    ("align differs", "shmem_align: ", "aligned to 4096", "aligned to 64"),
    ("align is too large on one", "shmem_align: ", "aligned to 1099511627776", "aligned to 64"),
    ("realloc differs", "shmem_realloc: ", "to 1000 bytes", "to 2000 bytes"),
    ("realloc of others", "shmem_realloc: ", "heap offset 64,", "heap offset 256,"),
    ("free of others", "shmem_free: ", "heap offset 64)", "heap offset 256)"),
    ("malloc and free", "shmem_", "alloc(100 bytes", "free(array"),
    ("realloc and free", "shmem_", "to 10 bytes", "free(array"),
];

#[test]
fn tells_both_calls_if_they_differ() {
    let program = c_file("memory", &[]);
    for (which, call, of_first, of_second) in DIFFERENCES {
        let all = [call, "the PEs disagree", "PE 0 calls ", of_first, "PE 1 calls ", of_second];
        for variables in ROUTES {
            run_with(&program, &[which], 2, variables).assert_refused(1, &all);
        }
    }
}

#[test]
fn refuses_calls_before_and_after() {
    let program = c_file("memory", &[]);
    for which in ["malloc before", "free before", "malloc after", "free after", "realloc after"] {
        let name = which.split(' ').next().unwrap();
        let words = format!("shmem_{name}: called before shmem_init, or after the last shmem_finalize");
        run_with(&program, &[which], 2, &[]).assert_refused(1, &[&words]);
    }
}

#[test]
fn the_heap_has_the_size_that_is_asked_for() {
    let program = c_file("memory", &[]);
    let sizes = [
        ("0", "0"),
        ("0m", "0"),
        ("0.0", "0"),
        ("1", "1"),
        ("4096", "4096"),
        ("1.5k", "1536"),
        ("20kk", "20480"),
        (".5m", "524288"),
        ("3.1M", "3250586"),
        (" 20m", "20971520"),
        ("20 m", "20971520"),
        ("512M", "536870912"),
        ("1g", "1073741824"),
        ("2e6", "2000000"),
        ("1.5E+3k ", "1536000"),
    ];
    for (size, bytes) in sizes {
        run_with(&program, &["size", bytes], 2, &[("SHMEM_SYMMETRIC_SIZE", size)]).assert_silent();
    }
    let old_name = ("SMA_SYMMETRIC_SIZE", "8m");
    run_with(&program, &["size", "8388608"], 2, &[old_name]).assert_silent();
    let both = [("SHMEM_SYMMETRIC_SIZE", "100m"), old_name];
    run_with(&program, &["size", "104857600"], 2, &both).assert_silent();
    // An empty value is as none.
    let other_name = ("SHMEM_SYMMETRIC_HEAP_SIZE", "9m");
    run_with(&program, &["size", "9437184"], 2, &[other_name, ("SHMEM_SYMMETRIC_SIZE", "")]).assert_silent();
    run_with(&program, &["size", "8388608"], 2, &[other_name, old_name]).assert_silent();
    run_with(&program, &["size", "8388608"], 2, &[("SHMEM_SYMMETRIC_SIZE", ""), old_name]).assert_silent();
}

#[test]
fn no_size_is_told() {
    let program = c_file("memory", &[]);
    for size in ["m", "-5", "1e", "20x", "1.2.3", "0x100", "99999999t"] {
        let variables = [("SHMEM_SYMMETRIC_SIZE", size)];
        let reason = format!("SHMEM_SYMMETRIC_SIZE is \"{size}\": give bytes such as ");
        let ended = run_with(&program, &["refused"], 2, &variables);
        ended.assert_refused(0, &[&format!("shmem_init_thread: {reason}")]);
        run(&program, 2, &variables).assert_refused(1, &[&format!("shmem_init: {reason}")]);
    }
    run(&program, 2, &[("SHMEM_SYMMETRIC_SIZE", "1000t")]).assert_refused(1, &["shmem_init", "bytes"]);
}
