//! Output of processes that passes through the launcher: kept for the report, or passed on in whole lines
//! with the numbers of the process's PEs before each.
//!
//! Invariant: a read never waits. A line goes out in one write, so lines of different processes do not mix;
//! one that is longer than 64 KiB is cut.

use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use super::pes::Pes;

/// A line that is longer than this is passed on in pieces.
const LINE_MAX_BYTES: usize = 64 << 10;

/// Where the output of a process ends up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// In the report.
    Report,
    /// On the standard output of the launcher.
    Stdout,
    /// On the standard error of the launcher.
    Stderr,
}

/// One stream of one process.
#[derive(Debug)]
pub(super) struct Stream {
    pipe: PipeReader,
    target: Target,
    tag: String,
    held: Vec<u8>,
}

impl Stream {
    /// Takes the reading end of a pipe, and makes it one that does not wait.
    pub(super) fn new(pipe: PipeReader, target: Target, pes: &Pes) -> std::io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe, target, tag: format!("[{}] ", pes.numbers()), held: Vec::new() })
    }

    /// Reads what is there; false at the end of the stream, or if nobody takes the output any more.
    pub(super) fn read(&mut self) -> bool {
        let mut bytes = [0_u8; 16 << 10];
        loop {
            match self.pipe.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.held.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return error.kind() == std::io::ErrorKind::WouldBlock && self.pass_on(false);
                }
            }
            if !self.pass_on(false) {
                return false;
            }
        }
    }

    /// Ends the stream; gives what was kept for the report.
    pub(super) fn finish(mut self) -> Vec<u8> {
        // If the pipe is still open, some process outside the job holds it; what that writes later is
        // nobody's.
        let _ = self.read();
        self.pass_on(true);
        self.held
    }

    /// Passes complete lines on, and the incomplete one too if it is the `last`; false if nobody takes them.
    fn pass_on(&mut self, last: bool) -> bool {
        if self.target == Target::Report {
            return true;
        }
        let lines = take_lines(&mut self.held, &self.tag, last);
        let written = match self.target {
            _ if lines.is_empty() => Ok(()),
            Target::Stderr => std::io::stderr().lock().write_all(&lines),
            _ => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(&lines).and_then(|()| stdout.flush())
            }
        };
        written.is_ok()
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Takes the complete lines out of `held`, each with `tag` before it.
fn take_lines(held: &mut Vec<u8>, tag: &str, last: bool) -> Vec<u8> {
    let whole = held.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let end = if last || held.len() - whole > LINE_MAX_BYTES { held.len() } else { whole };
    let mut lines = Vec::with_capacity(end + tag.len());
    for line in held[..end].split_inclusive(|byte| *byte == b'\n') {
        lines.extend_from_slice(tag.as_bytes());
        lines.extend_from_slice(line);
    }
    if lines.last().is_some_and(|byte| *byte != b'\n') {
        lines.push(b'\n');
    }
    held.drain(..end);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(held: &str, last: bool) -> (String, String) {
        let mut held = held.as_bytes().to_vec();
        let lines = take_lines(&mut held, "[3] ", last);
        (String::from_utf8(lines).unwrap(), String::from_utf8(held).unwrap())
    }

    fn texts(lines: &str, held: &str) -> (String, String) {
        (lines.to_owned(), held.to_owned())
    }

    #[test]
    fn only_whole_lines_pass() {
        assert_eq!(taken("", false), texts("", ""));
        assert_eq!(taken("half", false), texts("", "half"));
        assert_eq!(taken("one\ntwo\nhalf", false), texts("[3] one\n[3] two\n", "half"));
        assert_eq!(taken("\n\n", false), texts("[3] \n[3] \n", ""));
    }

    #[test]
    fn the_last_line_passes_with_a_newline() {
        assert_eq!(taken("one\nhalf", true), texts("[3] one\n[3] half\n", ""));
        assert_eq!(taken("", true), texts("", ""));
    }

    #[test]
    fn an_endless_line_is_cut() {
        let long = "x".repeat(LINE_MAX_BYTES + 1);
        assert_eq!(taken(&long, false), texts(&format!("[3] {long}\n"), ""));
        let just = "x".repeat(LINE_MAX_BYTES);
        assert_eq!(taken(&just, false), texts("", &just));
    }

    #[test]
    fn a_stream_is_kept_to_its_end() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut stream = Stream::new(reader, Target::Report, &Pes::of_process(0, 1)).unwrap();
        assert!(stream.read());
        writer.write_all(b"half").unwrap();
        assert!(stream.read());
        writer.write_all(b" and half\n").unwrap();
        drop(writer);
        assert!(!stream.read());
        assert_eq!(stream.finish(), b"half and half\n");
    }
}
