//! Input that the launcher reads for PE 0: from a terminal, or, if PE 0 is on another host, from any standard
//! input.
//!
//! Each PE is a process group of its own, so to the terminal all of them are in the background and none may
//! read from it; the launcher, in the foreground, reads for PE 0. (Standard input that is no terminal is
//! inherited by a PE 0 of this machine, and needs none of this.) Invariant: while PE 0 does not read, the
//! launcher reads no more than a pipe holds, so no input is lost.

use std::io::{self, PipeReader, PipeWriter, Stdin, Write};

use rustix::io::Errno;

use super::frame::{Frame, SendQueue, WINDOW_BYTES};
use super::poller::{Poller, Source};

/// The connection of standard input to PE 0.
pub(super) struct Input {
    source: Stdin,
    /// Whether epoll can watch standard input; it cannot watch regular files, which are always readable.
    is_watchable: bool,
    sink: Sink,
}

enum Sink {
    Pipe {
        pipe: PipeWriter,
        waiting: Vec<u8>,
    },
    /// The frame queue of the first host, and the number of bytes that its agent has room for.
    Agent {
        queue: SendQueue,
        room_bytes: usize,
    },
}

impl Input {
    /// Connects the terminal to a pipe; returns the connection and the end that PE 0 reads.
    pub(super) fn open(poller: &Poller) -> io::Result<(Self, PipeReader)> {
        let (reader, pipe) = io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let source = io::stdin();
        poller.add(Source::Input, &source)?;
        let sink = Sink::Pipe { pipe, waiting: Vec::new() };
        Ok((Self { source, is_watchable: true, sink }, reader))
    }

    /// Connects standard input to the agent of the host of PE 0; `None` if all of it has been sent.
    pub(super) fn to_agent(queue: &SendQueue, poller: &Poller) -> Option<Self> {
        let source = io::stdin();
        let is_watchable = poller.add(Source::Input, &source).is_ok();
        let sink = Sink::Agent { queue: queue.clone(), room_bytes: WINDOW_BYTES };
        let mut input = Self { source, is_watchable, sink };
        (is_watchable || input.read(poller)).then_some(input)
    }

    /// Reads from standard input; false at its end.
    pub(super) fn read(&mut self, poller: &Poller) -> bool {
        let mut bytes = [0_u8; 4096];
        loop {
            let most = match &self.sink {
                Sink::Pipe { .. } => bytes.len(),
                Sink::Agent { room_bytes: 0, .. } => return true,
                Sink::Agent { room_bytes, .. } => bytes.len().min(*room_bytes),
            };
            let count = match rustix::io::read(&self.source, &mut bytes[..most]) {
                Ok(0) => return self.close(poller),
                Ok(count) => count,
                Err(Errno::INTR | Errno::AGAIN) => return true,
                // The launcher was sent to the background, or the terminal is gone.
                Err(_) => return self.close(poller),
            };
            match &mut self.sink {
                Sink::Pipe { pipe, waiting } => {
                    waiting.extend_from_slice(&bytes[..count]);
                    poller.remove(&self.source);
                    return poller.add_room(Source::Room, pipe).is_ok();
                }
                Sink::Agent { queue, room_bytes } => {
                    *room_bytes -= count;
                    queue.send(&Frame::Input(0, bytes[..count].to_vec()));
                    if *room_bytes == 0 {
                        poller.remove(&self.source);
                    }
                    if self.is_watchable {
                        return true;
                    }
                }
            }
        }
    }

    /// Writes the data to PE 0; false if PE 0 reads no more.
    pub(super) fn write(&mut self, poller: &Poller) -> bool {
        let Sink::Pipe { pipe, waiting } = &mut self.sink else { return true };
        match pipe.write(waiting) {
            Ok(count) => drop(waiting.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return self.close(poller),
        }
        if !waiting.is_empty() {
            return true;
        }
        poller.remove(&*pipe);
        poller.add(Source::Input, &self.source).is_ok()
    }

    /// Handles the agent's message that it has room for more; false at the end of the input, or if the agent
    /// claims too much room.
    pub(super) fn make_room(&mut self, count: usize, poller: &Poller) -> bool {
        let Sink::Agent { room_bytes, .. } = &mut self.sink else { return true };
        let was_full = *room_bytes == 0;
        *room_bytes = (*room_bytes + count).min(WINDOW_BYTES);
        if !self.is_watchable {
            return self.read(poller);
        }
        !was_full || *room_bytes == 0 || poller.add(Source::Input, &self.source).is_ok()
    }

    /// Closes the connection: PE 0 reads no more.
    pub(super) fn close(&mut self, poller: &Poller) -> bool {
        poller.remove(&self.source);
        match &self.sink {
            Sink::Pipe { pipe, .. } => poller.remove(pipe),
            Sink::Agent { queue, .. } => queue.send(&Frame::Input(0, Vec::new())),
        }
        false
    }
}
