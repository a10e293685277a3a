//! A host of the job: the remote shell that leads to its agent, and how far that has come.
//!
//! ```text
//! called --greeting--> greeted --all are: start sent--> running --its processes have ended--> dismissed
//!    `---------------------`-------------------------------`--end of the stream, silence, garbage--> lost
//! ```
//! Invariant: nothing here waits, but for the end of the remote shell when the job is over, and that for a
//! bounded time. The remote shell gets no word of the job but the path of the agent.

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

use super::frame::{Frames, Mail};
use super::poller::{Poller, Source};
use super::process::{End, Process, die_with_parent};
use super::{LaunchError, Machines, RemoteShell};

/// How much of the words of a remote shell is kept for the message about its failure.
const WORDS_MAX_BYTES: usize = 4 << 10;
/// How long a remote shell may take to end when its agent has nothing left to do, and again when it was sent
/// a signal.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long the end of the remote shell is waited for, to tell its status, when its stream has ended.
pub(super) const STATUS_LIMIT: Duration = Duration::from_secs(1);
/// Variables of Slurm that would shape the step of an agent.
const SHAPING: [&str; 6] = [
    "SLURM_NTASKS_PER_NODE",
    "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",
    "SLURM_EXACT",
    "SLURM_DISTRIBUTION",
    "SLURM_HINT",
];

/// How far the way to a host has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The remote shell was started.
    Called,
    /// The agent is there.
    Greeted,
    /// It was told to start its processes.
    Running,
    /// There is no way to it any more, or none is needed.
    Over,
}

/// A host with its remote shell.
pub(super) struct Host {
    /// Its number among the hosts of the job.
    number: usize,
    pub(super) name: String,
    /// The remote shell, without the command that it runs there, and the path of the agent in that.
    shell: String,
    agent: String,
    pub(super) processes: Range<usize>,
    pub(super) standing: Standing,
    pub(super) mail: Mail,
    pub(super) frames: Frames,
    /// When something was last heard from it, and when it was last asked whether it is there.
    pub(super) heard_at: Instant,
    pub(super) asked_at: Instant,
    /// When its stream ended.
    pub(super) ended_at: Option<Instant>,
    pub(super) end: Option<End>,
    /// The standard error of the remote shell before the agent was there.
    pub(super) words: Vec<u8>,
    to: Option<PipeWriter>,
    waits_for_room: bool,
    from: Option<PipeReader>,
    complaints: Option<PipeReader>,
    process: Process,
}

impl Host {
    /// Calls a host, by its number.
    pub(super) fn call(
        number: usize,
        name: &str,
        machines: &Machines,
        processes: Range<usize>,
        poller: &Poller,
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
        let (complaints, theirs_err) = io::pipe().map_err(failed)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(theirs_in).stdout(theirs_out).stderr(theirs_err).process_group(0);
        if machines.shell == RemoteShell::Slurm {
            for name in SHAPING {
                command.env_remove(name);
            }
        }
        // The agent hears the end of the stream; this ends a remote shell that has not come so far.
        die_with_parent(&mut command, Signal::TERM);
        let process = Process::start(&mut command, None).map_err(failed)?;
        // The ends of the remote shell are closed with it, so that their end is seen.
        drop(command);
        for pipe in [to.as_fd(), from.as_fd(), complaints.as_fd()] {
            rustix::io::ioctl_fionbio(pipe, true).map_err(|error| failed(error.into()))?;
        }
        let watch = poller
            .add(Source::Host(number), &from)
            .and_then(|()| poller.add(Source::Complaint(number), &complaints))
            .and_then(|()| poller.add(Source::ShellExit(number), &process));
        watch.map_err(|error| failed(error.into()))?;
        let agent =
            machines.agent.first().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let (name, mail, frames, now) = (name.to_owned(), Mail::default(), Frames::default(), Instant::now());
        Ok(Self {
            number,
            name,
            shell,
            agent,
            processes,
            standing: Standing::Called,
            mail,
            frames,
            heard_at: now,
            asked_at: now,
            ended_at: None,
            end: None,
            words: Vec::new(),
            to: Some(to),
            waits_for_room: false,
            from: Some(from),
            complaints: Some(complaints),
            process,
        })
    }

    /// Reads what the agent has sent, if it has; false at the end of the stream.
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

    /// Reads what the remote shell, or the agent, says to standard error.
    pub(super) fn complain(&mut self, poller: &Poller) -> Vec<u8> {
        let (mut all, mut bytes) = (Vec::new(), [0_u8; 4096]);
        while let Some(pipe) = &mut self.complaints {
            match pipe.read(&mut bytes) {
                Ok(count) if count > 0 => all.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => {
                    poller.remove(&*pipe);
                    self.complaints = None;
                }
            }
            if all.len() > WORDS_MAX_BYTES {
                break;
            }
        }
        all
    }

