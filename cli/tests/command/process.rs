//! Processes under test: starts them, bounds every wait for them, and checks that they leave no process
//! behind.
//!
//! Invariant: every process of a job has an environment variable whose value is unique to the job, so that
//! processes that outlive the job are found, independent of their parent.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// The time limit of every wait.
pub const LIMIT: Duration = Duration::from_secs(120);
/// The variable that marks the processes of a job.
const MARKER: &str = "TEST_JOB";
/// The signal that ends a command which Ctrl-C has interrupted.
const SIGINT: i32 = Signal::INT.as_raw();
/// A PE with this much resident memory, in bytes, is computing.
const AT_WORK_BYTES: usize = 32 << 20;

/// The command under test, with these arguments.
pub fn pelago(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pelago"));
    command.args(args);
    command
}

/// Runs the command to its end, and checks that no process of it is left.
pub fn run(args: &[&str]) -> Ended {
    run_with(args, &[])
}

/// As [`run`], with variables in its environment.
pub fn run_with(args: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = pelago(args);
    command.envs(variables.iter().copied());
    Started::new(command).end()
}

/// A folder for the files of a test, which is deleted at its end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("pelago-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names of its files, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running command.
pub struct Started {
    child: Child,
    handle: OwnedFd,
    mark: String,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status as a shell shows it: 128 + the signal that has ended it, if one has.
    pub status: i32,
    /// The signal that has ended it.
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Started {
    pub fn new(command: Command) -> Self {
        Self::with_input(command, Stdio::null())
    }

    /// The same, with this standard input.
    pub fn with_input(mut command: Command, input: Stdio) -> Self {
        let mark = new_mark();
        command.env(MARKER, &mark).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let handle = handle_of(&child);
        let (stdout, stderr) = (read(child.stdout.take().unwrap()), read(child.stderr.take().unwrap()));
        Self { child, handle, mark, stdout, stderr }
    }

    /// Sends a signal to the command itself.
    pub fn signal(&self, signal: Signal) {
        pidfd_send_signal(&self.handle, signal).unwrap();
    }

    /// Sends a signal to the process group that the command leads, as a terminal does.
    pub fn signal_group(&self, signal: Signal) {
        kill_process_group(pid_of(&self.child), signal).unwrap();
    }

    /// Returns when the command has started `n` PEs.
    pub fn wait_for_pes(&self, n: usize) -> BTreeMap<usize, Pid> {
        let mut found = BTreeMap::new();
        wait_until("the PEs to be started", || {
            assert!(!has_ended(&self.handle, Duration::ZERO), "the command ended before {n} PEs were seen");
            found = pes(&self.mark);
            found.len() == n
        });
        found
    }

    /// Waits until all `n` PEs are computing, and returns them in order.
    pub fn pes_at_work(&self, n: usize) -> Vec<Pid> {
        let mut found = BTreeMap::new();
        wait_until("all PEs to be at work", || {
            assert!(
                !has_ended(&self.handle, Duration::ZERO),
                "the job ended before {n} PEs were seen at work"
            );
            found = pes(&self.mark);
            found.len() == n && found.values().all(|pid| is_at_work(*pid))
        });
        found.into_values().collect()
    }

    /// The processes of the job that have a rank, by rank. A process that executes another program has no
    /// environment for a moment, and is missing then: who needs a PE's process takes it from
    /// [`Started::wait_for_pes`].
    pub fn pes(&self) -> BTreeMap<usize, Pid> {
        pes(&self.mark)
    }

    /// The agent of a host that `nearby.sh` reaches.
    pub fn agent(&self, host: &str) -> Pid {
        let is_it = |pid: &Pid| words(*pid).last().is_some_and(|word| word == "agent");
        let is_there = |pid: &Pid| variable(*pid, "TEST_HOST").is_some_and(|found| found == host);
        let mut found = Vec::new();
        wait_until("the agent of a host", || {
            found = marked(&self.mark).into_iter().filter(is_it).filter(is_there).collect();
            found.len() == 1
        });
        found[0]
    }

    /// The processes of the command, including its own.
    pub fn processes(&self) -> Vec<Pid> {
        marked(&self.mark)
    }

    /// Waits for the end of the command, and checks that every PE has ended too.
    pub fn end(self) -> Ended {
        self.wait();
        self.collect()
    }

    /// As [`Started::end`], for a launcher that may end before the processes that it has killed.
    pub fn settle(self) -> Ended {
        self.wait();
        wait_until("the processes of the job to end", || marked(&self.mark).is_empty());
        self.collect()
    }

    fn wait(&self) {
        assert!(has_ended(&self.handle, LIMIT), "waited {LIMIT:?} for the end of {:?}", self.child);
    }

    fn collect(mut self) -> Ended {
        let left = marked(&self.mark);
        let text = |stream: &Receiver<String>| {
            stream.recv_timeout(LIMIT).expect("the end of a stream of a command that has ended")
        };
        let (stdout, stderr) = (text(&self.stdout), text(&self.stderr));
        assert_eq!(left, [], "processes are left after {stdout}{stderr}");
        assert_no_named_memory();
        let ended = self.child.wait().unwrap();
        let signal = ended.signal();
        assert!(matches!(signal, None | Some(SIGINT)), "the command was killed: {ended}");
        let status = ended.code().unwrap_or(128 + SIGINT);
        Ended { status, signal, stdout, stderr }
    }

    /// Kills the command, and waits for its PEs to end by themselves; returns the standard output and
    /// standard error of all.
    pub fn kill(mut self) -> (String, String) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
        wait_until("the PEs of a killed launcher to end", || marked(&self.mark).is_empty());
        assert_no_named_memory();
        let text = |stream: &Receiver<String>| {
            stream.recv_timeout(LIMIT).expect("the end of a stream of a job that has ended")
        };
        (text(&self.stdout), text(&self.stderr))
    }

