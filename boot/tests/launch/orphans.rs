//! No process is left when a launcher ends, however it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::bodies::{LAUNCH_N, LAUNCH_PROGRAM, mask_signals};
use super::{run, shells, this_program};

/// How long a process may take to end before a test fails.
const LIMIT: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// A launcher in a separate process, with `n` PEs of `program`.
fn launcher(n: usize, program: &[&str], input: Stdio) -> (Child, BufReader<ChildStdout>) {
    let (this, args) = this_program();
    let mut command = Command::new(this);
    command.args(args).env("PELAGO_TEST_BODY", "launcher");
    command.env(LAUNCH_N, n.to_string()).env(LAUNCH_PROGRAM, program.join("\n"));
    let block = || {
        mask_signals(libc::SIG_BLOCK);
        // A shell makes its background processes ignore SIGINT, and the launcher would inherit that. SAFETY:
        // the default action installs no handler.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: the closure makes async-signal-safe calls only.
    unsafe { command.pre_exec(block) };
    let mut child = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (child, stdout)
}

/// Handles of `n` PEs, whose numbers of processes are read from the launcher's output.
pub fn handles(n: usize, stdout: &mut BufReader<ChildStdout>) -> Vec<OwnedFd> {
    handles_with(n, stdout, None)
}

/// The same, when each PE has said `word` as well. A launcher mixes the lines of PEs in any order.
pub fn handles_with(n: usize, stdout: &mut BufReader<ChildStdout>, word: Option<&str>) -> Vec<OwnedFd> {
    let (mut handles, mut said) = (Vec::new(), 0);
    let mut line = String::new();
    while handles.len() < n || word.is_some() && said < n {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "the launcher ended before its PEs had started");
        said += usize::from(Some(line.trim_end()) == word);
        let number = line.strip_prefix("pid ").or(line.split_once("] pid ").map(|(_, number)| number));
        let number = number.and_then(|number| number.trim().parse().ok());
        if let Some(pid) = number.and_then(Pid::from_raw) {
            handles.push(pidfd_open(pid, PidfdFlags::empty()).unwrap());
        }
    }
    handles
}

pub fn assert_ended(handle: impl AsFd, what: &str) {
    let ready = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&LIMIT)).unwrap();
    assert_eq!(ready, 1, "{what} is still alive after {} s", LIMIT.tv_sec);
}

/// Waits for the end of a launcher; returns its status and its standard error.
fn end(mut child: Child) -> (Option<i32>, String) {
    let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
    assert_ended(pidfd_open(pid, PidfdFlags::empty()).unwrap(), "the launcher");
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code(), text)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal).unwrap();
}

/// The command line of a PE that is the child of a shell.
fn below_a_shell() -> Vec<String> {
    let (program, args) = this_program();
    let mut line =
        vec!["/bin/sh".to_owned(), "-c".to_owned(), r#""$@"; exit $?"#.to_owned(), "sh".to_owned()];
    line.push(program.into_os_string().into_string().unwrap());
    line.extend(args.into_iter().map(|arg| arg.into_string().unwrap()));
    line
}

fn direct() -> Vec<String> {
    below_a_shell().split_off(4)
}

fn words(line: &[String]) -> Vec<&str> {
    line.iter().map(String::as_str).collect()
}

#[test]
fn pes_end_with_a_launcher_that_is_killed() {
    for line in [direct(), below_a_shell()] {
        let (mut child, mut stdout) = launcher(3, &words(&line), Stdio::null());
        let handles = handles(3, &mut stdout);
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        handles.iter().for_each(|handle| assert_ended(handle, "a PE of a killed launcher"));
    }
}

#[test]
fn an_interrupted_launcher_ends_its_pes() {
    for (number, status, name) in [(Signal::INT, 130, "SIGINT"), (Signal::TERM, 143, "SIGTERM")] {
        for line in [direct(), below_a_shell()] {
            let (child, mut stdout) = launcher(2, &words(&line), Stdio::null());
            let handles = handles(2, &mut stdout);
            signal(&child, number);
            let (code, text) = end(child);
            assert_eq!(code, Some(status), "{text}");
            assert!(text.contains(name), "{text:?} does not name {name}");
            handles.iter().for_each(|handle| assert_ended(handle, "a PE of an interrupted launcher"));
        }
    }
}

#[test]
fn processes_in_the_background_end_with_their_pe() {
    let report = run(&shells(2, "sleep 60 & echo $!"));
    assert_eq!(report.status, 0, "{report:#?}");
    for output in &report.output {
        let pid = Pid::from_raw(output.stdout.trim().parse().unwrap()).unwrap();
        // If the process does not exist any more, it has ended.
        if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) {
            assert_ended(handle, "a process in the background of a PE");
        }
    }
}

#[test]
fn a_pipe_reaches_pe_0_and_lines_are_tagged() {
    let (mut child, mut stdout) = launcher(2, &["/bin/sh", "-c", "cat; printf end"], Stdio::piped());
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let mut text = String::new();
    stdout.read_to_string(&mut text).unwrap();
    assert_eq!(end(child).0, Some(0));
    let mut lines: Vec<_> = text.lines().filter(|line| line.starts_with('[')).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] end", "[0] one", "[0] two", "[1] end"], "{text}");
}

#[test]
fn a_terminal_reaches_pe_0() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let name = ptsname(&keyboard, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let terminal = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
    let line = "if test $PMI_RANK = 0; then read a; read b; echo got $a $b; fi";
    let (child, mut stdout) = launcher(2, &["/bin/sh", "-c", line], Stdio::from(terminal));
    rustix::io::write(&keyboard, b"first\nsecond\n").unwrap();
    let mut text = String::new();
    stdout.read_to_string(&mut text).unwrap();
    assert_eq!(end(child).0, Some(0));
    assert!(text.lines().any(|line| line == "[0] got first second"), "{text}");
}
