//! A launcher that shares no code with `pelago run`: it speaks only PMI-1, and its PEs inherit only the
//! socket, its number, their rank and their count.
//!
//! Invariant: the launcher is strict. It disconnects a PE that sends a request outside of the protocol, as
//! some launchers do. Source: responses of MPICH's hydra and of Slurm's pmi2 plugin, as observed.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, kill_process};

use crate::jobs::{assert_ft_json, assert_hello};
use crate::process::{LIMIT, handle_of, has_ended, is_at_work, pid_of, wait_until};

/// The name of the key-value space.
const KVS: &str = "kvs_4711_0";

/// The variations of a launcher's responses.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    /// The addition to a response that needs no return code.
    plain: &'static str,
    /// The addition to the response to a successful put or get.
    success: &'static str,
    /// Whether the command comes last, after the fields in reverse order.
    is_reversed: bool,
    /// The response for a key that does not exist.
    missing: &'static str,
    /// The longest value, in characters.
    value_max: usize,
}

const SLURM: Dialect =
    Dialect { plain: "rc=0", success: "rc=0", missing: "rc=1", is_reversed: false, value_max: 1024 };
const HYDRA: Dialect = Dialect {
    plain: "",
    success: "rc=0 msg=success",
    missing: "rc=-1 msg=key_not_found value=unknown",
    ..SLURM
};
const TERSE: Dialect = Dialect { plain: "", success: "", ..SLURM };
const REVERSED: Dialect = Dialect { is_reversed: true, ..SLURM };
const NARROW: Dialect = Dialect { value_max: 64, ..HYDRA };
/// A computation that is long enough to be interrupted.
const LONG: [&str; 3] = ["ft", "--class", "B"];

/// The event that ended the service.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Every PE has left the job and closed its socket.
    AllLeft,
    /// The first barrier has opened.
    Met,
    /// This PE has closed its socket without leaving the job, because it was killed.
    Died(usize),
    /// This PE aborts the job with this status.
    Aborted(usize, String),
}

struct Pe {
    child: Option<Child>,
    socket: UnixStream,
    has_left: bool,
    is_waiting: bool,
    puts: usize,
    barriers: usize,
}

/// A job of the application `words`, and the launcher's side of it.
struct Stub {
    dialect: Dialect,
    pes: Vec<Pe>,
    /// The lines of the PEs, and `None` at the end of each.
    lines: Receiver<(usize, Option<String>)>,
    values: HashMap<String, String>,
}

impl Stub {
    fn start(dialect: Dialect, size: usize, words: &[&str]) -> Self {
        let (sender, lines) = channel();
        let mut pes = Vec::new();
        for rank in 0..size {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let child = spawn(rank, size, &theirs, words);
            let (reader, sender) = (BufReader::new(ours.try_clone().unwrap()), sender.clone());
            std::thread::spawn(move || {
                let lines = reader.lines().map_while(Result::ok).map(Some);
                // The receiver is gone if the test has ended.
                lines.chain([None]).try_for_each(|line| sender.send((rank, line)))
            });
            let child = Some(child);
            pes.push(Pe { child, socket: ours, has_left: false, is_waiting: false, puts: 0, barriers: 0 });
        }
        Self { dialect, pes, lines, values: HashMap::new() }
    }

    /// Serves the PEs until all have met in a barrier, all have left, or one aborts the job.
    fn serve(&mut self) -> Outcome {
        let mut open = self.pes.len();
        loop {
            let (rank, line) = self.lines.recv_timeout(LIMIT).expect("a line of a PE, or its end");
            let Some(line) = line else {
                if !self.pes[rank].has_left {
                    return Outcome::Died(rank);
                }
                open -= 1;
                if open == 0 {
                    return Outcome::AllLeft;
                }
                continue;
            };
            let request = fields(&line);
            if request["cmd"] == "abort" {
                return Outcome::Aborted(rank, request["exitcode"].clone());
            }
            if !self.answer(rank, &request) {
                self.cut_off(rank);
            }
            if self.open_barrier() {
                return Outcome::Met;
            }
        }
    }

