//! Ways in which a program may initialise, finalise and end.

mod common;

use common::{c_file, run_with};

/// Runs `ends.c`; it must end well and say nothing, but for what the library says in words.
#[track_caller]
fn ends_well(how: &str, n_pes: usize) {
    let program = c_file("ends", &["-lpthread"]);
    assert_eq!(run_with(&program, &[how], n_pes, &[]).output(), "", "{how}");
}

#[test]
fn without_the_last_finalize() {
    ends_well("return", 1);
    ends_well("return", 3);
}

#[test]
fn from_an_exit_handler() {
    ends_well("atexit", 2);
}

#[test]
fn at_once_after_the_last_finalize() {
    ends_well("_exit", 3);
    let program = c_file("ends", &["-lpthread"]);
    run_with(&program, &["_exit-3"], 2, &[]).assert_refused(3, &[]);
}

#[test]
fn initialisations_are_counted() {
    ends_well("counted", 2);
}

#[test]
fn a_wait_that_a_thread_of_the_same_pe_ends() {
    ends_well("thread", 1);
}

#[test]
fn a_child_of_fork_cannot_join() {
    let ended = run_with(&c_file("ends", &["-lpthread"]), &["child"], 2, &[]);
    let reasons = ended.stderr.matches("shmem_init_thread: a child of fork is no PE").count();
    assert_eq!((ended.output(), reasons), ("", 4), "{}: {}", ended.line, ended.stderr);
}

#[test]
fn a_job_ends_while_a_pe_finalises() {
    let program = c_file("ends", &["-lpthread"]);
    run_with(&program, &["stuck"], 2, &[]).assert_refused(7, &["7"]);
}
