//! Several programs in one job.

use super::jobs::assert_hello;
use super::process::{Folder, run};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const THIS: &str = env!("CARGO_BIN_EXE_pelago");

#[test]
fn programs_have_the_pes_that_follow() {
    let line = "echo $PMI_RANK of $PMI_SIZE $COLOUR $WHERE $*";
    let words = ["--tag-output", "--env", "COLOUR=red", "sh", "-c", line, "-", "x", ":"];
    let further =
        ["-n", "2", "--env", "WHERE=here", "sh", "-c", line, "-", "-n", "y", ":", "-n", "1", "echo", "a:b"];
    let ended = run(&[&["run", "-n", "1"], &words[..], &further[..]].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["[0] 0 of 4 red x", "[1] 1 of 4 red here -n y", "[2] 2 of 4 red here -n y", "[3] a:b"]
    );
}

#[test]
fn programs_of_a_job_meet() {
    let ended =
        run(&["run", "-n", "1", "hello", ":", "-n", "2", THIS, "app", "hello", ":", "-n", "1", "hello"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert_hello(&ended.stdout, 4);
}

#[test]
fn another_word_may_separate_programs() {
    let ended =
        run(&["run", "-n", "1", "--separator", "and", "echo", ":", "and", "-n", "1", "echo", ":", "b"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, [":", ": b"]);
}

#[test]
fn programs_that_are_refused() {
    for (words, part) in [
        (&["a", ":"][..], "behind \":\", which separates programs, there is nothing"),
        (&["echo", ":", "echo"], "-n <N>"),
        (&["echo", ":", "-n", "0", "echo"], "a job has 1 PE or more"),
        (&["echo", ":", "-n", "1", "--bind", "echo"], "there is no option --bind"),
        (&["echo", ":", "-n", "1", "/no/such/program"], "/no/such/program was not found"),
        (&["echo", ":", "-n", "4096", "echo"], "4097 PEs are too many for this machine"),
        (&["echo", ":", "-n", "1", "--env", "PELAGO_SPIN=1", "echo"], "did you mean PELAGO_SPINS?"),
        (
            &["echo", ":", "-n", "2", "--env", "PELAGO_PES_PER_PROCESS=2", "echo"],
            "processes of the first program have 1 PEs each and those of another one 2",
        ),
    ] {
        let ended = run(&[&["run", "-n", "1"], words].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{words:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(part) && ended.stderr.lines().count() == 1,
            "{words:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_program_is_looked_for_in_the_path_of_its_pes() {
    let folder = Folder::new("path");
    fs::write(folder.file("a-program"), "#!/bin/sh\necho found $1\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.file("a-program"), mode).unwrap();
    let path = format!("PATH={}:{}", folder.0.display(), std::env::var("PATH").unwrap());
    let first = run(&["run", "-n", "1", "--env", &path, "a-program", "1"]);
    assert_eq!((first.status, first.stdout.as_str()), (0, "found 1\n"), "{}", first.stderr);
    let further = run(&["run", "-n", "1", "true", ":", "-n", "1", "--env", &path, "a-program", "2"]);
    assert_eq!((further.status, further.stdout.as_str()), (0, "found 2\n"), "{}", further.stderr);
}

#[test]
fn the_pe_of_a_further_program_is_named_when_it_fails() {
    let ended = run(&["run", "-n", "2", "sleep", "1000", ":", "-n", "1", "sh", "-c", "exit 7"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (7, "pelago run: PE 2 exited with status 7\n"));
}

/// A program that is linked with a library of this name.
fn linked_with(folder: &Path, library: &str) -> PathBuf {
    let gcc = |arguments: &[&OsStr]| {
        let ended = Command::new("gcc").args(arguments).output().expect("gcc starts");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    };
    let (source, shared, program) =
        (folder.join("main.c"), folder.join(library), folder.join(format!("with-{library}")));
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let name = format!("-Wl,-soname,{library}");
    gcc(&["-shared".as_ref(), source.as_ref(), name.as_ref(), "-o".as_ref(), shared.as_ref()]);
    let path = format!("-Wl,--no-as-needed,-rpath,{}", folder.display());
    gcc(&[source.as_ref(), path.as_ref(), shared.as_ref(), "-o".as_ref(), program.as_ref()]);
    program
}

#[test]
fn a_program_of_another_runtime_is_named() {
    let folder = Folder::new("linked");
    for (library, words) in [
        ("libmpi.so.40", "is linked with Open MPI (libmpi.so.40) and does not join this job"),
        ("libmpich.so.12", "is linked with MPICH (libmpich.so.12) and does not use Pelago"),
        ("libmpi_abi.so.1", ""),
    ] {
        let program = linked_with(&folder.0, library);
        let ended = run(&["run", "-n", "2", program.to_str().unwrap()]);
        assert_eq!((ended.status, ended.stdout.as_str()), (0, ""), "{library}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), usize::from(!words.is_empty()), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}
