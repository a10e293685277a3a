//! Poller: the events that the launcher waits for, as one epoll set.
//!
//! Invariant: a descriptor is removed before it is closed. A child that is being forked may hold a copy of it
//! for a moment, which epoll would continue to report.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::{Errno, Result};

/// The source of an event. Events that arrive together are handled in this order: messages of a process
/// before its exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// A signal to the launcher.
    Signal,
    /// A writer of the launcher's output has room again, has finished, or has failed.
    Outlet,
    /// The PMI socket of a process.
    Pmi(usize),
    /// The standard output of a process.
    Stdout(usize),
    /// The standard error of a process.
    Stderr(usize),
    /// The end of a process.
    Exit(usize),
    /// Standard input has data.
    Input,
    /// The standard input of a process has room.
    Room(usize),
    /// The agent of a host has sent something.
    Host(usize),
    /// The connection to the agent of a host has room.
    HostRoom(usize),
    /// The remote shell of a host has written to standard error.
    ShellErrors(usize),
    /// The remote shell of a host has ended.
    ShellExit(usize),
    /// Another command wants to ask about the job.
    Door,
    /// That command has sent its question.
    Client(usize),
}

impl Source {
    fn data(self) -> epoll::EventData {
        let (kind, number) = match self {
            Self::Signal => (0, 0),
            Self::Pmi(process) => (1, process),
            Self::Stdout(process) => (2, process),
            Self::Stderr(process) => (3, process),
            Self::Exit(process) => (4, process),
            Self::Input => (5, 0),
            Self::Room(process) => (6, process),
            Self::Outlet => (7, 0),
            Self::Host(host) => (8, host),
            Self::HostRoom(host) => (9, host),
            Self::ShellErrors(host) => (10, host),
            Self::ShellExit(host) => (11, host),
            Self::Door => (12, 0),
            Self::Client(client) => (13, client),
        };
        epoll::EventData::new_u64(kind << 32 | number as u64)
    }

    fn of(data: epoll::EventData) -> Self {
        let (kind, number) = (data.u64() >> 32, (data.u64() & 0xffff_ffff) as usize);
        match kind {
            0 => Self::Signal,
            1 => Self::Pmi(number),
            2 => Self::Stdout(number),
            3 => Self::Stderr(number),
            4 => Self::Exit(number),
            5 => Self::Input,
            6 => Self::Room(number),
            8 => Self::Host(number),
            9 => Self::HostRoom(number),
            10 => Self::ShellErrors(number),
            11 => Self::ShellExit(number),
            12 => Self::Door,
            13 => Self::Client(number),
            _ => Self::Outlet,
        }
    }
}

/// The set of watched descriptors.
pub(super) struct Poller {
    fd: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poller {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { fd: epoll::create(epoll::CreateFlags::CLOEXEC)?, events: Vec::with_capacity(256) })
    }

    /// The descriptor that becomes readable when an event occurs.
    pub(super) fn wait_descriptor(&self) -> &OwnedFd {
        &self.fd
    }

    /// Watches a descriptor for input, and for the end of it.
    pub(super) fn add(&self, source: Source, fd: impl AsFd) -> Result<()> {
        epoll::add(&self.fd, fd, source.data(), epoll::EventFlags::IN)
    }

    /// Watches a descriptor for room to write.
    pub(super) fn add_room(&self, source: Source, fd: impl AsFd) -> Result<()> {
        epoll::add(&self.fd, fd, source.data(), epoll::EventFlags::OUT)
    }

    /// Stops watching a descriptor; to be called before it is closed.
    pub(super) fn remove(&self, fd: impl AsFd) {
        // The call fails only if the descriptor is not watched, which is the desired state.
        let _ = epoll::delete(&self.fd, fd);
    }

    /// Waits for events, at most for `limit`, and appends their sources to `found`, in order.
    pub(super) fn wait(&mut self, limit: Option<Duration>, found: &mut Vec<Source>) -> Result<()> {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        self.events.clear();
        match epoll::wait(&self.fd, spare_capacity(&mut self.events), limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        found.extend(self.events.iter().map(|event| Source::of(event.data)));
        found.sort_unstable();
        Ok(())
    }
}
