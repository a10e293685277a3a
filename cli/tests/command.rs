//! The command as its users meet it: what it starts, and what it refuses, with which words and exit status.

use std::process::{Command, Output};

/// Runs `pelago` with these arguments; gives its exit status, standard output and standard error.
fn pelago(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pelago"));
    let Output { status, stdout, stderr } = command.args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().expect("the command is not killed"), text(stdout), text(stderr))
}

#[test]
fn bad_input_is_refused_with_one_message_and_starts_nothing() {
    let cases: &[(&[&str], &str)] = &[
        (&["run", "-n", "0", "hello"], "a job has 1 PE or more"),
        (&["run", "-n", "-3", "hello"], "a job has 1 PE or more"),
        (&["run", "-n", "four", "hello"], "not a number of PEs"),
        (&["run", "-n", "99999", "hello"], "99999 PEs are too many for this machine"),
        (&["run", "-n", "999999999999999999999999", "hello"], "too many"),
        (&["run", "-n", "2"], "PROGRAM"),
        (&["run", "hello"], "-n"),
        (&["run", "-n", "2", "helo"], "did you mean hello?"),
        (&["run", "-n", "2", "/no/such/program"], "/no/such/program was not found"),
        (&["run", "-n", "2", "/etc"], "is a directory"),
        (&["run", "-n", "2", "/etc/passwd"], "not executable"),
        (&["run", "-n", "2", "--timeout", "-1", "hello"], "seconds above 0"),
        (&["run", "-n", "2", "--env", "COLOUR", "hello"], "KEY=VALUE"),
        (&["run", "-n", "2", "--env", "PELAGO_HEAPSIZE=1g", "hello"], "did you mean PELAGO_HEAP_SIZE?"),
        (&["run", "-n", "2", "--env", "PELAGO_HEAP_SIZE=big", "hello"], "PELAGO_HEAP_SIZE accepts"),
        (&["app", "helo"], "did you mean hello?"),
    ];
    for (args, part) in cases {
        let (status, stdout, stderr) = pelago(args);
        assert_eq!((status, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
        assert!(stderr.contains(part), "{args:?} does not say {part:?}: {stderr}");
        assert!(stderr.starts_with("pelago ") == (stderr.lines().count() == 1), "{args:?}: {stderr}");
    }
}

#[test]
fn a_built_in_application_runs_in_every_pe() {
    let (status, stdout, stderr) = pelago(&["run", "-n", "3", "--tag-output", "hello"]);
    assert_eq!(status, 0, "{stderr}");
    for pe in 0..3 {
        assert!(stdout.lines().any(|line| line.starts_with(&format!("[{pe}] "))), "no PE {pe} in {stdout}");
    }
    assert_eq!(pelago(&["app", "hello"]).0, 0);
    let names = pelago(&["app"]).1;
    assert!(names.lines().any(|line| line.starts_with("hello ")), "{names}");
}

#[test]
fn a_program_runs_with_its_own_options() {
    let (status, stdout, _) =
        pelago(&["run", "-n", "2", "--env", "COLOUR=red", "sh", "-c", "echo $COLOUR $1", "-", "-n"]);
    assert_eq!((status, stdout.as_str()), (0, "red -n\nred -n\n"));
}

#[test]
fn the_reason_and_the_status_of_a_death_are_told() {
    let (status, _, stderr) =
        pelago(&["run", "-n", "2", "sh", "-c", "test $PMI_RANK = 0 || exit 9; exec sleep 60"]);
    assert_eq!((status, stderr.as_str()), (9, "pelago run: PE 1 exited with status 9\n"));
    let (status, _, stderr) = pelago(&["run", "-n", "1", "sh", "-c", "kill -KILL $$"]);
    assert!(status == 137 && stderr.ends_with("was killed by signal 9 (SIGKILL)\n"), "{status} {stderr}");
    let (status, _, stderr) = pelago(&["run", "-n", "1", "--timeout", "0.1", "sleep", "60"]);
    assert!(status == 124 && stderr.contains("after 0.1 s"), "{status} {stderr}");
}

#[test]
fn help_teaches_by_examples() {
    for args in [&["--help"][..], &["run", "--help"], &["app", "--help"], &["info", "--help"]] {
        let (status, stdout, _) = pelago(args);
        assert!(status == 0 && stdout.contains("Examples:\n"), "{args:?}: {stdout}");
    }
}

#[test]
fn info_prints_objects_for_programs() {
    for args in [&["info", "--json"][..], &["info", "--settings", "--json"]] {
        let (status, stdout, stderr) = pelago(args);
        assert_eq!(status, 0, "{stderr}");
        serde_json::from_str::<serde_json::Value>(&stdout).unwrap();
    }
    let table = pelago(&["info", "--settings"]).1;
    assert!(table.contains("PELAGO_HEAP_SIZE") && table.contains("auto"), "{table}");
}
