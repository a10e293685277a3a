//! Other software: a program that was compiled once runs on this library and on MPICH's of the same ABI,
//! under the launchers of others, and CMake finds this library by `mpicc`. Needs Python with `venv`, and
//! PyPI.

use super::mpi_program;
use crate::common::{end_of, folder, installed, run};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// From PyPI: another library of the ABI, and CMake.
const PACKAGES: [&str; 2] = ["mpich==5.0.2", "cmake==4.4.5"];

/// The folder in which they are installed, once.
fn environment() -> PathBuf {
    installed();
    let home = folder().join("mpi-others");
    let lock = File::create(folder().join("mpi-others.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let mark = home.join("installed");
    if !fs::read_to_string(&mark).is_ok_and(|before| before == PACKAGES.join(" ")) {
        let _ = fs::remove_dir_all(&home);
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&home);
        end_of(venv).output();
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args(["--quiet", "--disable-pip-version-check", "install"]).args(PACKAGES);
        end_of(pip).output();
        fs::write(mark, PACKAGES.join(" ")).unwrap();
    }
    home
}

/// Says which library it runs on, and the sum of the ranks.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, rank, sum = -1;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Sendrecv(&rank, 1, MPI_INT, rank, 4, &length, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
    if (rank == 0) printf("%.6s %d %d\n", version, sum, status.MPI_TAG);
    MPI_Finalize();
    return length != rank || status.MPI_SOURCE != rank;
}
"#;

#[test]
fn a_program_runs_on_this_library_and_on_mpichs() {
    let (program, others) = (mpi_program(PROGRAM, &[]), environment());
    assert_eq!(run(&program, 3, &[]).output(), "Pelago 3 4\n");
    let mut command = Command::new(others.join("bin/mpiexec"));
    command.args(["-n", "3"]).arg(&program).env("LD_LIBRARY_PATH", others.join("lib"));
    assert_eq!(end_of(command).output(), "MPICH  3 4\n");
}

#[test]
fn other_launchers_start_programs_of_this_library() {
    let program = mpi_program(PROGRAM, &[]);
    for words in [&["mpiexec.hydra"][..], &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]] {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["-n", "3"]).arg(&program);
        assert_eq!(end_of(command).output(), "Pelago 3 4\n");
    }
}

#[test]
fn cmake_finds_the_library() {
    let (others, place) = (environment(), folder().join("mpi-cmake"));
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("hello.c"), PROGRAM).unwrap();
    let lists = "cmake_minimum_required(VERSION 3.16)\nproject(hello C CXX)\nfind_package(MPI REQUIRED)\n\
                 add_executable(hello hello.c)\ntarget_link_libraries(hello MPI::MPI_C)\n";
    fs::write(place.join("CMakeLists.txt"), lists).unwrap();
    let cmake = |words: &[&str]| {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(others.join("bin/cmake"));
        command.args(words).current_dir(&place);
        command.env("PATH", format!("{}:{path}", installed().join("bin").display()));
        end_of(command).output().to_owned()
    };
    let found = cmake(&["-B", "build"]);
    assert!(
        found.contains(&format!("Found MPI_C: {}", installed().join("lib/libmpi_abi.so").display())),
        "{found}"
    );
    cmake(&["--build", "build"]);
    assert_eq!(run(Path::new(&place.join("build/hello")), 2, &[]).output(), "Pelago 1 4\n");
}
