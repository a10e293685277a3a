//! The same PEs under Open MPI's launcher, which speaks PMIx.

use std::fs;
use std::io::BufReader;
use std::process::{Command, Output, Stdio};

use super::orphans::{assert_ended, handles_with};
use super::this_program;

/// `mpirun.openmpi` for `n` processes, as root or not, with any number of processors.
fn mpirun(n: usize) -> Command {
    let mut command = Command::new("mpirun.openmpi");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", &n.to_string()]);
    command.env("PELAGO_INIT_TIMEOUT", "60");
    command
}

/// Appends this program, which runs a body, to a command line.
fn of_body<'a>(command: &'a mut Command, body: &str) -> &'a mut Command {
    let (program, args) = this_program();
    command.env("PELAGO_TEST_BODY", body).arg(program).args(args)
}

/// Runs a command to its end; returns its status and the text of both streams.
fn end(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.output().expect("mpirun.openmpi (openmpi-bin) runs");
    let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (status.code(), text.concat())
}

/// Runs `n` PEs of a body that succeeds, and checks that each PE has printed a line.
fn assert_lines(n: usize, body: &str, words: &str) {
    let (status, text) = end(of_body(&mut mpirun(n), body));
    assert_eq!(status, Some(0), "{text}");
    for pe in 0..n {
        let line = format!("PE {pe} of {n} {words}");
        assert!(text.lines().any(|found| found == line), "no {line:?} in:\n{text}");
    }
}

#[test]
fn pes_exchange_values_under_mpirun() {
    for n in [1, 2, 4] {
        assert_lines(n, "exchange", "has seen all under Pmix");
    }
}

#[test]
fn large_values_travel_in_rounds() {
    assert_lines(3, "large", "has seen all of 100 kB");
}

#[test]
fn an_abort_ends_the_job_with_its_status() {
    let (status, text) = end(of_body(&mut mpirun(3), "abort"));
    assert_eq!(status, Some(7), "{text}");
    assert!(text.contains("PE 1: had enough"), "{text}");
    // If a PE had ended like this by an error, the job would have failed.
    let (status, text) = end(of_body(&mut mpirun(3), "abort-0"));
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn a_pe_that_fails_or_leaves_ends_the_job() {
    for (body, expected) in [("exit", Some(3)), ("kill", Some(137)), ("finalize-then-fail", Some(4))] {
        let (status, text) = end(of_body(&mut mpirun(3), body));
        assert_eq!(status, expected, "{body}: {text}");
    }
    let (status, text) = end(of_body(&mut mpirun(3), "leave"));
    assert!(status != Some(0) && !text.contains("waited in vain"), "{status:?}: {text}");
}

#[test]
fn a_barrier_ends_when_a_pe_is_missing() {
    let (status, text) = end(of_body(mpirun(2).env("PELAGO_INIT_TIMEOUT", "1"), "missing"));
    assert_eq!(status, Some(6), "{text}");
    let words = "PE 0: PE 0, waiting in the launcher's barrier: no end of PMIx_Fence";
    assert!(text.contains(words) && text.contains("within 1 s"), "{text}");
}

#[test]
fn a_program_that_never_joins_is_fine() {
    let (program, args) = this_program();
    let (status, text) = end(mpirun(2).arg(program).args(args));
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn a_library_that_is_not_there_is_named() {
    let mut command = mpirun(2);
    command.env("PELAGO_PMIX_LIBRARY", "/no/such/libpmix.so.2");
    let (status, text) = end(of_body(&mut command, "exchange"));
    assert_ne!(status, Some(0), "{text}");
    assert!(text.contains("/no/such/libpmix.so.2"), "{text}");
}

#[test]
fn pes_notice_that_mpirun_was_killed() {
    // The files that mpirun leaves behind, because it cannot clean up after SIGKILL.
    let folder = std::env::temp_dir().join(format!("pelago-mpirun-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let mut command = mpirun(2);
    command.env("TMPDIR", &folder).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = of_body(&mut command, "watch").spawn().expect("mpirun.openmpi (openmpi-bin) runs");
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    // The PEs have passed the barrier, so they end only because they check whether the launcher is gone.
    let handles = handles_with(2, &mut stdout, Some("watching"));
    child.kill().unwrap();
    child.wait().unwrap();
    handles.iter().for_each(|handle| assert_ended(handle, "a PE of a killed mpirun"));
    fs::remove_dir_all(&folder).unwrap();
}
