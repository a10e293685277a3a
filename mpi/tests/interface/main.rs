//! The installed MPI library: its header, its names, its wrappers and launchers, MPI and OpenSHMEM in one
//! process, and the messages of jobs that fail.

#[path = "../../../shmem/tests/library/common/mod.rs"]
mod common;

mod constants;
mod failures;
mod install;
mod interpose;
mod one_runtime;
#[cfg(feature = "full")]
mod others;
mod symbols;

use common::{C_FLAGS, CXX_FLAGS, compiled, written};
use std::path::PathBuf;

/// The program of a text in C, compiled by `mpicc` with these flags besides the usual ones.
#[track_caller]
fn mpi_program(text: &str, flags: &[&str]) -> PathBuf {
    compiled("mpicc", &written(text, "c"), &[&C_FLAGS, flags].concat())
}

/// The program of a text in C++, compiled by `mpicxx`.
#[track_caller]
fn mpi_program_cxx(text: &str, flags: &[&str]) -> PathBuf {
    compiled("mpicxx", &written(text, "cpp"), &[&CXX_FLAGS, flags].concat())
}
