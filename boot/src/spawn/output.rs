//! Output of processes that passes through the launcher. It is captured for the report, or forwarded in whole
//! lines, each tagged with the numbers of the process's PEs, or, from other hosts, forwarded as it arrives.
//!
//! Invariant: neither reading nor forwarding blocks. While a writer is full, the launcher stops reading the
//! pipe, and the process blocks on it. A line that is longer than 64 KiB is split.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::frame::{Frame, SendQueue, WINDOW_BYTES, Which};
use super::pes::Pes;
use super::poller::{Poller, Source};
use crate::writer::{Outlet, Writer};

/// A line that is longer than this is forwarded in pieces.
const LINE_MAX_BYTES: usize = 64 << 10;
/// The number of reads from one stream before the other streams are read.
const READS: usize = 4;
/// After a failed job: how long a reader may take nothing before the remaining output is discarded.
const PATIENCE: Duration = Duration::from_secs(1);

/// The destination of the output of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// In the report.
    Report,
    /// On a stream of the launcher.
    Outlet(Outlet),
    /// In a file of its own.
    File,
}

/// The result of reading from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// More data may follow.
    Open,
    /// The writer has no room: the stream is read again when it has.
    Full,
    /// The stream has ended, or its writer has failed.
    Ended,
}

/// The writers of a job, with the patience for their readers at its end.
pub(super) struct Outlets {
    stdout: Option<Writer>,
    stderr: Option<Writer>,
    /// Whether the output of the PEs goes through these writers.
    is_tagged: bool,
    /// The number of bytes written when the reader last took some, and the time of that observation.
    progress: (u64, Instant),
}

/// One stream of one process.
#[derive(Debug)]
pub(super) struct Stream {
    supply: Supply,
    target: Target,
    /// The tag before each line, if whole lines are passed on.
    tag: Option<String>,
    held: Vec<u8>,
    /// The file that it goes to, and why that has failed.
    file: Option<(PathBuf, File)>,
    failure: Option<std::io::Error>,
    /// The number of bytes that are still to be read, if it is known.
    left_bytes: Option<u64>,
    /// Whether the stream waits for room in the writer.
    pub(super) is_paused: bool,
}

/// Where the bytes of a stream come from.
#[derive(Debug)]
enum Supply {
    /// A process of this machine writes them into a pipe.
    Pipe(PipeReader),
    /// The agent of a host sends them.
    Agent(Parcel),
}

/// Bytes that the agent of a host has sent, at most [`WINDOW_BYTES`]. The launcher tells the agent how many
/// of them it has consumed.
#[derive(Debug)]
struct Parcel {
    arrived: VecDeque<u8>,
    is_closed: bool,
    taken_bytes: usize,
    queue: SendQueue,
    process: usize,
    which: Which,
}

impl Parcel {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.arrived.is_empty() {
            return if self.is_closed { Ok(0) } else { Err(ErrorKind::WouldBlock.into()) };
        }
        // A read would stop where the queue wraps around, and nothing wakes the launcher for the rest.
        self.arrived.make_contiguous();
        let count = self.arrived.read(bytes)?;
        self.taken_bytes += count;
        if self.taken_bytes >= WINDOW_BYTES / 4 && !self.is_closed {
            let taken = std::mem::take(&mut self.taken_bytes);
            self.queue.send(&Frame::Taken(self.process, self.which, taken as u32));
        }
        Ok(count)
    }
}

impl Outlets {
    /// Starts the writers, if the output `is_tagged`.
    pub(super) fn start(is_tagged: bool, poller: &Poller) -> std::io::Result<Self> {
        let start = |outlet| {
            let writer = is_tagged.then(|| Writer::start(outlet)).transpose()?;
            writer.iter().try_for_each(|writer| poller.add(Source::Outlet, writer))?;
            Ok::<_, std::io::Error>(writer)
        };
        let (stdout, stderr) = (start(Outlet::Stdout)?, start(Outlet::Stderr)?);
        Ok(Self { stdout, stderr, is_tagged, progress: (0, Instant::now()) })
    }

