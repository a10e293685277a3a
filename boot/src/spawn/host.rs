//! A host of the job: the remote shell that starts its agent, and the state of the connection.
//!
//! ```text
//! called --greeting--> greeted --all are: start sent--> running --its processes have ended--> dismissed
//!    `---------------------`-------------------------------`--end of the stream, silence, garbage--> lost
//! ```
//! Invariant: nothing here waits, except for the end of the remote shell when the job is over, for a bounded
//! time. The remote shell learns nothing about the job but the path of the agent.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::frame::{Frames, SendQueue};
use super::poller::{Poller, Source};
use super::process::{End, Process, die_with_parent, set_mask};
use super::{LaunchError, Machines, RemoteShell};

/// How many bytes of the standard error of a remote shell are kept for the message about its failure.
const WORDS_MAX_BYTES: usize = 4 << 10;
/// How long a remote shell may take to end after its agent was dismissed, and again after a signal was sent
/// to it.
const END_LIMIT: Duration = Duration::from_secs(2);
/// How long the launcher waits for the exit status of the remote shell after its stream has ended.
pub(super) const STATUS_LIMIT: Duration = Duration::from_secs(1);
/// Variables of Slurm that would change the job step of an agent, its streams or its share of the GPUs.
const SHAPING: [&str; 16] = [
    "SLURM_NTASKS_PER_NODE",
    "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",
    // It has the processors and GPUs of a task as well. Each asks for a part of the node.
    "SLURM_TRES_PER_TASK",
    "SLURM_THREADS_PER_CORE",
    "SLURM_EXACT",
    "SLURM_EXCLUSIVE",
    "SLURM_DISTRIBUTION",
    "SLURM_HINT",
    "SLURM_LABELIO",
    "SLURM_STDINMODE",
    "SLURM_STDOUTMODE",
    "SLURM_STDERRMODE",
    "SLURM_GPUS_PER_TASK",
    "SLURM_NTASKS_PER_GPU",
    "SLURM_GPU_BIND",
];

/// The state of the connection to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The remote shell was started.
    Called,
    /// The agent has sent its greeting.
    Greeted,
    /// The agent was told to start its processes.
    Running,
    /// The connection is closed, or not needed any more.
    Over,
}

/// A host with its remote shell.
pub(super) struct Host {
    /// The index of the host in the job.
    number: usize,
    pub(super) name: String,
    /// The remote shell, without the command that it runs on the host, and the path of the agent in that
    /// command.
    shell: String,
    agent: String,
    pub(super) processes: Range<usize>,
    pub(super) standing: Standing,
    pub(super) queue: SendQueue,
    pub(super) frames: Frames,
    /// The time of the last message from the host, and of the last liveness request to it.
    pub(super) heard_at: Instant,
    pub(super) asked_at: Instant,
    /// The time at which its stream ended.
    pub(super) ended_at: Option<Instant>,
    pub(super) end: Option<End>,
    /// The standard error of the remote shell before the greeting of the agent.
    pub(super) words: Vec<u8>,
    to: Option<PipeWriter>,
    waits_for_room: bool,
    from: Option<PipeReader>,
    errors: Option<PipeReader>,
    process: Process,
}

impl Host {
    /// Starts the agent of a host, by the index of the host. It gets the signal mask `mask`.
    pub(super) fn call(
        number: usize,
        name: &str,
        machines: &Machines,
        processes: Range<usize>,
        poller: &Poller,
        mask: libc::sigset_t,
    ) -> Result<Self, LaunchError> {
        let mut words = shell_words(machines, name);
        let shell = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let quoted = machines
            .agent
            .iter()
            .map(|word| quoted(word, machines.shell == RemoteShell::Slurm || words.is_empty()));
        words.extend(quoted.collect::<Vec<_>>());
        let failed =
            |reason: io::Error| LaunchError::Shell { host: name.to_owned(), shell: shell.clone(), reason };
        let ((theirs_in, to), (from, theirs_out)) =
            (io::pipe().map_err(failed)?, io::pipe().map_err(failed)?);
        let (errors, theirs_err) = io::pipe().map_err(failed)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(theirs_in).stdout(theirs_out).stderr(theirs_err).process_group(0);
        if machines.shell == RemoteShell::Slurm {
            for name in SHAPING {
                command.env_remove(name);
            }
        }
        // The agent ends at the end of its stream; this signal ends a remote shell that has not started the
        // agent yet.
        die_with_parent(&mut command, Signal::TERM);
        // Otherwise the agent, and all PEs of this machine, would block the signals that the launcher blocks.
        set_mask(&mut command, mask);
        let process = Process::start(&mut command, None).map_err(failed)?;
        // Closes our copies of the remote shell's ends, so that we can see when it closes them.
        drop(command);
        for pipe in [to.as_fd(), from.as_fd(), errors.as_fd()] {
            rustix::io::ioctl_fionbio(pipe, true).map_err(|error| failed(error.into()))?;
        }
        let watch = poller
            .add(Source::Host(number), &from)
            .and_then(|()| poller.add(Source::ShellErrors(number), &errors))
            .and_then(|()| poller.add(Source::ShellExit(number), &process));
        watch.map_err(|error| failed(error.into()))?;
        let agent =
            machines.agent.first().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let (name, queue, frames, now) =
            (name.to_owned(), SendQueue::default(), Frames::default(), Instant::now());
        Ok(Self {
            number,
            name,
            shell,
            agent,
            processes,
            standing: Standing::Called,
            queue,
            frames,
            heard_at: now,
            asked_at: now,
            ended_at: None,
            end: None,
            words: Vec::new(),
            to: Some(to),
            waits_for_room: false,
            from: Some(from),
            errors: Some(errors),
            process,
        })
    }

