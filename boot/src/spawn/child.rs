//! A process of the job in the launcher: a process of this machine, or one that the agent of another host has
//! started.
//!
//! Invariant: requests to a process of another host go into the frame queue of that host, in order, and the
//! launcher never waits for them.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::Signal;

use super::frame::{Frame, SendQueue};
use super::output::Stream;
use super::process::Process;
use crate::pmi::wire::Lines;
use crate::process::{ProcessState, process_state};

/// The outcome of sending a line to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Yes,
    /// The process has ended, or closed its end.
    Gone,
    /// The process does not read its socket, which is full.
    Full,
}

/// A process of the job.
pub(super) struct Child {
    place: Place,
    /// PMI-1 input that is not a complete line yet.
    pub(super) lines: Lines,
    pub(super) stdout: Option<Stream>,
    pub(super) stderr: Option<Stream>,
    /// The last note of the process.
    pub(super) note: Option<String>,
    /// Whether the process replies when asked what its PEs wait for, and whether a reply is due.
    pub(super) hears: bool,
    pub(super) is_asked: bool,
}

enum Place {
    Here(Process),
    There(Remote),
}

/// A process that the agent of another host has started, or is to start.
pub(super) struct Remote {
    pub(super) queue: SendQueue,
    /// The number of the process in the job.
    pub(super) process: usize,
    /// The number of the host.
    pub(super) host: usize,
    /// The process id on its host; 0 before it has been started.
    pub(super) pid: i32,
    pub(super) is_running: bool,
    /// Whether its PMI socket is open.
    pub(super) speaks: bool,
    /// The state of the process, if the agent has reported it since the last request.
    pub(super) state: Option<ProcessState>,
}

impl Child {
    /// A process of this machine.
    pub(super) fn here(process: Process, streams: (Option<Stream>, Option<Stream>)) -> Self {
        Self::of(Place::Here(process), streams)
    }

    /// A process of another host.
    pub(super) fn there(remote: Remote, streams: (Option<Stream>, Option<Stream>)) -> Self {
        Self::of(Place::There(remote), streams)
    }

    fn of(place: Place, (stdout, stderr): (Option<Stream>, Option<Stream>)) -> Self {
        let (lines, note) = (Lines::default(), None);
        Self { place, lines, stdout, stderr, note, hears: false, is_asked: false }
    }

    /// The process, if it is one of this machine.
    pub(super) fn process(&mut self) -> Option<&mut Process> {
        match &mut self.place {
            Place::Here(process) => Some(process),
            Place::There(_) => None,
        }
    }

    /// The process, if it is one of another host.
    pub(super) fn remote(&mut self) -> Option<&mut Remote> {
        match &mut self.place {
            Place::Here(_) => None,
            Place::There(remote) => Some(remote),
        }
    }

    /// The host of the process, unless it is this machine.
    pub(super) fn host(&self) -> Option<usize> {
        match &self.place {
            Place::Here(_) => None,
            Place::There(remote) => Some(remote.host),
        }
    }

    /// The process id on its machine.
    pub(super) fn pid(&self) -> i32 {
        match &self.place {
            Place::Here(process) => process.pid(),
            Place::There(remote) => remote.pid,
        }
    }

    /// Its PMI socket, if it is a process of this machine and has not closed its end.
    pub(super) fn socket(&self) -> Option<&OwnedFd> {
        match &self.place {
            Place::Here(process) => process.socket.as_ref(),
            Place::There(_) => None,
        }
    }

    /// Sends a line of PMI-1 to the process.
    pub(super) fn send(&self, line: &str) -> Sent {
        match &self.place {
            Place::Here(Process { socket: None, .. }) => Sent::Gone,
            Place::Here(Process { socket: Some(socket), .. }) => {
                match send(socket, line.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                    Ok(count) if count == line.len() => Sent::Yes,
                    Err(Errno::PIPE | Errno::CONNRESET) => Sent::Gone,
                    _ => Sent::Full,
                }
            }
            Place::There(remote) if !remote.speaks => Sent::Gone,
            Place::There(remote) => {
                remote.queue.send_bytes(line.as_bytes(), |bytes| Frame::Pmi(remote.process, bytes));
                Sent::Yes
            }
        }
    }

    /// The streams of the process that are still open.
    pub(super) fn streams(&mut self) -> impl Iterator<Item = &mut Stream> {
        [&mut self.stdout, &mut self.stderr].into_iter().flatten()
    }

    /// Whether the process runs, or has not been started yet.
    pub(super) fn is_running(&self) -> bool {
        match &self.place {
            Place::Here(process) => process.is_running(),
            Place::There(remote) => remote.is_running,
        }
    }

    /// Sends a signal to the process and the rest of its group.
    pub(super) fn signal(&self, signal: Signal) {
        match &self.place {
            Place::Here(process) => process.signal(signal),
            Place::There(remote) if remote.is_running => {
                remote.queue.send(&Frame::Signal(remote.process, signal.as_raw()));
            }
            Place::There(_) => {}
        }
    }

    /// Gives the process up: it cannot be killed, or its host is lost.
    pub(super) fn abandon(&mut self) {
        match &mut self.place {
            Place::Here(process) => process.abandon(),
            Place::There(remote) => {
                (remote.is_running, remote.speaks) = (false, false);
                (self.stdout, self.stderr) = (None, None);
            }
        }
    }

    /// Asks the agent of another host for the state of the process; for a process of this machine, `/proc`
    /// tells it.
    pub(super) fn look(&mut self) {
        if let Place::There(remote) = &mut self.place {
            remote.state = None;
            if remote.is_running {
                remote.queue.send(&Frame::State(remote.process, 0));
            }
        }
    }

    /// Whether the agent of its host has not reported the state yet.
    pub(super) fn is_unseen(&self) -> bool {
        matches!(&self.place, Place::There(remote) if remote.is_running && remote.state.is_none())
    }

    /// The state that the system shows; `None` if its host has not reported it.
    pub(super) fn state(&self) -> Option<ProcessState> {
        match &self.place {
            _ if !self.is_running() => Some(ProcessState::Gone),
            Place::Here(process) => {
                u32::try_from(process.pid()).map_or(Some(ProcessState::Gone), |pid| Some(process_state(pid)))
            }
            Place::There(remote) => remote.state,
        }
    }
}
