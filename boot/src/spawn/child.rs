//! A process with its PEs, one or several: its start, its end, and how it is killed.
//!
//! Invariant: it is a process group of its own, and is reaped only after the rest of its group has been
//! killed, so that the number of the group cannot have been given to somebody else. It dies with the thread
//! that started it.

use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process_group, pidfd_open,
    pidfd_send_signal, set_parent_process_death_signal, waitid,
};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::JobSpec;
use super::output::{Stream, Target};
use super::pes::Pes;
use super::signals::restore;
use crate::pmi::wire::Lines;
use crate::writer::Outlet;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Exit(i32),
    Signal(i32),
}

/// A process that was started.
pub(super) struct Child {
    pid: Pid,
    handle: OwnedFd,
    reaped: bool,
    /// Our end of its PMI socket, until it closes its own.
    pub(super) socket: Option<OwnedFd>,
    pub(super) lines: Lines,
    pub(super) stdout: Option<Stream>,
    pub(super) stderr: Option<Stream>,
    /// What it said before its death.
    pub(super) note: Option<String>,
    /// Whether it answers what its PEs wait for, and whether it was asked and has not.
    pub(super) hears: bool,
    pub(super) is_asked: bool,
}

/// What the start of every process of a job has in common.
pub(super) struct Starter<'a> {
    pub(super) spec: &'a JobSpec,
    pub(super) pes_per_process: usize,
    pub(super) program: &'a Path,
    /// The signal mask that the processes get.
    pub(super) mask: libc::sigset_t,
    /// The processors to bind to, in the order of the PEs, if those are bound.
    pub(super) cpus: Vec<usize>,
}

impl Starter<'_> {
    /// Starts a process, with `input` as its standard input.
    pub(super) fn start(&self, process: usize, input: Stdio) -> io::Result<Child> {
        let kind = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, kind, None)?;
        let mut command = Command::new(self.program);
        command.arg0(&self.spec.program).args(&self.spec.args).stdin(input).process_group(0);
        if self.spec.bind {
            command.env("PELAGO_BIND", "on");
        }
        command.envs(self.spec.env.iter().map(|(key, value)| (key, value)));
        let size = (self.spec.n / self.pes_per_process).to_string();
        let (rank, fd) = (process.to_string(), theirs.as_raw_fd().to_string());
        command.env("PMI_FD", fd).env("PMI_RANK", &rank).env("PMI_SIZE", &size);
        command.env("MPI_LOCALRANKID", &rank).env("MPI_LOCALNRANKS", &size);
        let (stdout, stderr) = self.redirect(&mut command, process)?;
        self.prepare(&mut command, process, theirs);
        let child = command.spawn()?;
        let pid = Pid::from_raw(child.id().cast_signed()).ok_or(rustix::io::Errno::CHILD)?;
        // The process is a zombie at worst: nobody but us reaps it, so its number is still its own.
        let handle = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
        })?;
        let (socket, lines, note) = (Some(ours), Lines::default(), None);
        let (hears, is_asked) = (false, false);
        Ok(Child { pid, handle, reaped: false, socket, lines, stdout, stderr, note, hears, is_asked })
    }

    fn redirect(
        &self,
        command: &mut Command,
        process: usize,
    ) -> io::Result<(Option<Stream>, Option<Stream>)> {
        let pes = Pes::of_process(process, self.pes_per_process);
        let (out, err) = match (self.spec.capture, self.spec.tag_output) {
            (true, _) => (Target::Report, Target::Report),
            (false, true) => (Target::Outlet(Outlet::Stdout), Target::Outlet(Outlet::Stderr)),
            (false, false) => return Ok((None, None)),
        };
        let pipe = |target| -> io::Result<(Stream, Stdio)> {
            let (reader, writer): (PipeReader, _) = io::pipe()?;
            Ok((Stream::new(reader, target, &pes)?, writer.into()))
        };
        let ((stdout, out), (stderr, err)) = (pipe(out)?, pipe(err)?);
        command.stdout(out).stderr(err);
        Ok((Some(stdout), Some(stderr)))
    }

    /// Arranges what happens in the new process before it becomes the program.
    fn prepare(&self, command: &mut Command, process: usize, theirs: OwnedFd) {
        let launcher = getpid();
        let mask = self.mask;
        let processors = (!self.cpus.is_empty()).then(|| {
            let mut set = CpuSet::new();
            let pes = (0..self.pes_per_process).map(|i| process * self.pes_per_process + i);
            pes.for_each(|pe| set.set(self.cpus[pe % self.cpus.len()]));
            set
        });
        let steps = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(launcher) {
                // The launcher died before the line above took hold.
                return Err(rustix::io::Errno::SRCH.into());
            }
            if let Some(set) = &processors {
                sched_setaffinity(None, set)?;
            }
            fcntl_setfd(&theirs, FdFlags::empty())?;
            restore(&mask);
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls only: it does not allocate, lock or
        // panic.
        unsafe { command.pre_exec(steps) };
    }
}

impl Child {
    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw_pid()
    }

    /// Its two streams, as far as they are still open.
    pub(super) fn streams(&mut self) -> impl Iterator<Item = &mut Stream> {
        [&mut self.stdout, &mut self.stderr].into_iter().flatten()
    }

    pub(super) fn is_running(&self) -> bool {
        !self.reaped
    }

    /// Sends a signal to the process and to whatever else is in its group.
    pub(super) fn signal(&self, signal: Signal) {
        if !self.reaped {
            // The group may be empty, if the process has made one of its own; then the process itself is
            // still meant.
            let _ = kill_process_group(self.pid, signal);
            let _ = pidfd_send_signal(&self.handle, signal);
        }
    }

    /// Gives the process up; for one that the kernel cannot kill.
    pub(super) fn abandon(&mut self) {
        self.reaped = true;
    }

    /// If the process has ended: kills what is left of its group, and says how it ended. Does not wait.
    pub(super) fn reap(&mut self) -> Option<End> {
        self.reap_with(WaitIdOptions::NOHANG)
    }

    fn reap_with(&mut self, waiting: WaitIdOptions) -> Option<End> {
        let which = || WaitId::PidFd(self.handle.as_fd());
        let status = waitid(which(), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | waiting).ok()??;
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = waitid(which(), WaitIdOptions::EXITED);
        self.reaped = true;
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(End::Exit(code)),
            (None, Some(signal)) => Some(End::Signal(signal)),
            (None, None) => None,
        }
    }
}

impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Drop for Child {
    /// A process does not outlive its launcher, also where the launcher gives up half way.
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if !self.reaped {
            self.reap_with(WaitIdOptions::empty());
        }
    }
}
