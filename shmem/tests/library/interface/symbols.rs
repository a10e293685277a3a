//! The names of the library: the shared library, the archive and the headers have the same, and they are
//! those of the standard.
//!
//! `symbols.txt` are the functions of OpenSHMEM 1.6 and those of caches, which 1.5 removed, with those of
//! the profiling interface, sorted; `generics.txt` the generic names, each with how many functions it stands
//! for. `extensions.txt` are the functions of docs/openshmem-extensions.md, which have no profiling
//! interface.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::common::header::{generics, prototypes};
use crate::common::{end_of, installed};

const STANDARD: &str = include_str!("symbols.txt");
const EXTENSIONS: &str = include_str!("extensions.txt");
const GENERICS: &str = include_str!("generics.txt");

/// The names that a file defines for others, each with its kind: `W` is weak, `T` is not.
fn defined(arguments: &[&str], file: &Path) -> BTreeMap<String, char> {
    let mut command = Command::new("nm");
    command.args(["--defined-only", "--format=posix"]).args(arguments).arg(file);
    let ended = end_of(command);
    let mut names = BTreeMap::new();
    for line in ended.output().lines() {
        let mut words = line.split(' ');
        let (Some(name), Some(kind)) = (words.next(), words.next()) else { continue };
        names.insert(name.to_owned(), kind.chars().next().unwrap());
    }
    names
}

fn exported() -> BTreeMap<String, char> {
    defined(&["-D"], &installed().join("lib/libpelago_shmem.so"))
}

fn archived() -> BTreeMap<String, char> {
    let mut names = defined(&["-g"], &installed().join("lib/libpelago_shmem.a"));
    // Neither the heading of the member of the archive, nor MPI, which is in the same one.
    names.retain(|name, _| !name.ends_with(':') && !name.starts_with("MPI_") && !name.starts_with("PMPI_"));
    names
}

fn standard() -> BTreeSet<String> {
    STANDARD.lines().map(str::to_owned).collect()
}

fn extensions() -> BTreeSet<String> {
    EXTENSIONS.lines().map(str::to_owned).collect()
}

fn expected() -> BTreeSet<String> {
    &standard() | &extensions()
}

fn declared(files: &[&str]) -> BTreeSet<String> {
    files.iter().flat_map(|file| prototypes(file)).map(|found| found.name).collect()
}

/// Fails with what one of the two has more than the other.
#[track_caller]
fn assert_same(left: (&str, &BTreeSet<String>), right: (&str, &BTreeSet<String>)) {
    for (this, other) in [(left, right), (right, left)] {
        let more: Vec<_> = this.1.difference(other.1).collect();
        assert!(more.is_empty(), "names of {} that are not names of {}: {more:?}", this.0, other.0);
    }
}

#[test]
fn the_shared_library_exports_the_standard_and_the_extensions() {
    let names: BTreeSet<_> = exported().into_keys().collect();
    assert_same(("the shared library", &names), ("the lists", &expected()));
}

#[test]
fn the_archive_defines_the_standard_and_the_extensions() {
    let names: BTreeSet<_> = archived().into_keys().collect();
    assert_same(("the archive", &names), ("the lists", &expected()));
}

#[test]
fn the_headers_declare_the_standard() {
    let is_short = |name: &String| {
        ["signed", "unsigned"].iter().any(|sign| name.starts_with(&format!("shmemx_{sign}_short_")))
    };
    let mut names = declared(&["shmem.h", "pshmem.h"]);
    names.retain(|name| !is_short(name));
    assert_same(("the headers", &names), ("the standard", &standard()));
}

#[test]
fn the_header_of_extensions_declares_them() {
    let mut names = declared(&["shmemx.h"]);
    names.extend(declared(&["shmem.h"]).into_iter().filter(|name| name.starts_with("shmemx_")));
    assert_same(("the headers", &names), ("the list", &extensions()));
    assert!(names.iter().all(|name| name.starts_with("shmemx_")), "{names:?}");
}

#[test]
fn a_tool_may_replace_the_functions_of_the_archive_but_not_their_twins() {
    let names = archived();
    for (name, kind) in &names {
        let has_twin = names.contains_key(&format!("p{name}"));
        assert_eq!(*kind, if has_twin { 'W' } else { 'T' }, "{name}");
    }
}

#[test]
fn generic_names_stand_for_as_many_functions_as_in_the_standard() {
    let expected: BTreeSet<_> = GENERICS.lines().map(str::to_owned).collect();
    let found =
        generics("shmem.h").into_iter().map(|generic| format!("{} {}", generic.name, generic.targets.len()));
    assert_same(("the header", &found.collect()), ("the standard", &expected));
}

#[test]
fn constants_and_types_of_the_standard_are_there() {
    let text = std::fs::read_to_string(installed().join("include/shmem.h")).unwrap();
    for name in include_str!("constants.txt").lines() {
        let is_there = text.contains(&format!("#define {name} "))
            || text.contains(&format!("}} {name};"))
            || text.contains(&format!("*{name};"));
        assert!(is_there, "shmem.h has no {name}");
    }
}
