//! The messages of jobs that fail: they name the PE, the call and the reason.

use super::mpi_program;
use crate::common::{ROUTES, run_with};

/// A mistake by each argument; rank 0 waits for rank 1 in most of them.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *mistake = argc > 1 ? argv[1] : "";
    if (!strcmp(mistake, "early")) {
        int rank;
        return MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    } else if (!strcmp(mistake, "session")) {
        MPI_Session session;
        return MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    }
    MPI_Init(&argc, &argv);
    int rank, numbers[8] = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(mistake, "death")) {
        if (rank == 1) raise(SIGKILL);
        MPI_Recv(numbers, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (!strcmp(mistake, "abort")) {
        if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
        MPI_Recv(numbers, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (!strcmp(mistake, "truncated")) {
        if (rank == 1) MPI_Send(numbers, 8, MPI_INT, 0, 5, MPI_COMM_WORLD);
        else MPI_Recv(numbers, 2, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(mistake, "rank")) {
        if (rank == 1) MPI_Send(numbers, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(mistake, "count")) {
        if (rank == 1) MPI_Send(numbers, -3, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(mistake, "comm")) {
        if (rank == 1) MPI_Barrier(MPI_COMM_NULL);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(mistake, "twice")) {
        MPI_Init(&argc, &argv);
    } else if (!strcmp(mistake, "gone")) {
        if (rank == 0) MPI_Recv(numbers, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (!strcmp(mistake, "one barrier more")) {
        if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(mistake, "exit")) {
        if (rank == 1) exit(3);
        MPI_Recv(numbers, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (!strcmp(mistake, "file")) {
        MPI_File file;
        MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
        MPI_File_open(MPI_COMM_WORLD, "/no such folder/data", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    } else if (!strcmp(mistake, "lock")) {
        int *part;
        MPI_Win window;
        MPI_Win_allocate(sizeof *part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &window);
        if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) pause();
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
    } else if (!strcmp(mistake, "forgotten")) {
        return 0;
    }
    MPI_Finalize();
    if (!strcmp(mistake, "late"))
        return MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}
"#;

/// The exit status of a job whose PE calls `MPI_Abort`, or whose error is fatal, is that of the error.
#[test]
fn mistakes_end_the_job_in_words() {
    let program = mpi_program(PROGRAM, &[]);
    // The exit status of a fatal error is its class (MPI 5.0, 20.1).
    let cases: [(&str, i32, &[&str]); 11] = [
        ("death", 137, &["PE 1", "signal 9"]),
        ("abort", 7, &["PE 1", "MPI_Abort", "7"]),
        ("truncated", 15, &["PE 0: MPI_Recv", "rank 1", "tag 5", "2 elements"]),
        ("rank", 6, &["PE 1: MPI_Send", "99"]),
        ("count", 2, &["PE 1: MPI_Send", "-3"]),
        ("comm", 5, &["PE 1: MPI_Barrier", "MPI_COMM_NULL"]),
        ("twice", 16, &["MPI_Init", "second time"]),
        ("exit", 3, &["PE 1", "3"]),
        ("file", 42, &["MPI_File_open", "/no such folder/data"]),
        ("early", 16, &["MPI_Comm_rank", "before MPI_Init"]),
        ("late", 16, &["MPI_Barrier", "after MPI_Finalize"]),
    ];
    for variables in ROUTES {
        for (mistake, status, words) in cases {
            run_with(&program, &[mistake], 2, variables).assert_refused(status, words);
        }
    }
}

/// The other process waits in `MPI_Finalize` until all are there.
#[test]
fn a_wait_for_a_process_that_has_come_to_its_end_is_reported() {
    let program = mpi_program(PROGRAM, &[]);
    let ends = |mistake: &str, variables| {
        let ended = run_with(&program, &[mistake], 2, variables);
        assert!(ended.status != 0, "{}", ended.line);
        ended.assert_refused(ended.status, &["PE 0: waits for", "PE 1 has left the job"]);
    };
    // The jobs do nothing but wait, each for many seconds: they run at the same time.
    std::thread::scope(|scope| {
        for mistake in ["gone", "one barrier more"] {
            for variables in ROUTES {
                scope.spawn(move || ends(mistake, variables));
            }
        }
    });
}

/// Also over a network, where the waiting process polls.
#[test]
fn a_lock_that_is_not_given_back_ends_the_job_at_the_limit_of_waits() {
    let program = mpi_program(PROGRAM, &[]);
    for variables in ROUTES {
        let variables = [variables, &[("PELAGO_WAIT_LIMIT", "2")]].concat();
        let ended = run_with(&program, &["lock"], 2, &variables);
        let words = ["PE 1", "completion of MPI_Win_lock", "PELAGO_WAIT_LIMIT"];
        assert!(ended.status != 0, "{}", ended.line);
        ended.assert_refused(ended.status, &words);
    }
}

#[test]
fn a_process_that_exits_without_mpi_finalize_is_reported() {
    let ended = run_with(&mpi_program(PROGRAM, &[]), &["forgotten"], 2, &[]);
    assert!(ended.status != 0 && ended.stderr.contains("PE"), "{}: {}", ended.line, ended.stderr);
}

#[test]
fn a_session_that_is_open_at_the_end_is_named() {
    let ended = run_with(&mpi_program(PROGRAM, &[]), &["session"], 2, &[]);
    let named = "the program ends while MPI is in use. Call MPI_Session_finalize";
    assert!(ended.status != 0 && ended.stderr.contains(named), "{}: {}", ended.line, ended.stderr);
}

/// Objects that are left are printed with `PELAGO_CHECK=on` alone.
#[test]
fn what_is_left_at_the_end_is_named() {
    let program = mpi_program(
        r#"
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, number = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm copy, half, freed;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_dup(MPI_COMM_WORLD, &freed);
    MPI_Comm_free(&freed);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &half);
    /* It cannot be freed. */
    MPI_Datatype real;
    MPI_Type_create_f90_real(6, 30, &real);
    MPI_Request request;
    if (rank == 1) MPI_Irecv(&number, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
    MPI_Finalize();
    return 0;
}
"#,
        &[],
    );
    run_with(&program, &[], 2, &[]).assert_silent();
    let ended = run_with(&program, &[], 2, &[("PELAGO_CHECK", "on")]);
    let comms = "2 communicators are left: 1 of MPI_Comm_dup, 1 of MPI_Comm_split. Free communicators by \
                 MPI_Comm_free\n";
    let request = "PE 1: MPI_Finalize: a request is left: 1 of MPI_Irecv. Complete requests, for example by \
                   MPI_Wait, or free them\n";
    assert_eq!(ended.status, 0, "{}: {}", ended.line, ended.stderr);
    for line in
        [format!("PE 0: MPI_Finalize: {comms}"), format!("PE 1: MPI_Finalize: {comms}"), request.into()]
    {
        assert!(ended.stderr.contains(&line), "{line}{}", ended.stderr);
    }
    assert_eq!(ended.stderr.lines().count(), 3, "{}", ended.stderr);
}

/// Other calls, or other sizes, at the members of a communicator end the job.
#[test]
fn collective_calls_that_do_not_match_are_named() {
    let program = mpi_program(
        r#"
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, numbers[2] = {0}, sums[2];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1) MPI_Allreduce(numbers, sums, rank ? 2 : 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else if (rank) MPI_Barrier(MPI_COMM_WORLD);
    else MPI_Bcast(numbers, 2, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"#,
        &[],
    );
    let checked = [("PELAGO_CHECK", "on")];
    let ended = run_with(&program, &["sizes"], 2, &checked);
    assert!(ended.status != 0 && ended.stderr.contains("MPI_Allreduce"), "{}", ended.stderr);
    let ended = run_with(&program, &[], 2, &checked);
    assert!(ended.status != 0 && ended.stderr.contains("MPI_B"), "{}", ended.stderr);
}