    /// The writer for a target.
    pub(super) fn of(&self, target: Target) -> Option<&Writer> {
        match target {
            Target::Report | Target::File => None,
            Target::Outlet(Outlet::Stdout) => self.stdout.as_ref(),
            Target::Outlet(Outlet::Stderr) => self.stderr.as_ref(),
        }
    }

    /// Writes a message of the launcher to standard error. If that fails, the message is lost.
    pub(super) fn print(&mut self, text: &str, poller: &Poller) {
        if self.stderr.is_none() {
            let writer = Writer::start(Outlet::Stderr).ok();
            self.stderr = writer.filter(|writer| poller.add(Source::Outlet, writer).is_ok());
        }
        self.stderr.iter().for_each(|writer| writer.push(text.as_bytes()));
    }

    /// Clears the wake-ups of the writers. Returns the first stream that has failed with output of PEs in it.
    pub(super) fn clear_events(&self) -> Option<(Outlet, std::io::Error)> {
        self.writers().for_each(Writer::clear_event);
        if !self.is_tagged {
            return None;
        }
        self.writers().find_map(|writer| Some((writer.outlet(), writer.failure()?.into())))
    }

    /// Whether all is written; if not, requests a wake-up for that moment.
    pub(super) fn are_done(&self) -> bool {
        self.writers().for_each(Writer::notify_when_done);
        self.writers().all(|writer| writer.pending_bytes() == 0)
    }

    /// The time at which the remaining output is discarded, if the reader takes nothing until then.
    pub(super) fn patience_ends_at(&mut self) -> Instant {
        let written = self.writers().map(Writer::written_bytes).sum();
        if written != self.progress.0 {
            self.progress = (written, Instant::now());
        }
        self.progress.1 + PATIENCE
    }

    /// Starts the patience for a reader that has had nothing to read before.
    pub(super) fn begin_patience(&mut self) {
        self.progress.1 = Instant::now();
    }

    /// Discards the data that is not written.
    pub(super) fn give_up(&self) {
        self.writers().for_each(Writer::give_up);
    }

    fn writers(&self) -> impl Iterator<Item = &Writer> {
        [&self.stdout, &self.stderr].into_iter().flatten()
    }
}

