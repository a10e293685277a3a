//! Jobs under Open MPI's launcher, which speaks PMIx.

use std::process::Command;

use super::hydra::{TWO_EACH, with};
use crate::faults::panicking;
use crate::jobs::{assert_ft_json, assert_hello};
use crate::process::{Ended, Started};

/// `mpirun.openmpi` for `pes` PEs, as root or not, with any number of processors.
fn mpirun(pes: u64) -> Command {
    let mut command = Command::new("mpirun.openmpi");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", &pes.to_string()]);
    command
}

/// Runs an application on `pes` PEs that mpirun starts.
fn app(pes: u64, words: &[&str]) -> Ended {
    let mut command = mpirun(pes);
    command.args([env!("CARGO_BIN_EXE_pelago"), "app"]).args(words);
    Started::new(command).settle()
}

#[test]
fn every_pe_says_hello() {
    for pes in [1, 2, 4] {
        let ended = app(pes, &["hello"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{pes} PEs");
        assert_hello(&ended.stdout, pes as usize);
    }
}

#[test]
fn ft_is_verified() {
    for (pes, class) in [(4, "S"), (2, "W")] {
        let ended = app(pes, &["ft", "--class", class, "--json"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "class {class} on {pes}");
        assert_ft_json(&ended.stdout, class, pes);
    }
}

#[test]
fn a_panic_ends_the_job_with_its_status() {
    let mut launcher = mpirun(3);
    panicking(&mut launcher);
    let Ended { status, stdout, stderr, .. } = Started::new(launcher).settle();
    assert!(status == 101 && stderr.contains("the matrix is singular"), "{status}: {stdout}{stderr}");
}

#[test]
fn processes_may_have_several_pes() {
    for variables in TWO_EACH {
        for (words, processes) in [(&["ft", "--json"][..], 2), (&["hello"], 3)] {
            let mut command = mpirun(processes);
            command.args([env!("CARGO_BIN_EXE_pelago"), "app"]).args(words);
            let ended = Started::new(with(command, variables)).settle();
            assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{variables:?}");
            match processes {
                2 => assert_ft_json(&ended.stdout, "S", 4),
                _ => assert_hello(&ended.stdout, 6),
            }
        }
    }
}

#[test]
fn a_panic_of_one_of_several_pes_ends_the_job() {
    let mut launcher = mpirun(2);
    panicking(&mut launcher);
    let Ended { status, stdout, stderr, .. } = Started::new(with(launcher, TWO_EACH[0])).settle();
    let text = format!("{stdout}{stderr}");
    assert!(
        status == 101 && text.contains("PE 1: panicked: ") && text.contains("singular"),
        "{status}: {text}"
    );
}

#[test]
fn a_world_within_a_process_of_mpirun_is_a_job_of_its_own() {
    let mut launcher = mpirun(2);
    launcher.args([env!("CARGO_BIN_EXE_pelago"), "run", "-n", "2", "hello"]);
    let Ended { status, stdout, stderr, .. } = Started::new(launcher).settle();
    assert_eq!((status, stdout.matches("PE 1 of 2").count()), (0, 2), "{stdout}{stderr}");
}