    /// Keeps words of the remote shell for the case that the agent does not come.
    pub(super) fn keep(&mut self, words: &[u8]) {
        self.words.extend_from_slice(words);
        let surplus = self.words.len().saturating_sub(WORDS_MAX_BYTES);
        self.words.drain(..surplus);
    }

    /// Sends the mail, as far as there is room.
    pub(super) fn flush(&mut self, poller: &Poller) {
        let Some(to) = &self.to else { return };
        // If nobody reads it the other stream ends too, and says so.
        let is_empty = self.mail.write_to(to).unwrap_or(true);
        if !is_empty && !self.waits_for_room {
            self.waits_for_room = poller.add_room(Source::HostRoom(self.number), to).is_ok();
        } else if is_empty && self.waits_for_room {
            poller.remove(to);
            self.waits_for_room = false;
        }
    }

    /// Ends the way to the agent, which ends what it may still have; the remote shell ends by itself then.
    pub(super) fn dismiss(&mut self, poller: &Poller) {
        if let Some(to) = self.to.take() {
            poller.remove(&to);
        }
        self.standing = Standing::Over;
    }

    /// Ends the way to the agent. Where there is none yet, only a signal ends the remote shell.
    pub(super) fn break_off(&mut self, poller: &Poller) {
        if self.standing == Standing::Called {
            self.end_shell();
        }
        self.dismiss(poller);
    }

    fn end_shell(&self) {
        self.process.signal(Signal::TERM);
        // A stopped process receives it too.
        self.process.signal(Signal::CONT);
    }

    /// Takes note of the end of the remote shell, if it has ended.
    pub(super) fn reap(&mut self, poller: &Poller) {
        if self.process.is_running()
            && let Some(end) = self.process.reap()
        {
            poller.remove(&self.process);
            self.end = Some(end);
            self.ended_at.get_or_insert_with(Instant::now);
        }
    }

    /// Whether all is known of a way that has ended: the stream, and the status of the remote shell.
    pub(super) fn is_at_end(&self) -> bool {
        self.ended_at
            .is_some_and(|at| self.from.is_none() && self.end.is_some() || at.elapsed() >= STATUS_LIMIT)
    }

    /// Waits for the end of a remote shell whose agent is dismissed, for a bounded time.
    pub(super) fn take_leave(&mut self, since: Instant) {
        // Nobody waits for room here any more.
        (self.from, self.complaints) = (None, None);
        self.wait_until(since + FAREWELL);
        if self.process.is_running() {
            self.end_shell();
            self.wait_until(since + 2 * FAREWELL);
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

    /// Why the way to the host has ended, and what to do.
    pub(super) fn loss(&self) -> String {
        let (shell, agent) = (&self.shell, &self.agent);
        let words = String::from_utf8_lossy(&self.words);
        let lines: Vec<_> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let said = match &lines[lines.len().saturating_sub(3)..] {
            [] => String::new(),
            last => format!(": {}", last.join(", ")),
        };
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

/// Whether the remote shell is Slurm's.
fn is_slurm(shell: &str) -> bool {
    shell.starts_with("srun ")
}

/// The remote shell and its options, with the host; nothing for this machine, which needs none.
fn shell_words(machines: &Machines, host: &str) -> Vec<OsString> {
    match &machines.shell {
        RemoteShell::Command(words) => words.iter().cloned().chain([host.into()]).collect(),
        RemoteShell::Ssh if is_this_machine(host) => Vec::new(),
        // No window system and no terminal; and no questions, which nobody could answer.
        RemoteShell::Ssh => ["ssh", "-x", "-T", "-o", "BatchMode=yes", host].map(OsString::from).to_vec(),
        // The agent shares the processors and the memory of the job, as the processes that it starts are all
        // there is; and its bytes pass when they are written.
        RemoteShell::Slurm => {
            let options =
                ["--nodes=1", "--ntasks=1", "--overlap", "--unbuffered", "--mpi=none", "--cpu-bind=none"];
            let words = ["srun"].into_iter().chain(options).chain(["--quiet", "-w", host]);
            words.map(OsString::from).collect()
        }
    }
}

/// Whether a host is this machine by its name.
fn is_this_machine(host: &str) -> bool {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    host == "localhost" || host == own || (!host.contains('.') && host == short(&own))
}

/// A word of the command for a remote shell, which runs it by a shell of its own; or as it `is_plain`.
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
    fn words_for_a_remote_shell_are_quoted_where_they_have_to_be() {
        let of = |word: &str| quoted(OsStr::new(word), false).into_string().unwrap();
        assert_eq!(of("/opt/pelago-1.0/bin/pelago"), "/opt/pelago-1.0/bin/pelago");
        assert_eq!(of("/opt/my pelago"), "'/opt/my pelago'");
        assert_eq!(of("it's"), "'it'\\''s'");
        assert_eq!(of(""), "''");
        assert_eq!(quoted(OsStr::new("a b"), true), "a b");
    }
}
