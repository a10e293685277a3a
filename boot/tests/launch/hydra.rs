//! The same PEs under MPICH's launcher.

use std::process::Command;

use super::this_program;

/// Runs `mpiexec.hydra -n 4` on this program; returns its status and the text of both streams.
fn hydra(body: &str) -> (bool, String) {
    let (program, args) = this_program();
    let mut command = Command::new("mpiexec.hydra");
    command.env("PELAGO_TEST_BODY", body).env("PELAGO_INIT_TIMEOUT", "60");
    let output = command.args(["-n", "4"]).arg(program).args(args).output().expect("mpiexec.hydra runs");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.success(), text.concat())
}

#[test]
fn pes_exchange_values_under_hydra() {
    let (success, text) = hydra("exchange");
    assert!(success, "{text}");
    for pe in 0..4 {
        let line = format!("PE {pe} of 4 has seen all under Pmi1");
        assert!(text.lines().any(|found| found == line), "no {line:?} in:\n{text}");
    }
}

#[test]
fn an_abort_ends_the_job_under_hydra() {
    let (success, text) = hydra("abort");
    // Hydra may drop the last output of the PE, so the test does not check it.
    assert!(!success, "{text}");
}