    /// Reads what the agent has sent; 0 at the end of the stream.
    pub(super) fn read(&mut self, bytes: &mut [u8], poller: &Poller) -> io::Result<usize> {
        let Some(from) = &mut self.from else { return Ok(0) };
        match from.read(bytes) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Err(error)
            }
            Ok(count) if count > 0 => {
                self.heard_at = Instant::now();
                Ok(count)
            }
            _ => {
                poller.remove(&*from);
                self.from = None;
                self.ended_at.get_or_insert_with(Instant::now);
                Ok(0)
            }
        }
    }

    /// Reads what the remote shell, or the agent, has written to standard error.
    pub(super) fn read_errors(&mut self, poller: &Poller) -> Vec<u8> {
        let (mut all, mut bytes) = (Vec::new(), [0_u8; 4096]);
        while let Some(pipe) = &mut self.errors {
            match pipe.read(&mut bytes) {
                Ok(count) if count > 0 => all.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => {
                    poller.remove(&*pipe);
                    self.errors = None;
                }
            }
            if all.len() > WORDS_MAX_BYTES {
                break;
            }
        }
        all
    }

    /// Keeps the standard error of the remote shell, for a message in case the agent does not start.
    pub(super) fn keep(&mut self, words: &[u8]) {
        self.words.extend_from_slice(words);
        let surplus = self.words.len().saturating_sub(WORDS_MAX_BYTES);
        self.words.drain(..surplus);
    }

    /// Sends the queued frames, as far as the pipe has room.
    pub(super) fn flush(&mut self, poller: &Poller) {
        let Some(to) = &self.to else { return };
        // If the other end is closed, the other stream ends too, and its reader handles the loss.
        let is_empty = self.queue.write_to(to).unwrap_or(true);
        if !is_empty && !self.waits_for_room {
            self.waits_for_room = poller.add_room(Source::HostRoom(self.number), to).is_ok();
        } else if is_empty && self.waits_for_room {
            poller.remove(to);
            self.waits_for_room = false;
        }
    }

    /// Closes the connection to the agent, which kills its remaining processes; the remote shell then ends by
    /// itself.
    pub(super) fn dismiss(&mut self, poller: &Poller) {
        if let Some(to) = self.to.take() {
            poller.remove(&to);
        }
        self.standing = Standing::Over;
    }

    /// Closes the connection to the agent. If the agent has not started yet, only a signal ends the remote
    /// shell.
    pub(super) fn break_off(&mut self, poller: &Poller) {
        if self.standing == Standing::Called {
            self.end_shell();
        }
        self.dismiss(poller);
    }

    fn end_shell(&self) {
        self.process.signal(Signal::TERM);
        // SIGCONT lets a stopped process receive the signal too.
        self.process.signal(Signal::CONT);
    }

    /// Records the end of the remote shell, if it has ended.
    pub(super) fn reap(&mut self, poller: &Poller) {
        if self.process.is_running()
            && let Some(end) = self.process.reap()
        {
            poller.remove(&self.process);
            self.end = Some(end);
            self.ended_at.get_or_insert_with(Instant::now);
        }
    }

    /// Whether the connection has ended completely: the stream is closed, and the status of the remote shell
    /// is known.
    pub(super) fn is_at_end(&self) -> bool {
        self.ended_at
            .is_some_and(|at| self.from.is_none() && self.end.is_some() || at.elapsed() >= STATUS_LIMIT)
    }

    /// Waits for the end of a remote shell whose agent is dismissed, for a bounded time.
    pub(super) fn wait_for_end(&mut self, since: Instant) {
        // Closes the streams, so that the remote shell does not block on them.
        (self.from, self.errors) = (None, None);
        self.wait_until(since + END_LIMIT);
        if self.process.is_running() {
            self.end_shell();
            self.wait_until(since + 2 * END_LIMIT);
        }
    }

    fn wait_until(&mut self, deadline: Instant) {
        while self.process.is_running() {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&self.process, PollFlags::IN)];
            let waiting = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
            if self.process.reap().is_none() && (left.is_zero() || waiting.is_err()) {
                return;
            }
        }
    }

    /// The last lines that the remote shell has written before the greeting of the agent, after a colon.
    pub(super) fn last_words(&self) -> String {
        last_lines(&self.words)
    }

    /// Why the connection to the host has ended, and what to do.
    pub(super) fn loss(&self) -> String {
        let (shell, agent, said) = (&self.shell, &self.agent, self.last_words());
        let ended = match self.end {
            Some(End::Exit(status)) => format!("ended with status {status}"),
            Some(End::Signal(signal)) => format!("was killed by signal {signal}"),
            None => "closed its output".to_owned(),
        };
        if self.standing != Standing::Called {
            let what = if shell.is_empty() { "the agent" } else { shell };
            return format!("the connection to its agent was lost (`{what}` {ended}{said})");
        }
        if matches!(self.end, Some(End::Exit(126 | 127))) || self.end == Some(End::Exit(2)) && is_slurm(shell)
        {
            return format!(
                "{agent} does not run there{said}; install Pelago at this path on each host, or name its \
                 path there by --agent-path"
            );
        }
        let noise = self.frames.noise();
        let noise = if noise.is_empty() { noise } else { format!(", after {noise:?}") };
        format!(
            "`{shell}` {ended} before Pelago's agent was there{said}{noise}; `{shell} true` has to work \
             without a question (--launch-agent names another command)"
        )
    }
}

