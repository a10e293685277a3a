//! Profiling tools: a tool that defines a function of the interface gets its calls, and reaches the library
//! by the function's twin. And programs that load the library at run time.

use super::mpi_program;
use crate::common::{compiled, end_of, folder, installed, run};
use std::process::Command;

/// A tool that counts sends and says how many there were.
const TOOL: &str = r#"
#include <mpi.h>
#include <stdio.h>

static int sends_seen;

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    sends_seen++;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int MPI_Finalize(void)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("PE %d: %d sends\n", rank, sends_seen);
    return PMPI_Finalize();
}
"#;

/// Each PE sends two messages to its right neighbour, one of them by another function.
const PROGRAM: &str = r#"
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, got[2];
    MPI_Request requests[2];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 2; i++)
        MPI_Irecv(&got[i], 1, MPI_INT, (rank + size - 1) % size, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
    MPI_Ssend(&rank, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Finalize();
    return got[0] != (rank + size - 1) % size || got[1] != got[0];
}
"#;

#[track_caller]
fn assert_counted(output: &str, n: usize) {
    let mut lines: Vec<_> = output.lines().collect();
    lines.sort_unstable();
    let expected: Vec<_> = (0..n).map(|pe| format!("PE {pe}: 1 sends")).collect();
    assert_eq!(lines, expected);
}

fn together() -> String {
    TOOL.to_owned() + PROGRAM
}

#[test]
fn a_tool_linked_with_the_shared_library() {
    assert_counted(run(&mpi_program(&together(), &[]), 2, &[]).output(), 2);
}

#[test]
fn a_tool_linked_with_the_archive() {
    assert_counted(run(&mpi_program(&together(), &["--static"]), 2, &[]).output(), 2);
}

#[test]
fn a_tool_loaded_before_the_library() {
    let source = folder().join("mpi-tool.c");
    installed();
    std::fs::write(&source, TOOL).unwrap();
    let tool = compiled("mpicc", &source, &["-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]);
    let mut command = Command::new(installed().join("bin/mpiexec"));
    command
        .args(["-np", "2", "-x", &format!("LD_PRELOAD={}", tool.display())])
        .arg(mpi_program(PROGRAM, &[]));
    assert_counted(end_of(command).output(), 2);
}

#[test]
fn a_tool_that_is_a_library_of_the_program() {
    let source = folder().join("mpi-tool-linked.c");
    installed();
    std::fs::write(&source, TOOL).unwrap();
    let tool = compiled("mpicc", &source, &["-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]);
    let program = mpi_program(PROGRAM, &["-Wl,--no-as-needed", tool.to_str().unwrap()]);
    assert_counted(run(&program, 2, &[]).output(), 2);
}

#[test]
fn without_a_tool_nothing_is_counted() {
    for flags in [&[][..], &["--static"], &["-static"]] {
        run(&mpi_program(PROGRAM, flags), 2, &[]).assert_silent();
    }
}

/// Calls go to the runtime, not to the functions of the filter.
#[test]
fn names_are_bound_to_the_runtime() {
    let mut command = Command::new(mpi_program(PROGRAM, &[]));
    command.env("LD_DEBUG", "bindings").env("LD_BIND_NOW", "1");
    let ended = end_of(command);
    assert_eq!(ended.status, 0, "{}", ended.stdout);
    let bindings: Vec<_> = ended.stderr.lines().filter(|line| line.contains("symbol `MPI_")).collect();
    assert!(!bindings.is_empty(), "{}", ended.stderr);
    for line in bindings {
        let target = line.split(" to ").nth(1).unwrap();
        assert!(target.contains("libpelago.so.0"), "{line}");
    }
}

#[test]
fn a_program_that_loads_the_library_at_run_time() {
    let text = r#"
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *mpi = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (argc < 2 || !mpi) return fprintf(stderr, "%s\n", dlerror());
    int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(mpi, "MPI_Init");
    int (*finalize)(void) = (int (*)(void))dlsym(mpi, "PMPI_Finalize");
    return !init || !finalize || init(&argc, &argv) || finalize();
}
"#;
    let program = mpi_program(text, &["-ldl", "-Wl,--as-needed", "-Wno-pedantic"]);
    let library = installed().join("lib/libmpi_abi.so.1");
    crate::common::run_with(&program, &[library.to_str().unwrap()], 2, &[]).assert_silent();
}
