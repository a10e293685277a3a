//! Input from a terminal: passed to PE 0 through a pipe.
//!
//! Each PE is a process group of its own, so to the terminal all of them are in the background and none may
//! read from it; the launcher, in the foreground, reads for PE 0. (Standard input that is no terminal is
//! inherited by PE 0, and needs none of this.) Invariant: while the pipe is full, the terminal is not read,
//! so nothing is lost.

use std::io::{self, PipeReader, PipeWriter, Stdin, Write};

use rustix::io::Errno;

use super::poller::{Poller, Source};

/// The way from the terminal to PE 0.
pub(super) struct Input {
    terminal: Stdin,
    pipe: PipeWriter,
    waiting: Vec<u8>,
}

impl Input {
    /// Gives the way and the end of it that PE 0 reads.
    pub(super) fn open(poller: &Poller) -> io::Result<(Self, PipeReader)> {
        let (reader, pipe) = io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let terminal = io::stdin();
        poller.add(Source::Terminal, &terminal)?;
        Ok((Self { terminal, pipe, waiting: Vec::new() }, reader))
    }

    /// Takes what the terminal has; false when there will be no more.
    pub(super) fn read(&mut self, poller: &Poller) -> bool {
        let mut bytes = [0_u8; 4096];
        match rustix::io::read(&self.terminal, &mut bytes) {
            Ok(0) => return self.close(poller),
            Ok(count) => self.waiting.extend_from_slice(&bytes[..count]),
            Err(Errno::INTR | Errno::AGAIN) => return true,
            // The launcher was sent to the background, or the terminal is gone.
            Err(_) => return self.close(poller),
        }
        poller.remove(&self.terminal);
        poller.add_room(Source::Room, &self.pipe).is_ok()
    }

    /// Gives PE 0 what was read; false when it does not want any more.
    pub(super) fn write(&mut self, poller: &Poller) -> bool {
        match self.pipe.write(&self.waiting) {
            Ok(count) => drop(self.waiting.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return self.close(poller),
        }
        if !self.waiting.is_empty() {
            return true;
        }
        poller.remove(&self.pipe);
        poller.add(Source::Terminal, &self.terminal).is_ok()
    }

    fn close(&mut self, poller: &Poller) -> bool {
        poller.remove(&self.terminal);
        poller.remove(&self.pipe);
        false
    }
}
