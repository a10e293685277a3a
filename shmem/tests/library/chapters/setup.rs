//! Ways in which a program may initialise, finalise and end.

use crate::common::{ROUTES, c_file, c_program, run, run_with};

/// Runs `ends.c`; it must end well and say nothing, apart from error messages of the library.
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
    ends_well("handler", 1);
    for variables in ROUTES {
        let program = c_file("ends", &["-lpthread"]);
        assert_eq!(run_with(&program, &["handler"], 3, variables).output(), "", "{variables:?}");
    }
}

#[test]
fn exit_handlers_run_before_a_global_exit_ends_the_job() {
    for flags in [&["-lpthread"][..], &["-lpthread", "--static"]] {
        let ended = run_with(&c_file("ends", flags), &["global-handler"], 3, &[]);
        assert_eq!((ended.status, ended.stdout.as_str()), (5, "saved\n"), "{ended:?}");
    }
}

#[test]
fn all_pes_that_end_the_job_write_their_output() {
    for variables in ROUTES {
        let ended = run_with(&c_file("ends", &["-lpthread"]), &["global-all"], 3, variables);
        let mut lines: Vec<_> = ended.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            (ended.status, &lines[..]),
            (6, &["PE 0", "PE 1", "PE 2", "saved", "saved"][..]),
            "{ended:?}"
        );
    }
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

/// The PEs of an OpenSHMEM program have static data of their own, so they are processes.
#[test]
fn several_pes_a_process_are_refused() {
    let by_init = "shmem_init();";
    let by_init_thread = "int provided; if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided)) return 1;";
    for (call, init) in [("shmem_init", by_init), ("shmem_init_thread", by_init_thread)] {
        let text = format!("#include <shmem.h>\nint main(void) {{ {init} shmem_finalize(); return 0; }}\n");
        let ended = run(&c_program(&text, &[]), 4, &[("PELAGO_PES_PER_PROCESS", "2")]);
        let reason = format!("{call}: PELAGO_PES_PER_PROCESS is 2");
        ended.assert_refused(1, &[&reason, "OpenSHMEM program", "one PE a process", "pelago run: PEs "]);
    }
}

/// A program that has no threads yet gets lighter endpoints of libfabric's layer `ofi_rxm`, unless the user
/// has said how heavy they are to be; others are left alone, as a thread might read the environment.
#[test]
fn endpoints_of_libfabric_are_made_lighter() {
    let program = |before: &str| {
        let text = format!(
            "#include <pthread.h>\n#include <shmem.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
             #include <unistd.h>\n\
             void *wait_for_ever(void *nothing) {{ for (;;) pause(); return nothing; }}\n\
             int main(void) {{ pthread_t thread; (void) thread; {before} shmem_init();\n\
             const char *value = getenv(\"FI_OFI_RXM_MSG_RX_SIZE\"); puts(value ? value : \"none\");\n\
             shmem_finalize(); return 0; }}\n"
        );
        c_program(&text, &["-pthread"])
    };
    let (plain, threaded) = (program(""), program("pthread_create(&thread, NULL, wait_for_ever, NULL);"));
    assert_eq!(run(&plain, 1, &[]).output(), "256\n");
    assert_eq!(run(&plain, 1, &[("FI_OFI_RXM_MSG_RX_SIZE", "1000")]).output(), "1000\n");
    assert_eq!(run(&plain, 1, &[("PELAGO_FABRIC", "shm")]).output(), "none\n");
    assert_eq!(run(&threaded, 1, &[]).output(), "none\n");
}
