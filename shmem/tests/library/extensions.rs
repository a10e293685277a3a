//! Extensions in C: `c/extension*.c`, a program for each group of docs/openshmem-extensions.md.

use crate::common::{ROUTES, assert_mistakes, c_file, cxx_program, run, run_everywhere, run_with};

/// A name that another library has takes that library's arguments, or is not declared.
#[test]
fn names_of_other_libraries_keep_their_arguments() {
    run(&c_file("vendors", &[]), 1, &[]).assert_silent();
}

/// Checks compare calls and refuse overlaps; what is right stays right.
#[test]
fn checks_find_nothing_but_mistakes() {
    let checked = [("PELAGO_CHECK", "on")];
    for file in ["extension", "extension_requests", "extension_memory", "extension_spaces"] {
        run(&c_file(file, &[]), 3, &checked).assert_silent();
    }
    let overlaps = [
        ("extension_memory", "both", "shmemx_alltoallvmem"),
        ("extension_requests", "overlap", "shmemx_alltoallmem_nb"),
    ];
    for (file, which, call) in overlaps {
        run_with(&c_file(file, &[]), &[which], 2, &checked).assert_refused(1, &[call, "overlap"]);
    }
}

#[test]
fn other_names_and_forms_for_short_do_as_the_standards() {
    run_everywhere(&c_file("extension", &[]));
}

#[test]
fn other_names_refuse_mistakes_by_their_own_name() {
    assert_mistakes(
        &c_file("extension", &[]),
        &[
            ("gettid", &["shmemx_register_gettid", "gettid_fn is null"]),
            ("pe", &["shmemx_signal_add", "pe is 2"]),
            ("context", &["shmemx_ctx_ibput32", "SHMEM_CTX_INVALID"]),
            ("stride", &["shmemx_double_ibget", "dst is 1"]),
            ("team", &["shmemx_long_sum_inscan", "SHMEM_TEAM_INVALID"]),
            ("cmp", &["shmemx_signed_short_test_all", "cmp is 77"]),
            ("private", &["shmemx_signed_short_wait_until_all", "ivars", "not symmetric"]),
            ("destroy", &["shmem_team_destroy", "SHMEMX_TEAM_NODE"]),
        ],
    );
}

/// Generic names are overloads there.
const CXX: &str = r#"
#include <shmem.h>
#include <shmemx.h>

static short word;
static std::complex<double> number(1, 2), sum;
static uint64_t signal_word;

int main()
{
    shmem_init();
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    shmem_short_p(&word, 5, right);
    shmem_wait_until_all(&word, 1, nullptr, SHMEM_CMP_EQ, 5);
    shmemx_signal_add(SHMEM_CTX_DEFAULT, &signal_word, 1, right);
    shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 1);
    int status = shmemx_sum_inscan(SHMEM_TEAM_WORLD, &sum, &number, 1);
    double terms = shmem_my_pe() + 1;
    shmem_finalize();
    return status != 0 || sum != std::complex<double>(terms, 2 * terms);
}
"#;

#[test]
fn generic_names_are_there_in_cxx() {
    run(&cxx_program(CXX, &["-pedantic"]), 2, &[]).assert_silent();
}

#[test]
fn requests_are_over_when_they_say_so() {
    run_everywhere(&c_file("extension_requests", &[]));
}

#[test]
fn threads_have_requests_of_their_own() {
    let program = c_file("extension_threads", &["-lpthread"]);
    run_everywhere(&program);
    for route in ["auto", "net"] {
        let variables = [("PELAGO_COUNTERS", "on"), ("PELAGO_ROUTE", route)];
        run(&program, 2, &variables).assert_silent();
    }
}

#[test]
fn requests_refuse_mistakes() {
    assert_mistakes(
        &c_file("extension_requests", &[]),
        &[
            ("null", &["shmemx_team_sync_nb", "request is null"]),
            ("null test", &["shmemx_req_test", "request is null"]),
            ("null wait", &["shmemx_req_wait", "request is null"]),
            ("team", &["shmemx_team_sync_nb", "SHMEM_TEAM_INVALID"]),
            ("dest", &["shmemx_int_sum_reduce_nb", "dest", "not symmetric"]),
            ("source", &["shmemx_broadcastmem_nb", "source", "not symmetric"]),
            ("long double", &["shmemx_longdouble_min_reduce_nb", "dest", "not symmetric"]),
            ("root", &["shmemx_broadcastmem_nb", "PE_root is 2"]),
            ("large", &["shmemx_fcollectmem_nb", "not symmetric"]),
            ("garbage", &["shmemx_req_wait", "request is 0x", "never made"]),
            ("destroy", &["shmem_team_destroy", "1 collective operations", "under way"]),
            ("twice", &["shmemx_req_test", "a request that was destroyed"]),
        ],
    );
}

#[test]
fn exchanges_teams_and_counters_do_as_documented() {
    let program = c_file("extension_memory", &[]);
    run_everywhere(&program);
    for route in ["auto", "net"] {
        let variables = [("PELAGO_COUNTERS", "on"), ("PELAGO_ROUTE", route)];
        run(&program, 3, &variables).assert_silent();
    }
}

