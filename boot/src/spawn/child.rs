//! A process of the job, as the launcher deals with it: one of this machine, or one that the agent of another
//! host has started.
//!
//! Invariant: what is asked of a process of another host goes into the mail of the host, in order, and is
//! never waited for.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::Signal;

use super::frame::{Frame, Mail};
use super::output::Stream;
use super::process::Process;
use crate::pmi::wire::Lines;
use crate::process::{ProcessState, process_state};

/// The outcome of sending a line to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Yes,
    /// It has died, or closed its end.
    Gone,
    /// It does not read what it is sent.
    Full,
}

/// A process of the job.
pub(super) struct Child {
    place: Place,
    /// PMI-1 input that is not a whole line yet.
    pub(super) lines: Lines,
    pub(super) stdout: Option<Stream>,
    pub(super) stderr: Option<Stream>,
    /// What it said before its death.
    pub(super) note: Option<String>,
    /// Whether it answers what its PEs wait for, and whether it was asked and has not.
    pub(super) hears: bool,
    pub(super) is_asked: bool,
}

enum Place {
    Here(Process),
    There(Remote),
}

/// A process that the agent of another host has started, or is to start.
pub(super) struct Remote {
    pub(super) mail: Mail,
    /// The number of the process in the job.
    pub(super) process: usize,
    /// The number of the host.
    pub(super) host: usize,
    /// Its number on its host; 0 before it has been started.
    pub(super) pid: i32,
    pub(super) is_running: bool,
    /// Whether its PMI socket is open.
    pub(super) speaks: bool,
    /// The state of the process, if its agent has reported it since it was asked.
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

    /// The host that it runs on, if that is another.
    pub(super) fn host(&self) -> Option<usize> {
        match &self.place {
            Place::Here(_) => None,
            Place::There(remote) => Some(remote.host),
        }
    }

    /// Its number on its machine.
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

    /// Sends it a line of PMI-1.
    pub(super) fn tell(&self, line: &str) -> Told {
        match &self.place {
            Place::Here(Process { socket: None, .. }) => Told::Gone,
            Place::Here(Process { socket: Some(socket), .. }) => {
                match send(socket, line.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                    Ok(count) if count == line.len() => Told::Yes,
                    Err(Errno::PIPE | Errno::CONNRESET) => Told::Gone,
                    _ => Told::Full,
                }
            }
            Place::There(remote) if !remote.speaks => Told::Gone,
            Place::There(remote) => {
                remote.mail.send_bytes(line.as_bytes(), |bytes| Frame::Pmi(remote.process, bytes));
                Told::Yes
            }
        }
    }

    /// Its two streams, as far as they are still open.
    pub(super) fn streams(&mut self) -> impl Iterator<Item = &mut Stream> {
        [&mut self.stdout, &mut self.stderr].into_iter().flatten()
    }

    /// Whether it runs, or is still to be started.
    pub(super) fn is_running(&self) -> bool {
        match &self.place {
            Place::Here(process) => process.is_running(),
            Place::There(remote) => remote.is_running,
        }
    }

    /// Sends a signal to the process and to whatever else is in its group.
    pub(super) fn signal(&self, signal: Signal) {
        match &self.place {
            Place::Here(process) => process.signal(signal),
            Place::There(remote) if remote.is_running => {
                remote.mail.send(&Frame::Signal(remote.process, signal.as_raw()));
            }
            Place::There(_) => {}
        }
    }

    /// Gives the process up: nobody can end it, or its host is lost.
    pub(super) fn abandon(&mut self) {
        match &mut self.place {
            Place::Here(process) => process.abandon(),
            Place::There(remote) => {
                (remote.is_running, remote.speaks) = (false, false);
                (self.stdout, self.stderr) = (None, None);
            }
        }
    }

    /// Asks the agent of another host what the process does; of one of this machine it is known.
    pub(super) fn look(&mut self) {
        if let Place::There(remote) = &mut self.place {
            remote.state = None;
            if remote.is_running {
                remote.mail.send(&Frame::State(remote.process, 0));
            }
        }
    }

    /// Whether the agent of its host has still to say what it does.
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
