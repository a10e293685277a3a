//! Input that the launcher reads for processes: from a terminal, for several processes, or, for processes of
//! other hosts, from any standard input.
//!
//! Each process is a process group of its own, so to the terminal all of them are in the background and none
//! may read from it; the launcher, in the foreground, reads for them. (Standard input that is no terminal is
//! inherited by the one process of this machine that reads it, and needs none of this.) Invariant: while one
//! of the processes does not read, the launcher reads no more than a pipe holds, so no input is lost, and
//! every process gets all of it. No read blocks, although other programs may read the same terminal or pipe.

use std::io::{self, PipeReader, PipeWriter, Write};

use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;

use super::frame::{Frame, SendQueue, WINDOW_BYTES};
use super::poller::{Poller, Source};

/// The connection of standard input to the processes that read it.
pub(super) struct Input {
    source: Box<dyn AsFd>,
    /// Whether epoll can watch standard input; it cannot watch regular files, which are always readable.
    is_watchable: bool,
    is_watched: bool,
    sinks: Vec<Sink>,
}

/// A process that reads.
struct Sink {
    process: usize,
    way: Way,
}

enum Way {
    Pipe {
        pipe: PipeWriter,
        waiting: Vec<u8>,
    },
    /// The frame queue of the host of the process, and the number of bytes that its agent has room for.
    Agent {
        queue: SendQueue,
        room_bytes: usize,
    },
}

impl Sink {
    /// The number of bytes that it can take.
    fn room_bytes(&self) -> usize {
        match &self.way {
            Way::Pipe { waiting, .. } if waiting.is_empty() => usize::MAX,
            Way::Pipe { .. } => 0,
            Way::Agent { room_bytes, .. } => *room_bytes,
        }
    }
}

/// Standard input. A terminal or a pipe is opened again, so that its reads do not block: what the launcher is
/// woken for may be taken by another reader, such as `less`.
fn standard_input() -> Box<dyn AsFd> {
    let kind = fstat(io::stdin()).map(|status| FileType::from_raw_mode(status.st_mode));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    match kind {
        Ok(FileType::CharacterDevice | FileType::Fifo) => {
            match open("/proc/self/fd/0", flags, Mode::empty()) {
                Ok(own) => Box::new(own),
                Err(_) => Box::new(io::stdin()),
            }
        }
        _ => Box::new(io::stdin()),
    }
}

impl Input {
    /// Standard input, with no reader yet.
    pub(super) fn new() -> Self {
        Self { source: standard_input(), is_watchable: true, is_watched: false, sinks: Vec::new() }
    }

    /// Connects a process of this machine; returns the end of the pipe that it reads.
    pub(super) fn add_pipe(&mut self, process: usize) -> io::Result<PipeReader> {
        let (reader, pipe) = io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        self.sinks.push(Sink { process, way: Way::Pipe { pipe, waiting: Vec::new() } });
        Ok(reader)
    }

    /// Connects a process of another host.
    pub(super) fn add_agent(&mut self, process: usize, queue: &SendQueue) {
        let way = Way::Agent { queue: queue.clone(), room_bytes: WINDOW_BYTES };
        self.sinks.push(Sink { process, way });
    }

    /// Begins to read, when all readers are connected; false if nothing is left to read.
    pub(super) fn start(&mut self, poller: &Poller) -> bool {
        self.is_watchable = poller.add(Source::Input, &self.source).is_ok();
        self.is_watched = self.is_watchable;
        self.go_on(poller)
    }

    /// Reads from standard input; false at its end.
    pub(super) fn read(&mut self, poller: &Poller) -> bool {
        self.pass(poller) && self.go_on(poller)
    }

    /// Reads, or waits for standard input, if all readers have room; false at the end.
    fn go_on(&mut self, poller: &Poller) -> bool {
        loop {
            if self.sinks.is_empty() {
                return self.close(poller);
            }
            let is_full = self.sinks.iter().any(|sink| sink.room_bytes() == 0);
            if is_full || self.is_watchable {
                if is_full && self.is_watched {
                    poller.remove(&self.source);
                    self.is_watched = false;
                } else if !is_full && !self.is_watched {
                    self.is_watched = true;
                    return poller.add(Source::Input, &self.source).is_ok() || self.close(poller);
                }
                return true;
            }
            if !self.pass(poller) {
                return false;
            }
        }
    }

    /// Reads once, and passes the bytes to all readers; false at the end.
    fn pass(&mut self, poller: &Poller) -> bool {
        let mut bytes = [0_u8; 4096];
        let room = self.sinks.iter().map(Sink::room_bytes).min().unwrap_or(0);
        let most = room.min(bytes.len());
        if most == 0 {
            return true;
        }
        let count = match rustix::io::read(&self.source, &mut bytes[..most]) {
            Ok(0) => return self.close(poller),
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return true,
            // The launcher was sent to the background, or the terminal is gone.
            Err(_) => return self.close(poller),
        };
        self.sinks.retain_mut(|sink| match &mut sink.way {
            Way::Pipe { pipe, waiting } => {
                waiting.extend_from_slice(&bytes[..count]);
                poller.add_room(Source::Room(sink.process), pipe).is_ok()
            }
            Way::Agent { queue, room_bytes } => {
                *room_bytes -= count;
                queue.send(&Frame::Input(sink.process, bytes[..count].to_vec()));
                true
            }
        });
        true
    }

    /// Writes the data to a process of this machine; false if nobody reads any more.
    pub(super) fn write(&mut self, process: usize, poller: &Poller) -> bool {
        let Some(at) = self.sinks.iter().position(|sink| sink.process == process) else { return true };
        let Way::Pipe { pipe, waiting } = &mut self.sinks[at].way else { return true };
        let is_open = match pipe.write(waiting) {
            Ok(count) => {
                waiting.drain(..count);
                true
            }
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        };
        if !is_open || waiting.is_empty() {
            poller.remove(&*pipe);
        }
        if !is_open {
            self.sinks.remove(at);
        }
        self.go_on(poller)
    }

    /// Handles the message of an agent that it has room for more input of a process; false at the end.
    pub(super) fn make_room(&mut self, process: usize, count: usize, poller: &Poller) -> bool {
        for sink in self.sinks.iter_mut().filter(|sink| sink.process == process) {
            if let Way::Agent { room_bytes, .. } = &mut sink.way {
                *room_bytes = (*room_bytes + count).min(WINDOW_BYTES);
            }
        }
        self.go_on(poller)
    }

    /// Handles the message of an agent that a process reads no more; false if no other process does.
    pub(super) fn leave(&mut self, process: usize, poller: &Poller) -> bool {
        self.sinks.retain(|sink| sink.process != process);
        self.go_on(poller)
    }

    /// Closes the connection: nothing is left to read, or nobody reads.
    fn close(&mut self, poller: &Poller) -> bool {
        if self.is_watched {
            poller.remove(&self.source);
            self.is_watched = false;
        }
        for sink in &self.sinks {
            match &sink.way {
                Way::Pipe { pipe, .. } => poller.remove(pipe),
                Way::Agent { queue, .. } => queue.send(&Frame::Input(sink.process, Vec::new())),
            }
        }
        self.sinks.clear();
        false
    }
}
