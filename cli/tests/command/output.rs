//! Output that is not read: a reader that does not read, a reader that has closed its end, a device that is
//! full.

use std::fs::File;
use std::io::{PipeReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, kill_process};

use super::process::{LIMIT, handle_of, has_ended, pelago, pid_of, wait_until};
use super::several_hosts::NEARBY;

/// Two PEs: PE 0 writes for ever to the stream `$TO`, and PE 1 runs `line`.
fn chatter(options: &[&str], to: &str, line: &str) -> Command {
    let line = format!("test $PMI_RANK = 1 || exec yes >&$TO; {line}");
    let mut command = pelago(&[&["run", "-n", "2"], options, &["sh", "-c", &line]].concat());
    command.env("TO", to).stdin(Stdio::null());
    command
}

/// A command that writes to a pipe: its standard output, its standard error, or both.
fn start(mut command: Command, streams: &[&str]) -> (Child, PipeReader) {
    let (reader, writer) = std::io::pipe().unwrap();
    for (name, null) in [("1", Stdio::null()), ("2", Stdio::null())] {
        let to = if streams.contains(&name) { writer.try_clone().unwrap().into() } else { null };
        if name == "1" {
            command.stdout(to)
        } else {
            command.stderr(to)
        };
    }
    (command.spawn().unwrap(), reader)
}

/// Waits for the end of a command, and kills it after the limit.
fn status_of(mut child: Child, what: &str) -> ExitStatus {
    let handle = handle_of(&child);
    if !has_ended(&handle, LIMIT) {
        child.kill().unwrap();
        panic!("waited {LIMIT:?} for the end of {what}");
    }
    child.wait().unwrap()
}

/// Whether a pipe is full. The number of bytes that it then holds depends on the sizes of the writes.
fn is_full(reader: &PipeReader) -> bool {
    let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
    let writer = File::options().write(true).open(path).unwrap();
    poll(&mut [PollFd::new(&writer, PollFlags::OUT)], Some(&Timespec::default())).unwrap() == 0
}

/// The ways of a PE's output to a pipe that is not read: options, the stream of the PE, and the streams of
/// the launcher that are the pipe.
const WAYS: [(&[&str], &str, &[&str]); 6] = [
    (&["--tag-output"], "1", &["1"]),
    (&["--tag-output"], "2", &["2"]),
    (&["--tag-output"], "1", &["1", "2"]),
    (&[], "1", &["1", "2"]),
    (&["--hosts", "a,b", "--launch-agent", NEARBY], "1", &["1", "2"]),
    (&["--hosts", "a,b", "--launch-agent", NEARBY, "--tag-output"], "2", &["2"]),
];

/// Checks that every way of a PE's output to a pipe that is not read ends with this status. PE 1 runs `line`,
/// in which `$SIGNAL` is a file; `act` is called with the command and the file when the pipe is full.
fn assert_ends(options: &[&str], line: &str, act: impl Fn(&Child, &Path), status: i32) {
    let started: Vec<_> = WAYS
        .into_iter()
        .enumerate()
        .map(|(i, (tagging, to, streams))| {
            let signal = std::env::temp_dir().join(format!("full-pipe-{}-{status}-{i}", std::process::id()));
            let mut command = chatter(&[tagging, options].concat(), to, line);
            command.env("SIGNAL", &signal);
            let (child, unread) = start(command, streams);
            (child, unread, signal)
        })
        .collect();
    for (child, unread, signal) in &started {
        wait_until("the pipe to be full, or the end", || {
            is_full(unread) || has_ended(handle_of(child), Duration::ZERO)
        });
        act(child, signal);
    }
    for ((child, _unread, signal), way) in started.into_iter().zip(WAYS) {
        let ended = status_of(child, "a job whose output is not read");
        let _ = std::fs::remove_file(signal);
        let interrupt = ended.signal().filter(|signal| *signal == Signal::INT.as_raw());
        assert_eq!(ended.code().or(interrupt.map(|signal| 128 + signal)), Some(status), "{way:?}");
    }
}

#[test]
fn time_limits_are_kept_whatever_the_reader_does() {
    assert_ends(&["--timeout", "1"], "exec sleep 1000", |_, _| (), 124);
}

#[test]
fn deaths_are_noticed_whatever_the_reader_does() {
    let die = |_: &Child, signal: &Path| std::fs::write(signal, "").unwrap();
    assert_ends(&[], "until test -e $SIGNAL; do :; done; exit 9", die, 9);
}