/// The last three lines of a text, after a colon; empty if it has none.
fn last_lines(words: &[u8]) -> String {
    let words = String::from_utf8_lossy(words);
    let lines: Vec<_> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match &lines[lines.len().saturating_sub(3)..] {
        [] => String::new(),
        last => format!(": {}", last.join(", ")),
    }
}

/// Whether the remote shell is Slurm's.
fn is_slurm(shell: &str) -> bool {
    shell.starts_with("srun ")
}

/// The remote shell, its options and the host; empty for this machine, which needs no remote shell.
fn shell_words(machines: &Machines, host: &str) -> Vec<OsString> {
    match &machines.shell {
        RemoteShell::Command(words) => words.iter().cloned().chain([host.into()]).collect(),
        RemoteShell::Ssh if is_this_machine(host) => Vec::new(),
        // No X11, no terminal, and no prompts.
        RemoteShell::Ssh => ["ssh", "-x", "-T", "-o", "BatchMode=yes", host].map(OsString::from).to_vec(),
        // The agent's step overlaps all processors and memory of the allocation, because the processes that
        // it starts are the only ones; and its output is not buffered.
        RemoteShell::Slurm => {
            let options =
                ["--nodes=1", "--ntasks=1", "--overlap", "--unbuffered", "--mpi=none", "--cpu-bind=none"];
            let words = ["srun"].into_iter().chain(options).chain(["--quiet", "-w", host]);
            words.map(OsString::from).collect()
        }
    }
}

/// Whether the name of a host denotes this machine.
fn is_this_machine(host: &str) -> bool {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    host == "localhost" || host == own || (!host.contains('.') && host == short(&own))
}

/// Quotes a word of the command for a remote shell, which passes it to another shell; returns the word
/// unchanged if it `is_plain`.
fn quoted(word: &OsStr, is_plain: bool) -> OsString {
    let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./+,:=@%-".contains(byte);
    if is_plain || (!word.is_empty() && word.as_bytes().iter().all(is_safe)) {
        return word.to_owned();
    }
    let mut bytes = vec![b'\''];
    for byte in word.as_bytes() {
        match byte {
            b'\'' => bytes.extend(b"'\\''"),
            byte => bytes.push(*byte),
        }
    }
    bytes.push(b'\'');
    OsString::from_vec(bytes)
}

impl AsFd for Host {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines(shell: RemoteShell) -> Machines {
        Machines { hosts: Vec::new(), shell, agent: vec!["/opt/my pelago".into(), "agent".into()] }
    }

    #[test]
    fn remote_shells() {
        let of = |shell, host| {
            let words = shell_words(&machines(shell), host);
            words.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(RemoteShell::Ssh, "me@b"), "ssh -x -T -o BatchMode=yes me@b");
        assert_eq!(of(RemoteShell::Ssh, "localhost"), "", "this machine needs no remote shell");
        let command = RemoteShell::Command(vec!["docker".into(), "exec".into(), "-i".into()]);
        assert_eq!(of(command.clone(), "b"), "docker exec -i b");
        assert_eq!(of(command, "localhost"), "docker exec -i localhost", "a command is always taken");
        assert!(of(RemoteShell::Slurm, "n1").starts_with("srun --nodes=1 --ntasks=1 --overlap"));
    }

    #[test]
    fn the_last_lines_of_a_remote_shell_are_quoted() {
        assert_eq!(last_lines(b"one\n\n two \nthree\r\nfour"), ": two, three, four");
        assert_eq!(last_lines(b" \n"), "");
    }

    #[test]
    fn words_for_a_remote_shell_are_quoted_where_they_have_to_be() {
        let of = |word: &str| quoted(OsStr::new(word), false).into_string().unwrap();
        assert_eq!(of("/opt/pelago-1.0/bin/pelago"), "/opt/pelago-1.0/bin/pelago");
        assert_eq!(of("/opt/my pelago"), "'/opt/my pelago'");
        assert_eq!(of("it's"), "'it'\\''s'");
        assert_eq!(of(""), "''");
        assert_eq!(quoted(OsStr::new("a b"), true), "a b");
    }
}
