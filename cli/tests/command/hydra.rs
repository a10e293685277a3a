//! Jobs under MPICH's launcher, from which nothing of ours is inherited.

use std::process::Command;

use super::faults::panicking;
use super::jobs::{assert_ft_json, assert_hello};
use super::process::{Ended, Started};

/// Runs an application on `pes` PEs that hydra starts.
fn hydra(pes: u64, words: &[&str]) -> Ended {
    let mut command = Command::new("mpiexec.hydra");
    command.args(["-n", &pes.to_string(), env!("CARGO_BIN_EXE_pelago"), "app"]).args(words);
    Started::new(command).settle()
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

#[test]
fn what_cannot_be_done_is_said_once() {
    let Ended { status, stdout, stderr } = hydra(3, &["ft"]);
    let text = format!("{stdout}{stderr}");
    assert!(status != 0 && text.matches("among 3 PEs").count() == 1, "{status}: {text}");
}

#[test]
fn a_panic_ends_the_job() {
    let mut launcher = Command::new("mpiexec.hydra");
    panicking(launcher.args(["-n", "3"]));
    let Ended { status, stdout, stderr } = Started::new(launcher).settle();
    assert!(status != 0, "{stdout}{stderr}");
    assert!(format!("{stdout}{stderr}").contains("the matrix is singular"), "{stdout}{stderr}");
}
