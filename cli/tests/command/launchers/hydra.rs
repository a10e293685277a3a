//! Jobs under MPICH's launcher.

use std::process::Command;

use crate::faults::panicking;
use crate::jobs::{assert_ft_json, assert_hello};
use crate::process::{Ended, Started};

/// Runs an application on `pes` PEs that hydra starts.
fn hydra(pes: u64, words: &[&str]) -> Ended {
    hydra_with(pes, &[], words)
}

/// Runs an application in `processes` processes, with variables.
fn hydra_with(processes: u64, variables: &[(&str, &str)], words: &[&str]) -> Ended {
    let mut command = Command::new("mpiexec.hydra");
    command.args(["-n", &processes.to_string(), env!("CARGO_BIN_EXE_pelago"), "app"]).args(words);
    Started::new(with(command, variables)).settle()
}

/// A command with variables.
pub fn with(mut command: Command, variables: &[(&str, &str)]) -> Command {
    command.envs(variables.iter().copied());
    command
}

#[test]
fn ft_is_verified() {
    for (pes, class) in [(4, "S"), (2, "W"), (1, "S")] {
        let ended = hydra(pes, &["ft", "--class", class, "--json"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "class {class} on {pes}");
        assert_ft_json(&ended.stdout, class, pes);
    }
}

#[test]
fn every_pe_says_hello() {
    let ended = hydra(4, &["hello"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert_hello(&ended.stdout, 4);
}

/// Settings of processes with two PEs each: on one node, by mapping and over libfabric, and on two nodes.
pub const TWO_EACH: [&[(&str, &str)]; 3] = [
    &[("PELAGO_PES_PER_PROCESS", "2")],
    &[("PELAGO_PES_PER_PROCESS", "2"), ("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "ofi")],
    &[("PELAGO_PES_PER_PROCESS", "2"), ("PELAGO_SIM_NODES", "2")],
];

#[test]
fn processes_may_have_several_pes() {
    for variables in TWO_EACH {
        let ended = hydra_with(2, variables, &["ft", "--json"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{variables:?}");
        assert_ft_json(&ended.stdout, "S", 4);
        let ended = hydra_with(3, variables, &["hello"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{variables:?}");
        assert_hello(&ended.stdout, 6);
    }
}

#[test]
fn a_panic_of_one_of_several_pes_ends_the_job() {
    let mut launcher = Command::new("mpiexec.hydra");
    panicking(launcher.args(["-n", "2"]));
    let Ended { status, stdout, stderr, .. } = Started::new(with(launcher, TWO_EACH[0])).settle();
    let text = format!("{stdout}{stderr}");
    assert!(
        status != 0 && text.contains("PE 1: panicked: ") && text.contains("singular"),
        "{status}: {text}"
    );
}

#[test]
fn what_cannot_be_done_is_said_once() {
    let Ended { status, stdout, stderr, .. } = hydra(3, &["ft"]);
    let text = format!("{stdout}{stderr}");
    assert!(status != 0 && text.matches("among 3 PEs").count() == 1, "{status}: {text}");
}

#[test]
fn a_panic_ends_the_job() {
    let mut launcher = Command::new("mpiexec.hydra");
    panicking(launcher.args(["-n", "3"]));
    let Ended { status, stdout, stderr, .. } = Started::new(launcher).settle();
    assert!(status != 0, "{stdout}{stderr}");
    assert!(format!("{stdout}{stderr}").contains("the matrix is singular"), "{stdout}{stderr}");
}
