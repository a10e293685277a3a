//! Jobs under gdb, valgrind and perf themselves, which the full tier installs.

use std::fs;
use std::io::Write;
use std::process::Command;

use super::super::process::{Folder, Started, pelago, run};
use super::{Jobs, NEARBY};

/// A line of shell code in which PE 1 crashes.
const CRASH: [&str; 3] = ["sh", "-c", "echo $PMI_RANK runs; test $PMI_RANK != 1 || kill -SEGV $$"];

/// The script that types at a terminal.
const TERMINAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/looking/terminal.py");

#[test]
fn gdb_prints_the_stacks_of_a_pe_that_crashes() {
    let folder = Folder::new("gdb");
    let out = folder.file("out");
    let words = [&["run", "-n", "3", "--gdb", "--output-dir", &out], &CRASH[..]].concat();
    let ended = run(&words);
    assert_eq!((ended.status, ended.stdout.as_str()), (139, ""), "{}", ended.stderr);
    assert_eq!(ended.stderr, "pelago run: PE 1 exited with status 139\n");
    let text = folder.read("out/rank.1.out");
    for part in ["1 runs\n", "received signal SIGSEGV", "\nThread 1 ", "\n#0 "] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let ended = run(&["run", "-n", "2", "--gdb", "hello"]);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert_eq!(ended.stdout.matches("Hello from PE ").count(), 2, "{}", ended.stdout);
    let ended = run(&["run", "-n", "2", "--gdb", "sh", "-c", "exit 7"]);
    assert_eq!(ended.status, 7, "{}", ended.stderr);
}

#[test]
fn one_pe_runs_in_gdb_with_commands_from_standard_input() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"info program\nrun\nprint $_exitcode + 41\nquit\n").unwrap();
    drop(writer);
    let job = Started::with_input(pelago(&["run", "-n", "3", "--gdb=2", "app:hello"]), reader.into());
    let ended = job.end();
    assert_eq!(ended.status, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("$1 = 41") && ended.stdout.contains("from PE 2 of 3"), "{}", ended.stdout);
    assert_eq!(ended.stdout.matches("Starting program").count(), 1, "{}", ended.stdout);
}

#[test]
fn gdb_gets_the_terminal_and_the_launcher_gets_it_back() {
    let mut command = Command::new("python3");
    let line = "test $PMI_RANK = 1 || exec sleep 1000";
    command.args([TERMINAL, env!("CARGO_BIN_EXE_pelago"), "run", "-n", "2", "--gdb=1", "sh", "-c", line]);
    // In the foreground gdb can read, and stop the program by Ctrl-C; later Ctrl-C is for the launcher.
    command.args(["--", "(gdb) ", "print 6 * 7", "$1 = 42", "run", "exited normally", "quit"]);
    command.args(["FOREGROUND", "^C"]);
    let ended = Started::new(command).end();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    let told = "the job was ended by signal 2 (SIGINT) to the launcher";
    // The launcher ends by the signal, which a shell shows as 130.
    assert!(ended.stdout.contains(told) && ended.stdout.ends_with("status -2\n"), "{}", ended.stdout);
}

/// A prompt is not a line, which output with tags would hold back; nor does it belong in a file.
#[test]
fn gdb_is_at_the_terminal_whatever_becomes_of_the_output() {
    let folder = Folder::new("prompt");
    let out = folder.file("out");
    for output in [&["--tag-output"][..], &["--output-dir", &out]] {
        let mut command = Command::new("python3");
        command.args([TERMINAL, env!("CARGO_BIN_EXE_pelago"), "run", "-n", "2", "--gdb=1"]).args(output);
        command.args(["app:hello", "--", "(gdb) ", "print 6 * 7", "$1 = 42", "run"]);
        command.args(["exited normally", "quit"]);
        let ended = Started::new(command).end();
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
        assert!(ended.stdout.ends_with("status 0\n"), "{output:?}: {}", ended.stdout);
    }
    assert!(folder.read("out/rank.0.out").starts_with("Hello from PE 0 of 2 "));
}

#[test]
fn valgrind_reports_into_the_folder() {
    let folder = Folder::new("valgrind");
    let out = folder.file("a/b");
    let words = ["run", "-np", "2", "--valgrind", "--output-dir", &out, "sh", "-c", "exit 0"];
    let ended = run(&words);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    for pe in 0..2 {
        let text = folder.read(&format!("a/b/rank.{pe}.valgrind"));
        assert!(text.contains("Memcheck") && text.contains("ERROR SUMMARY"), "{text}");
    }
    let ended = run(&["run", "-n2", "--valgrind=--quiet --tool=none", "hello"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert_eq!(ended.stdout.matches("Hello from PE ").count(), 2, "{}", ended.stdout);
}

#[test]
fn perf_writes_a_file_for_each_pe() {
    let folder = Folder::new("perf");
    let options = ["run", "--hosts", "a,b", "--launch-agent", NEARBY];
    for (words, name) in [(&["run", "-n", "2"][..], "here"), (&options, "hosts")] {
        let out = folder.file(name);
        let words = [words, &["--perf=-e cpu-clock", "--output-dir", &out, "app:hello"]].concat();
        let ended = run(&words);
        assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
        for pe in 0..2 {
            let data = fs::read(folder.0.join(name).join(format!("rank.{pe}.perf.data"))).unwrap();
            assert!(data.starts_with(b"PERFILE2"), "{name}: the file of PE {pe} is none of perf");
            let text = folder.read(&format!("{name}/rank.{pe}.out"));
            assert!(text.starts_with(&format!("Hello from PE {pe} of 2 ")), "{text}");
        }
    }
}

#[test]
fn call_stacks_are_those_of_the_program() {
    let jobs = Jobs::new("stacks");
    let job = jobs.start(&["run", "-n", "2", "ft", "--class", "B"]);
    let pids = job.pes_at_work(2);
    let text = jobs.text(&["ps", "--stacks"]);
    for (pe, pid) in pids.into_iter().enumerate() {
        let head = format!("\nPE {pe} (pid {}):\nThread ", pid.as_raw_nonzero());
        assert!(text.contains(&head), "no {head:?} in {text}");
    }
    assert!(text.matches(" main (").count() >= 2, "{text}");
    let found = jobs.json(&["ps", "--stacks", "--json"]);
    assert!(found["stacks"][1]["stack"].as_str().unwrap().contains("Thread 1 "), "{found}");
    let words = ["attach", "1", "--ex", "print 6 * 7", "--ex", "kill", "--ex", "quit"];
    let ended = jobs.look(&words);
    assert!(ended.stdout.contains("$1 = 42"), "{}{}", ended.stdout, ended.stderr);
    let ended = job.end();
    assert!(ended.status == 137 && ended.stderr.contains("PE 1 (pid "), "{}", ended.stderr);
}
