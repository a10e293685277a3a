//! Programs that wait for what never comes (`c/stall.c`) end and say what each PE waits for.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Ended, LIMIT, ROUTES, c_file, installed, job, run_with};

const SOON: (&str, &str) = ("PELAGO_STALL_REPORT", "0.2");
const OFF: (&str, &str) = ("PELAGO_STALL_REPORT", "off");
const CHECKED: [(&str, &str); 2] = [("PELAGO_STALL_REPORT", "off"), ("PELAGO_CHECK", "on")];

/// Fails unless the job has failed with these words. Of several threads of a PE that fails, any may be the
/// one that ends it, and so gives the status.
#[track_caller]
fn assert_ended(ended: &Ended, words: &[&str]) {
    assert_ne!(ended.status, 0, "{}", ended.line);
    ended.assert_refused(ended.status, words);
}

#[test]
fn a_job_in_which_no_pe_can_go_on_ends() {
    let program = c_file("stall", &["-pthread"]);
    let cases: [(&str, &[&str]); 3] = [
        (
            "flag",
            &[
                "PE 0 waits for a change of",
                ", in shmem_long_wait_until; ",
                "PE 1 waits for ",
                " in barrier ",
            ],
        ),
        ("mismatch", &[" in barrier ", "all_reduce of a team"]),
        ("threads", &["; and for ", " in barrier of a team", " in barrier "]),
    ];
    for (which, words) in cases {
        for route in ROUTES {
            let words = [&["no PE can go on"], words].concat();
            assert_ended(&run_with(&program, &[which], 2, &[&[SOON], route].concat()), &words);
        }
    }
}

#[test]
fn calls_that_do_not_match_are_told_with_checks() {
    let program = c_file("stall", &["-pthread"]);
    let cases: [(&str, &[&str]); 2] = [
        ("mismatch", &[", in shmem_barrier_all; PE 1 ", "all_reduce(", "blocks of 1 elements of 8 bytes"]),
        ("threads", &["barrier(), call", "; and for ", "of the team of PEs 0-1", ", in shmem_barrier_all"]),
    ];
    for (which, words) in cases {
        for route in ROUTES {
            let words = [&["collective calls do not match"], words].concat();
            assert_ended(&run_with(&program, &[which], 2, &[&CHECKED, route].concat()), &words);
        }
    }
}

/// A job under way: what it has written so far, line by line.
struct Running {
    child: Child,
    lines: Receiver<String>,
    said: String,
}

impl Running {
    fn start(mut command: Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let errors = sender.clone();
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|l| sender.send(l))
        });
        thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|l| errors.send(l))
        });
        Running { child, lines, said: String::new() }
    }

    /// The next line that has these words.
    fn await_line(&mut self, words: &str) -> String {
        let start = Instant::now();
        loop {
            let left = LIMIT.saturating_sub(start.elapsed());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("waited for {words:?}; it said: {}", self.said));
            self.said += &format!("{line}\n");
            if line.contains(words) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The end of the job, when no line comes any more.
    fn end(mut self) -> (i32, String) {
        while let Ok(line) = self.lines.recv_timeout(LIMIT) {
            self.said += &format!("{line}\n");
        }
        (self.child.wait().unwrap().code().unwrap_or(-1), std::mem::take(&mut self.said))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_signal_to_the_launcher_asks_what_the_pes_do() {
    let program = c_file("stall", &["-pthread"]);
    let folder = std::env::temp_dir().join(format!("pelago-stall-jobs-{}", std::process::id()));
    let jobs = ("PELAGO_JOBS_FOLDER", folder.to_str().unwrap());
    for route in ROUTES {
        let mut job = Running::start(job(&program, &["computes"], 2, &[&[OFF, jobs], route].concat()));
        job.await_line("computing");
        for _ in 0..2 {
            job.signal(Signal::USR2);
            job.await_line("SIGUSR2 asks. What each PE does:");
            let first = job.await_line("PE 0 ");
            assert!(first.contains("PE 0 waits for ") && first.contains(" in barrier "), "{first}");
            job.await_line("PE 1 computes, or waits outside of the runtime");
        }
        let ps = Command::new(installed().join("bin/pelago")).args(["ps", "--pes"]).envs([jobs]).output();
        let ps = String::from_utf8(ps.unwrap().stdout).unwrap();
        let rows: Vec<Vec<_>> = ps.lines().map(|line| line.split_whitespace().collect()).collect();
        let state = |pe: usize| (rows[2 + pe][0], rows[2 + pe][2]);
        assert!(rows.len() == 4 && [state(0), state(1)] == [("0", "waiting"), ("1", "running")], "{ps}");
        assert!(
            ps.contains("waits for PE 1 in barrier ") || ps.contains("waits for all PEs in barrier "),
            "{ps}"
        );
        job.signal(Signal::TERM);
        let (status, said) = job.end();
        assert_eq!(status, 143, "{said}");
    }
    std::fs::remove_dir(&folder).unwrap();
}

/// A process that is stopped before it joins is named, on one node and on two, and goes on when it may.
#[test]
fn a_process_that_is_stopped_as_the_job_forms_is_named() {
    let program = c_file("stall", &["-pthread"]);
    let line = format!("if [ $PMI_RANK = 1 ]; then kill -STOP $$; fi; exec {} none", program.display());
    let two_nodes: &[(&str, &str)] = &[("PELAGO_SIM_NODES", "2")];
    for way in [ROUTES[0], ROUTES[1], two_nodes] {
        let mut job = Running::start(job(Path::new("/bin/sh"), &["-c", &line], 2, &[&[SOON], way].concat()));
        let told = job.await_line("PE 1 is stopped by a signal");
        let pid = told.split("kill -CONT ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
        kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::CONT).unwrap();
        let (status, said) = job.end();
        assert_eq!(status, 0, "{said}");
        assert!(said.contains("PE 0 waits for the other processes, as the job forms"), "{said}");
    }
}
