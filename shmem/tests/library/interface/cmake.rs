//! `find_package(Pelago)` of CMake: programs of OpenSHMEM and MPI are built against an installation that was
//! moved, and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{folder, installed};

const PROJECT: &str = "\
cmake_minimum_required(VERSION 3.18)
project(user C CXX)
find_package(Pelago 0.1 REQUIRED COMPONENTS shmem mpi)
add_executable(ring ring.c)
target_link_libraries(ring PRIVATE Pelago::shmem)
add_executable(sum sum.cpp)
target_link_libraries(sum PRIVATE Pelago::mpi)
";

const RING: &str = "\
#include <shmem.h>
#include <stdio.h>
int main(void) {
    shmem_init();
    static int box;
    shmem_int_p(&box, 7, (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    if (shmem_my_pe() == 0) printf(\"%d\\n\", box);
    shmem_finalize();
}
";

const SUM: &str = "\
#include <cstdio>
#include <mpi.h>
int main() {
    MPI_Init(nullptr, nullptr);
    int one = 1, sum = 0, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) std::printf(\"%d\\n\", sum);
    MPI_Finalize();
}
";

/// An empty folder.
fn scratch(name: &str) -> PathBuf {
    let path = folder().join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Runs a program; returns its standard output.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    text.into_owned()
}

/// Configures the project against a prefix.
fn configure(source: &Path, prefix: &Path) -> Command {
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(source).arg("-B").arg(source.join("build"));
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    cmake
}

#[test]
fn programs_of_both_interfaces_find_the_package() {
    let source = scratch("cmake");
    let moved = source.join("moved prefix");
    output(Command::new("cp").arg("-a").arg(installed()).arg(&moved));
    for (name, text) in [("CMakeLists.txt", PROJECT), ("ring.c", RING), ("sum.cpp", SUM)] {
        fs::write(source.join(name), text).unwrap();
    }
    output(&mut configure(&source, &moved));
    output(Command::new("cmake").arg("--build").arg(source.join("build")));
    for (program, expected) in [("ring", "7\n"), ("sum", "2\n")] {
        let mut launcher = Command::new(moved.join("bin/pelago"));
        launcher.args(["run", "-n", "2"]).arg(source.join("build").join(program));
        assert_eq!(output(&mut launcher), expected, "{program}");
    }
}

#[test]
fn other_versions_and_missing_libraries_are_refused() {
    let source = scratch("cmake-refused");
    fs::write(source.join("ring.c"), RING).unwrap();
    fs::write(source.join("sum.cpp"), SUM).unwrap();
    let refused = |project: &str, prefix: &Path, part: &str| {
        fs::write(source.join("CMakeLists.txt"), project).unwrap();
        let _ = fs::remove_dir_all(source.join("build"));
        let output = configure(&source, prefix).output().unwrap();
        // CMake breaks lines where they become long.
        let errors = String::from_utf8_lossy(&output.stderr);
        let errors = errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!output.status.success() && errors.contains(part), "{errors}");
    };
    refused(&PROJECT.replace("Pelago 0.1", "Pelago 7.0"), installed(), "compatible with requested version");
    refused(&PROJECT.replace("COMPONENTS shmem", "COMPONENTS upc"), installed(), "not upc");
    let bare = source.join("bare");
    output(Command::new("cp").arg("-a").arg(installed()).arg(&bare));
    fs::remove_file(bare.join("lib/libmpi_abi.so.1")).unwrap();
    refused(PROJECT, &bare, "no libmpi_abi.so.1");
}
