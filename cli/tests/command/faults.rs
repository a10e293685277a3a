//! Jobs that end early: all processes end at once, and one line names the PE that failed.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, kill_process};

use super::process::{Ended, Started, pelago, run, run_with};

/// A computation on four PEs that is long enough to be interrupted.
const LONG: [&str; 6] = ["run", "-n", "4", "ft", "--class", "B"];

/// Runs two PEs of a line of shell code in which `$THIS` is the command under test.
fn shells(options: &[&str], line: &str, variables: &[(&str, &str)]) -> Ended {
    let words = [&["run", "-n", "2"], options, &["sh", "-c", line]].concat();
    run_with(&words, &[&[("THIS", env!("CARGO_BIN_EXE_pelago"))], variables].concat())
}

/// Checks that the job ended with this status, this one line and no result.
fn assert_failed(ended: &Ended, status: i32, message: &str) {
    assert_eq!((ended.status, ended.stderr.as_str()), (status, &*format!("pelago run: {message}\n")));
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_killed_pe_is_named() {
    for victim in [0, 1, 3] {
        let job = Started::new(pelago(&LONG));
        let pid = job.pes_at_work(4)[victim];
        kill_process(pid, Signal::KILL).unwrap();
        let pid = pid.as_raw_nonzero();
        let message = format!(
            "PE {victim} (pid {pid}) was killed by signal 9 (SIGKILL): perhaps the system ended it for lack \
             of memory (see dmesg); lower PELAGO_HEAP_SIZE and PELAGO_POOL_SIZE, or start fewer PEs"
        );
        assert_failed(&job.end(), 128 + 9, &message);
    }
}

#[test]
fn pes_end_with_a_killed_launcher() {
    let job = Started::new(pelago(&LONG));
    job.pes_at_work(4);
    assert_eq!(job.kill().0, "", "the PEs ended before their work was done");
}

#[test]
fn pes_end_with_an_interrupted_launcher() {
    let signals = [(Signal::INT, 2, "SIGINT"), (Signal::TERM, 15, "SIGTERM"), (Signal::QUIT, 3, "SIGQUIT")];
    for (signal, number, name) in signals {
        let job = Started::new(pelago(&LONG));
        job.pes_at_work(4);
        job.signal(signal);
        let message = format!("the job was ended by signal {number} ({name}) to the launcher");
        let ended = job.end();
        assert_failed(&ended, 128 + number, &message);
        assert_eq!(ended.signal, (signal == Signal::INT).then_some(number), "{ended:?}");
    }
}

#[test]
fn an_interrupt_ends_a_loop_of_a_shell() {
    let line = "for round in 1 2; do test $round = 1 || exec echo went on; $THIS run -n 2 ft --class B; done";
    let mut command = Command::new("bash");
    command.args(["-c", line]).env("THIS", env!("CARGO_BIN_EXE_pelago")).process_group(0);
    let shell = Started::new(command);
    shell.pes_at_work(2);
    shell.signal_group(Signal::INT);
    let ended = shell.end();
    assert_eq!((ended.signal, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
}

#[test]
fn the_signal_of_users_goes_to_all_pes() {
    let job = Started::new(pelago(&LONG));
    job.pes_at_work(4);
    job.signal(Signal::USR1);
    let ended = job.end();
    assert_eq!((ended.status, ended.stdout.as_str()), (128 + 10, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("was killed by signal 10 (SIGUSR1)"), "{}", ended.stderr);
}

#[test]
fn a_launcher_may_inherit_that_children_are_ignored() {
    let mut command = Command::new("sh");
    let line = format!("trap '' CHLD; exec {} run -n 2 sh -c 'exit 3'", env!("CARGO_BIN_EXE_pelago"));
    command.args(["-c", &line]);
    let ended = Started::new(command).end();
    assert_eq!(ended.status, 3, "{}", ended.stderr);
}

#[test]
fn an_interrupted_measurement_has_the_status_of_an_interrupt() {
    let file = std::env::temp_dir().join(format!("interrupted-{}.toml", std::process::id()));
    let tune = ["tune", "-n", "2", "--quick", "--output", file.to_str().unwrap()];
    for (args, signal, status) in [
        (&["bench", "rma"][..], Signal::INT, 130),
        (&["bench", "--gate"], Signal::TERM, 143),
        (&tune, Signal::INT, 130),
    ] {
        let command = Started::new(pelago(args));
        command.wait_for_pes(2);
        command.signal(signal);
        let ended = command.end();
        assert_eq!((ended.status, ended.stdout.as_str()), (status, ""), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.signal.is_some(), signal == Signal::INT, "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(") to the launcher"), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn a_limit_of_the_system_is_named() {
    let limited = |limit: &str, line: &str| {
        let line = format!("ulimit {limit}; exec $THIS run -n 1 {line}");
        let mut command = Command::new("sh");
        command.args(["-c", &line]).env("THIS", env!("CARGO_BIN_EXE_pelago"));
        Started::new(command).end()
    };
    let ended = limited("-f 100", "hello");
    assert!(ended.status == 128 + 25 && ended.stderr.contains("RLIMIT_FSIZE"), "{ended:?}");
    let ended = limited("-S -t 1", "sh -c 'while :; do :; done'");
    assert!(ended.status == 128 + 24 && ended.stderr.contains("RLIMIT_CPU"), "{ended:?}");
    let ended = limited("-n 28", "true");
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let ended = limited("-n 20", "true");
    let text = "1 PE is too many for this machine: 26 open files are needed and 20 allowed (ulimit -Hn)";
    assert!(ended.status == 2 && ended.stderr.contains(text), "{ended:?}");
}

#[test]
fn programs_that_join_one_after_the_other_are_refused() {
    let ended = shells(&[], "$THIS app hello && exec $THIS app hello", &[]);
    let text = "): a second program of this process joins the job; start each program by its own pelago run";
    assert!(ended.status == 1 && ended.stderr.contains(text), "{ended:?}");
}

#[test]
fn a_job_ends_when_its_time_is_over() {
    let message = "the job was ended after 0.4 s, the time it was given";
    let endless = ["run", "-n", "2", "--timeout", "0.4", "ring", "--rounds", "1000000000"];
    assert_failed(&run(&endless), 124, message);
    assert_failed(&shells(&["--timeout", "0.4"], "exec sleep 1000", &[]), 124, message);
    let variable = |value| [("MPIEXEC_TIMEOUT", value)];
    assert_failed(&shells(&[], "exec sleep 1000", &variable("0.4")), 124, message);
    let refusal = "MPIEXEC_TIMEOUT is `soon`: this is not a number of seconds above 0";
    assert_failed(&shells(&[], "exec sleep 1000", &variable("soon")), 2, refusal);
}

#[test]
fn a_program_that_never_joins_is_named() {
    for (joins, other) in [("0", 1), ("1", 0)] {
        let line = format!("test $PMI_RANK = {joins} || exit 0; exec $THIS app hello");
        let message =
            format!("PE {other} exited with status 0 without joining the job that other PEs have joined");
        assert_failed(&shells(&[], &line, &[]), 1, &message);
    }
}

#[test]
fn a_program_that_joins_late_is_named() {
    let line = "test $PMI_RANK = 1 || exec sleep 1000; exec $THIS app hello";
    let message = "PE 0 did not join within 0.4 s of the first; see what holds them up, or raise \
                   PELAGO_INIT_TIMEOUT";
    assert_failed(&shells(&[], line, &[("PELAGO_INIT_TIMEOUT", "0.4")]), 1, message);
}

#[test]
fn the_status_of_a_program_is_that_of_the_job() {
    let ended = shells(&[], "test $PMI_RANK = 0 || exit 9; exec sleep 1000", &[]);
    assert_failed(&ended, 9, "PE 1 exited with status 9");
    let ended = shells(&[], "test $PMI_RANK = 0 || kill -SEGV $$; exec sleep 1000", &[]);
    assert!(ended.status == 128 + 11 && ended.stderr.ends_with("signal 11 (SIGSEGV)\n"), "{ended:?}");
}

/// The body of a PE that panics during its work, in a copy of this test program.
#[test]
fn pe_that_panics() {
    if std::env::var_os("PELAGO_TEST_BODY").is_none_or(|body| body != "panic") {
        return;
    }
    let outcome = pelago::run(|world| {
        world.barrier();
        assert_ne!(world.my_pe(), 1, "the matrix is singular");
        world.barrier();
    });
    outcome.unwrap();
}

/// The body of PEs that all catch their own failure, without waiting for each other.
#[test]
fn pe_that_catches_a_failure() {
    if std::env::var_os("PELAGO_TEST_BODY").is_none_or(|body| body != "catch") {
        return;
    }
    let outcome = pelago::run(|world| {
        let split = world.split_barrier().unwrap();
        split.notify().unwrap();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.barrier()));
        assert!(caught.is_err(), "the barrier has ended");
        std::mem::forget(split);
    });
    outcome.unwrap();
}

#[test]
fn a_failure_that_is_caught_is_the_jobs() {
    for pes_per_process in ["1", "2"] {
        let mut launcher = pelago(&["run", "-n", "2", "--pes-per-process", pes_per_process]);
        launcher.arg(std::env::current_exe().unwrap()).env("PELAGO_TEST_BODY", "catch");
        launcher.args(["--exact", "faults::pe_that_catches_a_failure", "--nocapture", "--test-threads=1"]);
        let ended = Started::new(launcher).end();
        assert_eq!(ended.status, 1, "{pes_per_process} a process: {ended:?}");
    }
}

/// Makes a launcher start this test program as PEs, one of which panics.
pub fn panicking(launcher: &mut Command) {
    launcher.arg(std::env::current_exe().unwrap()).env("PELAGO_TEST_BODY", "panic");
    launcher.args(["--exact", "faults::pe_that_panics", "--nocapture", "--test-threads=1"]);
}

#[test]
fn a_panic_is_told_with_its_words() {
    let mut launcher = pelago(&["run", "-n", "3"]);
    panicking(&mut launcher);
    let Ended { status, stderr, .. } = Started::new(launcher).end();
    let last = stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("pelago run: PE 1 exited with status 101: panicked: "), "{stderr}");
    assert!(status == 101 && stderr.contains("the matrix is singular"), "{status}: {stderr}");
}