impl Stream {
    /// Makes a stream of the reading end of a pipe, which becomes non-blocking.
    pub(super) fn of_pipe(pipe: PipeReader, target: Target, pes: &Pes) -> std::io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self::new(Supply::Pipe(pipe), target, Some(pes)))
    }

    /// A stream that the agent of a host sends; the lines of `tagged` PEs get their numbers.
    pub(super) fn of_agent(
        queue: &SendQueue,
        process: usize,
        which: Which,
        target: Target,
        tagged: Option<&Pes>,
    ) -> Self {
        let (arrived, queue) = (VecDeque::new(), queue.clone());
        let parcel = Parcel { arrived, is_closed: false, taken_bytes: 0, queue, process, which };
        Self::new(Supply::Agent(parcel), target, tagged)
    }

    fn new(supply: Supply, target: Target, tagged: Option<&Pes>) -> Self {
        let (tag, held) = (tagged.map(|pes| format!("[{}] ", pes.numbers())), Vec::new());
        Self { supply, target, tag, held, file: None, failure: None, left_bytes: None, is_paused: false }
    }

    /// Lets the stream go to a new file.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(super) fn into_file(self, path: PathBuf) -> std::io::Result<Self> {
        let file = File::create(&path)?;
        Ok(Self { target: Target::File, file: Some((path, file)), ..self })
    }

    /// The file that cannot be written, and the reason.
    pub(super) fn take_failure(&mut self) -> Option<(PathBuf, std::io::Error)> {
        let failure = self.failure.take()?;
        Some((self.file.take()?.0, failure))
    }

    /// The pipe that the stream is read from, if there is one.
    pub(super) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        match &self.supply {
            Supply::Pipe(pipe) => Some(pipe.as_fd()),
            Supply::Agent(_) => None,
        }
    }

    /// Adds bytes that the agent of a host has sent; an empty slice is the end of the stream. False if the
    /// bytes exceed the window.
    pub(super) fn arrive(&mut self, bytes: &[u8]) -> bool {
        let Supply::Agent(parcel) = &mut self.supply else { return false };
        let fits = !parcel.is_closed && parcel.arrived.len() + bytes.len() <= WINDOW_BYTES;
        if fits {
            parcel.is_closed |= bytes.is_empty();
            parcel.arrived.extend(bytes);
        }
        fits
    }

    /// The destination of the stream.
    pub(super) fn target(&self) -> Target {
        self.target
    }

    /// Reads some of the available data, and forwards complete lines to `writer`, if there is one.
    pub(super) fn read(&mut self, writer: Option<&Writer>) -> Reading {
        let mut bytes = [0_u8; 16 << 10];
        for _ in 0..READS {
            if self.failure.is_some() || writer.is_some_and(|writer| writer.failure().is_some()) {
                return Reading::Ended;
            }
            if writer.is_some_and(Writer::is_full) {
                return Reading::Full;
            }
            let most = self.left_bytes.map_or(bytes.len(), |left| bytes.len().min(left as usize));
            let read = match &mut self.supply {
                Supply::Pipe(pipe) => pipe.read(&mut bytes[..most]),
                Supply::Agent(parcel) => parcel.read(&mut bytes[..most]),
            };
            match read {
                Ok(0) => return Reading::Ended,
                Ok(count) => {
                    self.held.extend_from_slice(&bytes[..count]);
                    self.left_bytes = self.left_bytes.map(|left| left - count as u64);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Reading::Open,
                Err(_) => return Reading::Ended,
            }
            self.pass_on(writer, false);
        }
        Reading::Open
    }

    /// From now on only the present contents of the pipe are read. If the pipe is still open, a process
    /// outside of the job holds it, whose later output is not part of the job.
    pub(super) fn limit_to_present(&mut self) {
        match &self.supply {
            Supply::Pipe(pipe) => self.left_bytes = Some(rustix::io::ioctl_fionread(pipe).unwrap_or(0)),
            Supply::Agent(parcel) if parcel.is_closed => {}
            Supply::Agent(parcel) => parcel.queue.send(&Frame::Finish(parcel.process)),
        }
    }

    /// Ends the stream and forwards its incomplete line; returns the output that was captured for the report.
    pub(super) fn finish(mut self, writer: Option<&Writer>) -> Vec<u8> {
        self.pass_on(writer, true);
        self.held
    }

    /// Forwards complete lines, and the incomplete one too if it is the `last`.
    fn pass_on(&mut self, writer: Option<&Writer>, last: bool) {
        if let Some((_, file)) = &mut self.file {
            self.failure = file.write_all(&std::mem::take(&mut self.held)).err();
        }
        match (writer, &self.tag) {
            (Some(writer), Some(tag)) => writer.push(&take_lines(&mut self.held, tag, last)),
            (Some(writer), None) => writer.push(&std::mem::take(&mut self.held)),
            (None, _) => {}
        }
    }
}

/// Removes the complete lines from `held`; each is returned with `tag` before it.
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
        let mut stream = Stream::of_pipe(reader, Target::Report, &Pes::of_process(0, 1)).unwrap();
        assert_eq!(stream.read(None), Reading::Open);
        writer.write_all(b"half").unwrap();
        assert_eq!(stream.read(None), Reading::Open);
        writer.write_all(b" and half\n").unwrap();
        drop(writer);
        assert_eq!(stream.read(None), Reading::Ended);
        assert_eq!(stream.finish(None), b"half and half\n");
    }

    #[test]
    fn a_pipe_that_stays_open_is_read_up_to_the_present() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut stream = Stream::of_pipe(reader, Target::Report, &Pes::of_process(0, 1)).unwrap();
        writer.write_all(b"of the job").unwrap();
        stream.limit_to_present();
        writer.write_all(b"of nobody").unwrap();
        assert_eq!(stream.read(None), Reading::Ended);
        assert_eq!(stream.finish(None), b"of the job");
    }
}