    /// Whether the command ends within `limit`.
    #[cfg(feature = "full")]
    pub fn ends_within(&self, limit: Duration) -> bool {
        has_ended(&self.handle, limit)
    }
}

impl Drop for Started {
    /// Kills the job, so that a failed test leaves no job behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until `is_so` returns true, for conditions without an event.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited {LIMIT:?} for {what}");
        std::thread::yield_now();
    }
}

/// The id of a process that this one has started and not yet waited for.
pub fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

/// A handle to such a process.
pub fn handle_of(child: &Child) -> OwnedFd {
    pidfd_open(pid_of(child), PidfdFlags::empty()).unwrap()
}

/// Whether the process ends within `limit`.
pub fn has_ended(handle: impl AsFd, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).unwrap();
    poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

/// A unique value for the marking variable.
fn new_mark() -> String {
    static COUNT: Mutex<u32> = Mutex::new(0);
    let mut count = COUNT.lock().unwrap();
    *count += 1;
    format!("{}-{count}", std::process::id())
}

/// Reads a stream to its end, in the background.
fn read(mut stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        // The test may have failed meanwhile, and dropped the receiver.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// The processes whose environment has this mark.
fn marked(mark: &str) -> Vec<Pid> {
    let has_mark = |pid: &Pid| variable(*pid, MARKER).is_some_and(|found| found == mark);
    let entries = std::fs::read_dir("/proc").unwrap();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| Pid::from_raw(name.parse().ok()?)).filter(has_mark).collect()
}

/// The processes of the job that have a rank, by rank.
fn pes(mark: &str) -> BTreeMap<usize, Pid> {
    let rank = |pid| variable(pid, "PMI_RANK").or_else(|| variable(pid, "PMIX_RANK"));
    let ranked = |pid: Pid| Some((rank(pid)?.parse().ok()?, pid));
    marked(mark).into_iter().filter_map(ranked).collect()
}

/// The command line of a process; empty if the process has ended.
pub fn words(pid: Pid) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// A variable of a process; `None` also if the process has ended.
pub fn variable(pid: Pid, name: &str) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

/// Whether a PE is computing, judged by its resident memory.
pub fn is_at_work(pid: Pid) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() >= AT_WORK_BYTES
}

/// Checks that the memory of a job never has a name in the file system.
fn assert_no_named_memory() {
    let Ok(entries) = std::fs::read_dir("/dev/shm") else { return };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let left: Vec<_> = names.filter(|name| name.contains("pelago")).collect();
    assert_eq!(left, [""; 0], "in /dev/shm");
}