#[test]
fn an_interrupt_ends_the_job_whatever_the_reader_does() {
    let interrupt = |child: &Child, _: &Path| kill_process(pid_of(child), Signal::INT).unwrap();
    assert_ends(&[], "exec sleep 1000", interrupt, 130);
}

#[test]
fn a_reader_that_begins_after_the_end_of_all_pes_gets_everything() {
    let words = ["run", "-n", "2", "--tag-output", "sh", "-c", "seq 1 20000; touch $DONE/$PMI_RANK"];
    let folder = std::env::temp_dir().join(format!("late-reader-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let mut command = pelago(&words);
    command.env("DONE", &folder).stdin(Stdio::null());
    let (child, mut reader) = start(command, &["1"]);
    let done = |pe: &str| folder.join(pe).exists();
    wait_until("both PEs to have written all", || done("0") && done("1"));
    std::fs::remove_dir_all(&folder).unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(status_of(child, "a job whose output was read").code(), Some(0));
    for pe in 0..2 {
        let tag = format!("[{pe}] ");
        let found = text.lines().filter_map(|line| line.strip_prefix(&tag)?.parse::<usize>().ok());
        assert!(found.eq(1..=20_000), "PE {pe}");
    }
    assert_eq!(text.lines().count(), 40_000);
}

/// Commands that print, one or more of each subcommand.
const PRINTING: [&[&str]; 21] = [
    &["--help"],
    &["--version"],
    &["help", "run"],
    &["help", "settings"],
    &["app"],
    &["app", "hello"],
    &["app", "ring", "--help"],
    &["info"],
    &["info", "--settings"],
    &["info", "--fabrics", "--json"],
    &["info", "--scale", "1000"],
    &["info", "--collectives", "-n", "4"],
    &["coll", "show", "broadcast"],
    &["coll", "list"],
    &["sim", "-n", "2", "ring"],
    &["run", "-n", "2", "ft", "--variant", "all"],
    &["run", "-n", "2", "qtc"],
    &["run", "-n", "2", "app:perf", "barrier", "--quick"],
    &["bench", "sync-memory", "-n", "2"],
    &["run", "-n", "2", "hello"],
    &["run", "-n", "2", "--tag-output", "hello"],
];

#[test]
fn a_full_device_is_reported() {
    for args in PRINTING {
        let mut command = pelago(args);
        command.stdin(Stdio::null()).stdout(File::options().write(true).open("/dev/full").unwrap());
        let ended = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code().is_some_and(|code| code != 0), "{args:?}: {:?} {stderr}", ended.status);
        assert!(stderr.contains("No space left on device"), "{args:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
    }
}

/// Neither the launcher nor its PEs end because nobody can be told: they log their start.
#[test]
fn a_full_standard_error_ends_no_job() {
    let mut command = pelago(&["run", "-n", "2", "hello"]);
    let full = File::options().write(true).open("/dev/full").unwrap();
    command.env("PELAGO_LOG", "info").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(full);
    let ended = command.spawn().unwrap().wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&ended.stdout);
    assert_eq!((ended.status.code(), stdout.lines().count()), (Some(0), 2), "{stdout}");
}

/// The failure may occur before, while or after the launcher finds that nothing is left to write.
#[test]
fn a_full_device_is_reported_however_short_the_job() {
    for _ in 0..200 {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = pelago(&["run", "-n", "1", "--tag-output", "echo", "short"]);
        let ended = command.stdin(Stdio::null()).stdout(full).output().unwrap();
        assert!(!ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
}

#[test]
fn a_closed_pipe_ends_the_command_without_words() {
    let yes: &[&str] = &["run", "-n", "2", "yes"];
    let tagged: &[&str] = &["run", "-n", "2", "--tag-output", "yes"];
    let far: &[&str] = &["run", "--hosts", "a,b", "--launch-agent", NEARBY, "yes"];
    for args in PRINTING.into_iter().chain([yes, tagged, far]) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = pelago(args);
        let ended = command.stdin(Stdio::null()).stdout(writer).output().unwrap();
        let status = ended.status.signal().map_or(ended.status.code(), |signal| Some(128 + signal));
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((status, &*stderr), (Some(128 + 13), ""), "{args:?}");
    }
}