#[test]
fn exchanges_teams_and_counters_refuse_mistakes() {
    assert_mistakes(
        &c_file("extension_memory", &[]),
        &[
            ("early", &["shmemx_heap_free", "before shmem_init"]),
            ("lengths", &["shmemx_alltoallvmem", "the lengths do not fit together"]),
            ("swapped", &["shmemx_alltoallvmem", "the lengths do not fit together"]),
            ("null offset", &["shmemx_alltoallvmem", "t_offset is null"]),
            ("null size", &["shmemx_alltoallvmem", "s_size is null"]),
            ("overlap", &["shmemx_alltoallvmem", "t_offset[0] is 0", "overlap"]),
            ("wraps", &["shmemx_alltoallvmem", "t_offset[0]", "behind the address space"]),
            ("behind", &["shmemx_alltoallvmem", "source is 7 bytes", "not symmetric"]),
            ("dest", &["shmemx_alltoallvmem", "dest", "not symmetric"]),
            ("color place", &["shmemx_team_split_by_color", "new_team is null"]),
            ("color config", &["shmemx_team_split_by_color", "configuration is null"]),
            ("3d place", &["shmemx_team_split_xyz", "yaxis_team is null"]),
            ("3d ranges", &["shmemx_team_split_xyz", "other arguments"]),
            ("counts", &["shmemx_pcntr_get_all", "SHMEM_CTX_INVALID"]),
            ("counts of none", &["shmemx_pcntr_get_issued_read", "never made"]),
            ("quiet", &["shmemx_ctx_quiet_test", "never made"]),
            ("local", &["shmemx_ctx_local_complete", "never made"]),
            ("ct place", &["shmemx_ct_create", "ct is null"]),
            ("ct", &["shmemx_ct_wait", "ct", "not symmetric"]),
            ("ct pe", &["shmemx_putmem_ct", "pe is 2"]),
            ("ct free", &["shmemx_ct_free", "no block of the symmetric heap begins"]),
        ],
    );
}

#[test]
fn spaces_are_memory_of_one_team() {
    let program = c_file("extension_spaces", &["-lpthread"]);
    run_everywhere(&program);
    run(&program, 4, &[("PELAGO_COUNTERS", "on")]).assert_silent();
}

#[test]
fn threads_make_spaces_while_others_allocate() {
    let program = c_file("extension_spaces", &["-lpthread"]);
    for variables in ROUTES {
        for n in [2, 4] {
            run_with(&program, &["threads"], n, variables).assert_silent();
        }
    }
}

#[test]
fn spaces_refuse_mistakes() {
    let no_block = "where no block of the space 0x";
    assert_mistakes(
        &c_file("extension_spaces", &[]),
        &[
            ("early", &["shmemx_space_team", "before shmem_init"]),
            ("place", &["shmemx_space_create", "space is null"]),
            ("team", &["shmemx_space_create", "team is 0x", "never made"]),
            ("sizes", &["shmemx_space_create", "of 100 bytes", "of 200 bytes", "All members"]),
            ("none", &["shmemx_space_malloc", "SHMEMX_SPACE_INVALID"]),
            ("none calloc", &["shmemx_space_calloc", "SHMEMX_SPACE_INVALID"]),
            ("none align", &["shmemx_space_align", "SHMEMX_SPACE_INVALID"]),
            ("none free", &["shmemx_space_free", "SHMEMX_SPACE_INVALID"]),
            ("none available", &["shmemx_space_available", "SHMEMX_SPACE_INVALID"]),
            ("none team", &["shmemx_space_team", "SHMEMX_SPACE_INVALID"]),
            ("garbage", &["shmemx_space_malloc", "space is 0x", "never made"]),
            ("garbage destroy", &["shmemx_space_destroy", "space is 0x", "never made"]),
            ("malloc sizes", &["shmemx_space_malloc", "of 100 bytes", "of 200 bytes"]),
            ("calloc sizes", &["shmemx_space_calloc", "of 100 bytes", "of 200 bytes"]),
            ("alignments", &["shmemx_space_align", "aligned to 64", "aligned to 128"]),
            ("alignment", &["shmemx_space_align", "alignment is 48"]),
            ("calls", &["shmemx_space_malloc of 8 bytes", "shmemx_space_calloc of 8 bytes"]),
            ("spaces", &["shmemx_space_malloc", "in the space at heap offset"]),
            ("destroys", &["shmemx_space_destroy", "of the space at heap offset"]),
            ("free blocks", &["shmemx_space_free", "of the block at heap offset"]),
            ("free middle", &["shmemx_space_free", "ptr is 0x", no_block]),
            ("free twice", &["shmemx_space_free", "ptr is 0x", no_block]),
            ("free of other", &["shmemx_space_free", "ptr is 0x", no_block]),
            ("free of world", &["shmemx_space_free", "ptr is 0x", no_block]),
            ("free of private", &["shmemx_space_free", "ptr is 0x", no_block]),
            ("world free", &["shmem_free", "lies in a space", "shmemx_space_free"]),
            ("world free middle", &["shmem_free", "lies in a space", "shmemx_space_free"]),
            ("world realloc", &["shmem_realloc", "lies in a space", "shmemx_space_free"]),
            ("world sizes", &["shmem_malloc", "alloc(100 bytes", "alloc(200 bytes"]),
            ("world resizes", &["shmem_realloc", "to 10000 bytes", "to 20000 bytes"]),
            ("world calls", &["alloc(8 bytes", "resize(array"]),
            ("team destroyed", &["shmem_team_destroy", "1 spaces of the team are left"]),
            ("destroyed", &["shmemx_space_malloc", "space is 0x", "was destroyed"]),
            ("destroyed twice", &["shmemx_space_destroy", "space is 0x", "was destroyed"]),
            ("after the end", &["shmemx_space_available", "after the last shmem_finalize"]),
            ("again", &["shmemx_space_available", "space is 0x", "was destroyed"]),
        ],
    );
}