    /// Responds to a request; false if the request is not valid.
    fn answer(&mut self, rank: usize, request: &HashMap<String, String>) -> bool {
        let in_space = request.get("kvsname").is_some_and(|name| name == KVS);
        let pe = &mut self.pes[rank];
        let Dialect { plain, success, missing, value_max, .. } = self.dialect;
        let (command, rest) = match request["cmd"].as_str() {
            "init" => ("response_to_init", "pmi_version=1 pmi_subversion=1 rc=0".to_owned()),
            "get_maxes" => ("maxes", format!("kvsname_max=256 keylen_max=64 vallen_max={value_max} {plain}")),
            "get_my_kvsname" => ("my_kvsname", format!("kvsname={KVS} {plain}")),
            "put" if in_space && request["value"].len() <= value_max => {
                pe.puts += 1;
                self.values.insert(request["key"].clone(), request["value"].clone());
                ("put_result", success.to_owned())
            }
            "get" if in_space => match self.values.get(&request["key"]) {
                Some(value) => ("get_result", format!("{success} value={value}")),
                None => ("get_result", missing.to_owned()),
            },
            "barrier_in" => {
                pe.barriers += 1;
                pe.is_waiting = true;
                return true;
            }
            "finalize" => {
                pe.has_left = true;
                ("finalize_ack", plain.to_owned())
            }
            _ => return false,
        };
        self.send(rank, command, &rest);
        true
    }

    /// Opens the barrier if all PEs wait in it.
    fn open_barrier(&mut self) -> bool {
        let is_complete = self.pes.iter().all(|pe| pe.is_waiting);
        if is_complete {
            for rank in 0..self.pes.len() {
                self.pes[rank].is_waiting = false;
                self.send(rank, "barrier_out", self.dialect.plain);
            }
        }
        is_complete
    }

    fn cut_off(&self, rank: usize) {
        // The PE may have closed its own end meanwhile.
        let _ = self.pes[rank].socket.shutdown(Shutdown::Both);
    }

    /// Kills PE `victim` while it computes, and waits until the launcher notices.
    fn kill_at_work(&mut self, victim: usize) {
        assert_eq!(self.serve(), Outcome::Met);
        let pids: Vec<_> = self.pes.iter().filter_map(|pe| pe.child.as_ref().map(pid_of)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                wait_until("all PEs to be at work", || pids.iter().all(|pid| is_at_work(*pid)));
                kill_process(pids[victim], Signal::KILL).unwrap();
            });
            assert_eq!(self.serve(), Outcome::Died(victim), "it has not left the job");
        });
    }

    fn send(&mut self, rank: usize, command: &str, rest: &str) {
        let command = format!("cmd={command}");
        let mut words: Vec<_> = std::iter::once(command.as_str()).chain(rest.split_whitespace()).collect();
        if self.dialect.is_reversed {
            words.reverse();
        }
        // If the PE has died meanwhile, the end of its lines reports it.
        let _ = self.pes[rank].socket.write_all((words.join(" ") + "\n").as_bytes());
    }

    /// Waits for the end of every PE; returns the output of each.
    fn end(mut self) -> Vec<Output> {
        for (rank, child) in self.pes.iter().filter_map(|pe| pe.child.as_ref()).enumerate() {
            assert!(has_ended(handle_of(child), LIMIT), "waited {LIMIT:?} for PE {rank} to end");
        }
        let children = self.pes.iter_mut().filter_map(|pe| pe.child.take());
        children.map(|child| child.wait_with_output().unwrap()).collect()
    }
}

