//! A process of this machine: how it is started, killed and reaped.
//!
//! Invariant: each process has its own process group, and is reaped only after the rest of its group has been
//! killed, so that the id of the group cannot have been reused. The process dies with the thread that started
//! it. A job has ended only when the rest of each group has, which takes a moment on a busy machine.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, PipeReader};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpgid, getpid, getppid, kill_process_group, pidfd_open,
    pidfd_send_signal, set_parent_process_death_signal, test_kill_process_group, waitid,
};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::pes::Pes;
use super::signals::{restore, take_terminal};
use super::tool::{ReadyTool, output_file};
use crate::process::stat_fields;

/// How long the kernel has to end the rest of the groups that were killed.
const REST_LIMIT: Duration = Duration::from_secs(1);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Exit(i32),
    Signal(i32),
}

/// A process that was started on this machine.
pub(super) struct Process {
    pid: Pid,
    handle: OwnedFd,
    reaped: bool,
    /// The rest of its group, which was killed when the process had ended, and had not ended then.
    rest: Vec<OwnedFd>,
    /// Our end of its PMI socket, until it closes its own.
    pub(super) socket: Option<OwnedFd>,
}

/// A program that is ready to start: its file, arguments and variables.
pub(super) struct Ready {
    /// The executable file.
    pub(super) file: PathBuf,
    /// The name that the user gave, and the arguments.
    pub(super) name: OsString,
    pub(super) args: Vec<OsString>,
    /// Variables to set, besides those of this process.
    pub(super) env: Vec<(OsString, OsString)>,
}

/// Where the output of processes goes.
pub(super) enum Output {
    /// To the streams of this process.
    Inherited,
    /// Through pipes to this process.
    Pipes,
    /// To files in this folder.
    Folder(PathBuf),
}

/// The settings that all processes of a job on this machine share.
pub(super) struct Starter {
    pub(super) programs: Vec<Ready>,
    /// The number of processes of the job.
    pub(super) size: usize,
    /// The processes that run on this machine.
    pub(super) here: Range<usize>,
    pub(super) pes_per_process: usize,
    /// Variables of this process that the started processes do not inherit.
    pub(super) without: Vec<OsString>,
    pub(super) output: Output,
    pub(super) tool: Option<ReadyTool>,
    /// The signal mask that the processes get.
    pub(super) mask: libc::sigset_t,
    /// The processors to bind to, in the order of the PEs; empty if PEs are not bound.
    pub(super) cpus: Vec<usize>,
}

/// The ends of the pipes into which a process writes its standard output and its standard error.
pub(super) type Pipes = (PipeReader, PipeReader);

impl Starter {
    /// Starts a process of one of the programs, with `input` as its standard input.
    pub(super) fn start(
        &self,
        process: usize,
        program: usize,
        input: Stdio,
    ) -> io::Result<(Process, Option<Pipes>)> {
        let kind = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, kind, None)?;
        let ready = &self.programs[program];
        let pes = Pes::of_process(process, self.pes_per_process);
        let tool = self.tool.as_ref().filter(|tool| tool.has(process));
        let mut command = match tool {
            Some(tool) => {
                let mut command = Command::new(&tool.file);
                command.args(tool.args_of(&pes)).arg(&ready.file);
                command
            }
            None => {
                let mut command = Command::new(&ready.file);
                command.arg0(&ready.name);
                command
            }
        };
        command.args(&ready.args).stdin(input).process_group(0);
        for name in &self.without {
            command.env_remove(name);
        }
        if !self.cpus.is_empty() {
            command.env("PELAGO_BIND", "on");
        }
        command.envs(ready.env.iter().map(|(key, value)| (key, value)));
        let (size, fd) = (self.size.to_string(), theirs.as_raw_fd().to_string());
        command.env("PMI_FD", fd).env("PMI_RANK", process.to_string()).env("PMI_SIZE", size);
        command.env("PMI_APPNUM", program.to_string());
        let (local, locals) = (process - self.here.start, self.here.len());
        command.env("MPI_LOCALRANKID", local.to_string()).env("MPI_LOCALNRANKS", locals.to_string());
        let has_terminal = tool.is_some_and(|tool| tool.has_terminal) && io::stdin().is_terminal();
        // A debugger at the terminal shows its prompt there, which is not a whole line.
        let pipes = match if has_terminal { &Output::Inherited } else { &self.output } {
            Output::Inherited => None,
            Output::Pipes => {
                let ((stdout, out), (stderr, err)) = (io::pipe()?, io::pipe()?);
                command.stdout(out).stderr(err);
                Some((stdout, stderr))
            }
            Output::Folder(folder) => {
                let file = |stream| {
                    let path = output_file(folder, &pes, stream);
                    let failed = |error: io::Error| format!("its output to {}: {error}", path.display());
                    File::create(&path).map_err(|error| io::Error::other(failed(error)))
                };
                command.stdout(file("out")?).stderr(file("err")?);
                None
            }
        };
        self.prepare(&mut command, local, theirs, has_terminal);
        Ok((Process::start(&mut command, Some(ours))?, pipes))
    }

    /// Sets the steps that the new process runs between fork and exec.
    fn prepare(&self, command: &mut Command, local: usize, theirs: OwnedFd, has_terminal: bool) {
        let mask = self.mask;
        let processors = (!self.cpus.is_empty()).then(|| {
            let mut set = CpuSet::new();
            let pes = (0..self.pes_per_process).map(|i| local * self.pes_per_process + i);
            pes.for_each(|pe| set.set(self.cpus[pe % self.cpus.len()]));
            set
        });
        let steps = move || {
            if let Some(set) = &processors {
                sched_setaffinity(None, set)?;
            }
            fcntl_setfd(&theirs, FdFlags::empty())?;
            if has_terminal {
                // The process has its own group already.
                take_terminal();
            }
            restore(&mask);
            Ok(())
        };
        die_with_parent(command, Signal::KILL);
        // SAFETY: between fork and exec the closure makes system calls only: it does not allocate, lock or
        // panic.
        unsafe { command.pre_exec(steps) };
    }
}

