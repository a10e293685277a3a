//! The names of the library: those of the standard, with their profiling twins, and no others.
//!
//! `functions.txt` are the functions of MPI 5.0 with their forms for large counts.

use crate::common::{end_of, installed};
use std::collections::BTreeSet;
use std::process::Command;

const STANDARD: &str = include_str!("../functions.txt");

/// The functions that a file of the library defines for programs, besides those of OpenSHMEM.
fn defined(arguments: &[&str], file: &str) -> BTreeSet<String> {
    let mut command = Command::new("nm");
    command.args(["--defined-only", "--format=posix"]).args(arguments);
    command.arg(installed().join("lib").join(file));
    let ended = end_of(command);
    let names = ended.output().lines().filter_map(|line| line.split(' ').next());
    names.filter(|name| !name.ends_with(':') && !name.contains("shmem")).map(str::to_owned).collect()
}

/// The functions that the library should have, under both of their names.
fn expected() -> BTreeSet<String> {
    STANDARD.lines().flat_map(|name| [name.to_owned(), format!("P{name}")]).collect()
}

#[track_caller]
fn assert_same(what: &str, found: &BTreeSet<String>, expected: &BTreeSet<String>) {
    let more: Vec<_> = found.difference(expected).filter(|name| !name.starts_with("PMPI")).collect();
    let fewer: Vec<_> = expected.difference(found).filter(|name| !name.starts_with("PMPI")).collect();
    assert!(
        found == expected,
        "{what}: names that are not expected: {more:?}; names that are not there: {fewer:?}"
    );
}

#[test]
fn the_library_exports_the_standard() {
    assert_same("libmpi_abi.so.1", &defined(&["-D"], "libmpi_abi.so.1"), &expected());
}

#[test]
fn the_runtime_has_them_as_well() {
    let mut names = defined(&["-D"], "libpelago.so.0");
    // OpenSHMEM's names from its time before it was a standard.
    names.retain(|name| name.starts_with("MPI_") || name.starts_with("PMPI_"));
    assert_same("libpelago.so.0", &names, &expected());
}

#[test]
fn the_archive_defines_the_standard() {
    let mut names = defined(&["-g"], "libmpi_abi.a");
    names.retain(|name| name.starts_with("MPI_") || name.starts_with("PMPI_"));
    assert_same("libmpi_abi.a", &names, &expected());
}

#[test]
fn the_header_declares_the_standard() {
    let text = std::fs::read_to_string(installed().join("include/mpi.h")).unwrap();
    let name = |line: &str| {
        let (head, _) = line.strip_suffix(");")?.split_once('(')?;
        let name = head.rsplit([' ', '*']).next()?;
        (name.starts_with("MPI_") || name.starts_with("PMPI_")).then(|| name.to_owned())
    };
    assert_same("mpi.h", &text.lines().filter_map(name).collect(), &expected());
}

/// The dynamic entries of a kind of a library.
fn entries(file: &str, kind: &str) -> Vec<String> {
    let mut command = Command::new("readelf");
    command.args(["-d", "-W"]).arg(installed().join("lib").join(file));
    let ended = end_of(command);
    let lines = ended.output().lines().filter(|line| line.contains(&format!("({kind})")));
    lines.filter_map(|line| Some(line.split_once('[')?.1.split(']').next()?.to_owned())).collect()
}

#[test]
fn the_library_is_a_filter_of_the_runtime() {
    assert_eq!(entries("libmpi_abi.so.1", "SONAME"), ["libmpi_abi.so.1"]);
    assert_eq!(entries("libmpi_abi.so.1", "FILTER"), ["libpelago.so.0"]);
    assert_eq!(entries("libmpi_abi.so.1", "RUNPATH"), ["$ORIGIN"]);
    assert!(entries("libmpi_abi.so.1", "NEEDED").contains(&"libpelago.so.0".to_owned()));
    assert_eq!(entries("libpelago.so.0", "SONAME"), ["libpelago.so.0"]);
}