impl Drop for Stub {
    /// Kills the PEs, so that a failed test leaves none behind.
    fn drop(&mut self) {
        for child in self.pes.iter_mut().filter_map(|pe| pe.child.as_mut()) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts PE `rank`, whose socket has the same descriptor as here.
fn spawn(rank: usize, size: usize, socket: &UnixStream, words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pelago"));
    command.arg("app").args(words).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("PMI_RANK", rank.to_string()).env("PMI_SIZE", size.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let socket = socket.try_clone().unwrap();
    command.env("PMI_FD", socket.as_raw_fd().to_string());
    let inherit = move || Ok(fcntl_setfd(&socket, FdFlags::empty())?);
    // SAFETY: between fork and exec the closure makes one system call: it does not allocate, lock or panic.
    unsafe { command.pre_exec(inherit) };
    command.spawn().unwrap()
}

/// The fields of a line, `key=value` each.
fn fields(line: &str) -> HashMap<String, String> {
    let pairs = line.split(' ').map(|word| word.split_once('=').expect("a word of PMI-1 is key=value"));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs a job that must succeed; returns the standard output of each PE.
fn succeed(dialect: Dialect, size: usize, words: &[&str]) -> Vec<String> {
    let mut stub = Stub::start(dialect, size, words);
    assert_eq!(stub.serve(), Outcome::Met, "{dialect:?}");
    assert_eq!(stub.serve(), Outcome::AllLeft, "{dialect:?}");
    for pe in &stub.pes {
        // Puts and barriers are expensive: there must be one of each, unless a value is split into parts.
        assert_eq!((pe.puts == 1, pe.barriers), (dialect.value_max == 1024, 1), "{dialect:?}");
    }
    let check = |output: Output| {
        assert_eq!((output.status.code(), &*text(&output.stderr)), (Some(0), ""), "{dialect:?}");
        text(&output.stdout)
    };
    stub.end().into_iter().map(check).collect()
}

#[test]
fn ft_is_verified_in_every_dialect() {
    for dialect in [SLURM, HYDRA, TERSE, REVERSED, NARROW] {
        let written = succeed(dialect, 4, &["ft", "--class", "S", "--json"]);
        assert_ft_json(&written[0], "S", 4);
        assert_eq!(written[1..], ["", "", ""], "PE 0 alone tells the result");
    }
}

#[test]
fn every_pe_says_hello() {
    for dialect in [SLURM, HYDRA, TERSE, REVERSED, NARROW] {
        for size in [2, 5] {
            assert_hello(&succeed(dialect, size, &["hello"]).concat(), size);
        }
    }
}

#[test]
fn what_cannot_be_done_is_said_by_pe_0_and_all_leave() {
    let mut stub = Stub::start(SLURM, 3, &["ft"]);
    assert_eq!((stub.serve(), stub.serve()), (Outcome::Met, Outcome::AllLeft));
    for (rank, output) in stub.end().into_iter().enumerate() {
        assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(2), ""));
        let message = text(&output.stderr);
        assert_eq!(message.matches("ft: the grid 64 x 64 x 64 cannot").count(), usize::from(rank == 0));
        assert_eq!(message.lines().count(), usize::from(rank == 0), "{message}");
    }
}

#[test]
fn a_pe_that_dies_is_seen_and_the_others_can_be_ended() {
    for victim in [0, 2] {
        let mut stub = Stub::start(SLURM, 4, &LONG);
        stub.kill_at_work(victim);
        for pe in stub.pes.iter().enumerate().filter(|(rank, _)| *rank != victim).map(|(_, pe)| pe) {
            kill_process(pid_of(pe.child.as_ref().unwrap()), Signal::TERM).unwrap();
        }
        for (rank, output) in stub.end().into_iter().enumerate() {
            let signal = if rank == victim { 9 } else { 15 };
            assert_eq!((output.status.signal(), output.stdout.len()), (Some(signal), 0), "PE {rank}");
        }
    }
}

/// As Slurm's launcher does without `--kill-on-bad-exit`.
#[test]
fn pes_end_when_their_launcher_ignores_that_one_has_died() {
    let mut stub = Stub::start(SLURM, 4, &LONG);
    stub.kill_at_work(2);
    let pid = pid_of(stub.pes[2].child.as_ref().unwrap());
    for (rank, output) in stub.end().into_iter().enumerate().filter(|(rank, _)| *rank != 2) {
        let message = text(&output.stderr);
        let told = format!("PE 2 (process {}) has ended without leaving the job", pid.as_raw_nonzero());
        assert!(message.contains(&told) && output.status.code() != Some(0), "PE {rank}: {message}");
        assert!(output.stdout.is_empty(), "PE {rank}");
    }
}

#[test]
fn pes_end_when_their_launcher_closes_their_sockets() {
    let mut stub = Stub::start(HYDRA, 4, &LONG);
    stub.kill_at_work(2);
    (0..4).for_each(|rank| stub.cut_off(rank));
    for (rank, output) in stub.end().into_iter().enumerate().filter(|(rank, _)| *rank != 2) {
        let message = text(&output.stderr);
        assert!(message.starts_with(&format!("PE {rank}: ")) && message.contains("gave up waiting for "));
        assert!(message.ends_with(": the launcher is gone\n") && message.lines().count() == 1, "{message}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "PE {rank}");
    }
}

#[test]
fn a_launcher_that_hangs_up_is_named() {
    let stub = Stub::start(SLURM, 2, &["hello"]);
    (0..2).for_each(|rank| stub.cut_off(rank));
    for (rank, output) in stub.end().into_iter().enumerate() {
        let message = text(&output.stderr);
        let start = format!("hello: PE {rank}, joining the job: the launcher is gone");
        assert!(message.starts_with(&start) && message.lines().count() == 1, "{message}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "PE {rank}");
    }
}
