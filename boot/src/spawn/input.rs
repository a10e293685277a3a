//! Input that the launcher reads for PE 0: a terminal, or, where PE 0 is on another host, whatever standard
//! input is.
//!
//! Each PE is a process group of its own, so to the terminal all of them are in the background and none may
//! read from it; the launcher, in the foreground, reads for PE 0. (Standard input that is no terminal is
//! inherited by a PE 0 of this machine, and needs none of this.) Invariant: while PE 0 takes nothing, no more
//! is read than a pipe holds, so nothing is lost.

use std::io::{self, PipeReader, PipeWriter, Stdin, Write};

use rustix::io::Errno;

use super::frame::{Frame, Mail, WINDOW_BYTES};
use super::poller::{Poller, Source};

/// The way from standard input to PE 0.
pub(super) struct Input {
    source: Stdin,
    /// Whether the system tells when there is something to read; of files it does not, as there always is.
    is_watchable: bool,
    sink: Sink,
}

enum Sink {
    Pipe {
        pipe: PipeWriter,
        waiting: Vec<u8>,
    },
    /// The mail of the first host, and how much the agent has room for.
    Agent {
        mail: Mail,
        room_bytes: usize,
    },
}

impl Input {
    /// Gives the way from the terminal, and the end of it that PE 0 reads.
    pub(super) fn open(poller: &Poller) -> io::Result<(Self, PipeReader)> {
        let (reader, pipe) = io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let source = io::stdin();
        poller.add(Source::Input, &source)?;
        let sink = Sink::Pipe { pipe, waiting: Vec::new() };
        Ok((Self { source, is_watchable: true, sink }, reader))
    }

    /// The way from standard input to the agent of the host of PE 0; `None` where all has been sent.
    pub(super) fn to_agent(mail: &Mail, poller: &Poller) -> Option<Self> {
        let source = io::stdin();
        let is_watchable = poller.add(Source::Input, &source).is_ok();
        let sink = Sink::Agent { mail: mail.clone(), room_bytes: WINDOW_BYTES };
        let mut input = Self { source, is_watchable, sink };
        (is_watchable || input.read(poller)).then_some(input)
    }

    /// Takes what standard input has; false when there will be no more.
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
                Sink::Agent { mail, room_bytes } => {
                    *room_bytes -= count;
                    mail.send(&Frame::Input(0, bytes[..count].to_vec()));
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

    /// Gives PE 0 what was read; false when it does not want any more.
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

    /// The agent has room for more; false when there will be no more, or it claims too much.
    pub(super) fn make_room(&mut self, count: usize, poller: &Poller) -> bool {
        let Sink::Agent { room_bytes, .. } = &mut self.sink else { return true };
        let was_full = *room_bytes == 0;
        *room_bytes = (*room_bytes + count).min(WINDOW_BYTES);
        if !self.is_watchable {
            return self.read(poller);
        }
        !was_full || *room_bytes == 0 || poller.add(Source::Input, &self.source).is_ok()
    }

    /// PE 0 reads no more.
    pub(super) fn close(&mut self, poller: &Poller) -> bool {
        poller.remove(&self.source);
        match &self.sink {
            Sink::Pipe { pipe, .. } => poller.remove(pipe),
            Sink::Agent { mail, .. } => mail.send(&Frame::Input(0, Vec::new())),
        }
        false
    }
}