/// Makes the process that `command` starts receive a signal when the thread that starts it ends.
pub(super) fn die_with_parent(command: &mut Command, signal: Signal) {
    let parent = getpid();
    let step = move || {
        set_parent_process_death_signal(Some(signal))?;
        if getppid() != Some(parent) {
            // The parent died before the call above took effect.
            return Err(rustix::io::Errno::SRCH.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls only: it does not allocate, lock or panic.
    unsafe { command.pre_exec(step) };
}

/// Gives the process that `command` starts this signal mask.
pub(super) fn set_mask(command: &mut Command, mask: libc::sigset_t) {
    let step = move || {
        restore(&mask);
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes one system call, which is async-signal-safe.
    unsafe { command.pre_exec(step) };
}

impl Process {
    /// Starts a command that creates its own process group.
    pub(super) fn start(command: &mut Command, socket: Option<OwnedFd>) -> io::Result<Self> {
        let child = command.spawn()?;
        let pid = Pid::from_raw(child.id().cast_signed()).ok_or(rustix::io::Errno::CHILD)?;
        // The process is at worst a zombie: only this code reaps it, so its id has not been reused.
        let handle = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
        })?;
        Ok(Self { pid, handle, reaped: false, rest: Vec::new(), socket })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw_pid()
    }

    pub(super) fn is_running(&self) -> bool {
        !self.reaped
    }

    /// Sends a signal to the process and the rest of its group.
    pub(super) fn signal(&self, signal: Signal) {
        if !self.reaped {
            let _ = kill_process_group(self.pid, signal);
            // The process may have left the group for another one.
            if getpgid(Some(self.pid)) != Ok(self.pid) {
                let _ = pidfd_send_signal(&self.handle, signal);
            }
        }
    }

    /// Gives up a process that the kernel cannot kill.
    pub(super) fn abandon(&mut self) {
        self.reaped = true;
    }

    /// If the process has ended, kills the rest of its group and returns how the process ended. Does not
    /// wait.
    pub(super) fn reap(&mut self) -> Option<End> {
        let which = || WaitId::PidFd(self.handle.as_fd());
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = waitid(which(), look).ok()??;
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = waitid(which(), WaitIdOptions::EXITED);
        self.rest = members(self.pid);
        self.reaped = true;
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(End::Exit(code)),
            (None, Some(signal)) => Some(End::Signal(signal)),
            (None, None) => None,
        }
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Drop for Process {
    /// A process and its group do not outlive their launcher, even if the launcher fails during the start.
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if !self.reaped {
            // One that cannot be killed, such as a remote shell of another user, is left to the system.
            let limit = Timespec::try_from(REST_LIMIT).ok();
            let _ = poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], limit.as_ref());
            self.reap();
        }
        let deadline = Instant::now() + REST_LIMIT;
        for member in &self.rest {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(member, PollFlags::IN)];
            let _ = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
        }
    }
}

/// Handles of the processes of a group whose leader is gone. They are not children of this process.
fn members(group: Pid) -> Vec<OwnedFd> {
    if test_kill_process_group(group).is_err() {
        return Vec::new();
    }
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.flatten().filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    let members = pids.filter(|pid| group_of(*pid) == Some(group));
    members.filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect()
}

/// The group of any process. The system call would do, but threads of the kernel have a group 0, which its
/// wrapper refuses.
fn group_of(pid: Pid) -> Option<Pid> {
    let fields = stat_fields(pid.as_raw_pid().cast_unsigned())?;
    Pid::from_raw(fields.get(2)?.parse().ok()?)
}
