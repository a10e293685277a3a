//! Agent: the launcher starts one on each host through a remote shell. The agent starts the processes of its
//! host, and forwards their PMI-1 messages, output, input, signals and exit statuses between them and the
//! launcher. It knows nothing of jobs: the launcher makes all decisions.
//!
//! Invariant: the agent and its processes end when its standard input ends, when its standard output fails,
//! when it receives a signal, and when the launcher has been silent for too long. The agent opens no port,
//! and reads no environment variables; only the programs that it starts do.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, ioctl_fionread};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::Signal;
use thiserror::Error;

use super::check::{NoRoom, descriptors, make_room, resolve_in};
use super::frame::{Frame, Frames, Garbage, PAYLOAD_MAX_BYTES, SendQueue, Start, WINDOW_BYTES, Which};
use super::poller::{Poller, Source};
use super::process::{End, Output, Process, Ready, Starter};
use super::signals::{ASKING, FORWARDED, Signals};
use super::start_reason;
use super::tool::ReadyTool;
use crate::locality::cpus_by_core;
use crate::process::process_state;

/// While this many bytes wait to be sent, the agent does not read from its processes.
const QUEUE_MAX_BYTES: usize = 1 << 20;
/// The number of reads from one socket or pipe before the others are read.
const READS: usize = 16;
/// The prefix of the variables of the runtime: all of them come from the launcher.
const PREFIX: &str = "PELAGO_";

/// Why the agent ended early.
#[derive(Debug, Error)]
pub enum AgentError {
    /// A user has started the agent at a terminal.
    #[error("`pelago run --hosts` starts this on each host; it is of no use at a terminal")]
    Terminal,
    /// The system refused a resource that the agent needs.
    #[error("{what}: {reason}")]
    System {
        /// The call that was refused.
        what: &'static str,
        /// The error of the system.
        reason: io::Error,
    },
    /// The input does not come from a launcher.
    #[error("what came on standard input is not from a launcher of the same version")]
    Garbage,
    /// The launcher is gone, or silent, while processes were running.
    #[error("the launcher is gone, so {0} processes were ended")]
    Orphaned(usize),
}

impl AgentError {
    fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |reason| Self::System { what, reason: reason.into() }
    }
}

/// Runs the agent of a host on standard input and output, until the launcher dismisses it.
///
/// # Errors
/// Any reason to end before that; none of its processes is left then.
pub fn agent() -> Result<(), AgentError> {
    if io::stdin().is_terminal() {
        return Err(AgentError::Terminal);
    }
    let signals = Signals::block(false, None).map_err(AgentError::system("blocking signals"))?;
    // Both are pipes or sockets of the remote shell, which no other process on this host reads or writes.
    let unblocked = ioctl_fionbio(io::stdin(), true).and_then(|()| ioctl_fionbio(io::stdout(), true));
    unblocked.map_err(AgentError::system("making standard input and output ready"))?;
    let queue = SendQueue::default();
    queue.greet();
    let poller = Poller::new().map_err(AgentError::system("watching processes (epoll)"))?;
    let now = Instant::now();
    Agent {
        queue,
        poller,
        frames: Frames::default(),
        heard_at: now,
        silence: None,
        first: 0,
        held: Vec::new(),
        signals,
    }
    .run()
}

/// The state of the running agent.
struct Agent {
    queue: SendQueue,
    poller: Poller,
    frames: Frames,
    heard_at: Instant,
    /// How long the launcher may be silent; `None`: for ever.
    silence: Option<Duration>,
    /// The first process of this host.
    first: usize,
    held: Vec<Held>,
    // The last field, so that the signals stay blocked while processes are killed.
    signals: Signals,
}

/// The sources of an event.
struct Events {
    launcher: bool,
    signal: bool,
    processes: bool,
}

/// A process that was started.
struct Held {
    process: Process,
    stdout: Option<Tap>,
    stderr: Option<Tap>,
    stdin: Option<Feed>,
}

/// A stream that a process writes.
struct Tap {
    pipe: PipeReader,
    /// The number of bytes that the launcher has room for.
    room_bytes: usize,
    /// The number of bytes that are still to be read, if it is known.
    left_bytes: Option<u64>,
    is_watched: bool,
}

/// The standard input of a process.
struct Feed {
    pipe: PipeWriter,
    waiting: VecDeque<u8>,
    is_at_end: bool,
    is_watched: bool,
}

impl Held {
    /// An output stream of the process, while it is open.
    fn tap(&mut self, which: Which) -> &mut Option<Tap> {
        if which == Which::Stdout { &mut self.stdout } else { &mut self.stderr }
    }
}

impl Agent {
    fn run(mut self) -> Result<(), AgentError> {
        let mut found = Vec::new();
        loop {
            let Ok(is_sent) = self.queue.write_to(io::stdout()) else { return self.end() };
            let Some(events) = self.wait(is_sent)? else { return self.end() };
            if events.signal
                && self.signals.take().is_some_and(|signal| ![ASKING, FORWARDED].contains(&signal))
            {
                return self.end();
            }
            if events.launcher && !self.read_launcher()? {
                return self.end();
            }
            if events.processes {
                let waiting = self.poller.wait(Some(Duration::ZERO), &mut found);
                waiting.map_err(AgentError::system("watching processes (epoll)"))?;
                found.drain(..).for_each(|source| self.handle(source));
            }
        }
    }

    /// Waits for an event; `None` if the launcher is gone, or has been silent for too long.
    fn wait(&self, is_sent: bool) -> Result<Option<Events>, AgentError> {
        let mut limit = None;
        if let Some(silence) = self.silence {
            let Some(left) = (self.heard_at + silence).checked_duration_since(Instant::now()) else {
                return Ok(None);
            };
            // A wait that ends too early because of rounding is repeated.
            limit = Timespec::try_from(left + Duration::from_millis(1)).ok();
        }
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let out = if is_sent { PollFlags::empty() } else { PollFlags::OUT };
        let mut fds = vec![
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
            // Without events, poll still reports that the reader is gone.
            PollFd::new(&stdout, out),
        ];
        if self.queue.pending_bytes() < QUEUE_MAX_BYTES {
            fds.push(PollFd::new(self.poller.wait_descriptor(), PollFlags::IN));
        }
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(AgentError::system("waiting (poll)")(error)),
        }
        let unread = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        let is = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
        let events = Events { launcher: is(0), signal: is(1), processes: is(3) };
        Ok((!fds[2].revents().intersects(unread)).then_some(events))
    }

    /// Kills the remaining processes.
    fn end(self) -> Result<(), AgentError> {
        let left = self.held.iter().filter(|held| held.process.is_running()).count();
        // All processes are killed before the first is waited for.
        self.held.iter().for_each(|held| held.process.signal(Signal::KILL));
        if left == 0 { Ok(()) } else { Err(AgentError::Orphaned(left)) }
    }

    /// Executes the launcher's frames; false if the launcher is gone.
    fn read_launcher(&mut self) -> Result<bool, AgentError> {
        let mut bytes = [0_u8; 16 << 10];
        for _ in 0..READS {
            match rustix::io::read(io::stdin(), &mut bytes) {
                Ok(0) => return Ok(false),
                Ok(count) => self.frames.push(&bytes[..count]),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => return Ok(false),
            }
            self.heard_at = Instant::now();
            while let Some(frame) = self.frames.pop().map_err(|Garbage| AgentError::Garbage)? {
                self.obey(frame)?;
            }
        }
        Ok(true)
    }

    fn obey(&mut self, frame: Frame) -> Result<(), AgentError> {
        match frame {
            Frame::Start(start) if self.held.is_empty() => self.start(*start),
            Frame::Alive => self.queue.send(&Frame::Alive),
            // Until the next frame there is no limit.
            Frame::Pause => self.heard_at = Instant::now() + Duration::from_secs(365 * 86400),
            frame => return self.serve(frame),
        }
        Ok(())
    }

    /// Executes a frame that concerns a process, if the process was started; the launcher may not know yet
    /// that it was not.
    fn serve(&mut self, frame: Frame) -> Result<(), AgentError> {
        let index = frame.process().checked_sub(self.first);
        let Some(held) = index.and_then(|index| self.held.get_mut(index)) else { return Ok(()) };
        match frame {
            Frame::Pmi(process, bytes) => {
                let sent = match &held.process.socket {
                    Some(socket) => send(socket, &bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
                    None => Err(Errno::PIPE),
                };
                if !matches!(sent, Err(Errno::PIPE | Errno::CONNRESET)) && sent != Ok(bytes.len()) {
                    self.queue.send(&Frame::Deaf(process));
                }
            }
            Frame::Input(process, bytes) => {
                if let Some(feed) = &mut held.stdin {
                    feed.waiting.extend(&bytes);
                    feed.is_at_end |= bytes.is_empty();
                    self.feed(process);
                }
            }
            Frame::Taken(process, which, count) => {
                if let Some(tap) = held.tap(which) {
                    tap.room_bytes = (tap.room_bytes + count as usize).min(WINDOW_BYTES);
                    self.pass(process, which);
                }
            }
            Frame::Signal(_, signal) => {
                held.process.signal(Signal::from_named_raw(signal).ok_or(AgentError::Garbage)?);
            }
            Frame::State(process, _) => {
                let state = process_state(held.process.pid().unsigned_abs());
                self.queue.send(&Frame::State(process, state.number()));
            }
            Frame::Finish(process) => {
                for which in [Which::Stdout, Which::Stderr] {
                    let tap = self.held[process - self.first].tap(which);
                    if let Some(tap) = tap.as_mut().filter(|tap| tap.left_bytes.is_none()) {
                        tap.left_bytes = Some(ioctl_fionread(&tap.pipe).unwrap_or(0));
                        self.pass(process, which);
                    }
                }
            }
            _ => return Err(AgentError::Garbage),
        }
        Ok(())
    }

    /// Starts all processes, or reports which process cannot be started, and why.
    fn start(&mut self, start: Start) {
        self.first = start.first as usize;
        self.silence = (start.silence_millis > 0).then(|| Duration::from_millis(start.silence_millis));
        let starter = match self.starter(&start) {
            Ok(starter) => starter,
            Err(why) => return self.queue.send(&Frame::Refused(self.first, why)),
        };
        for (index, program) in start.program_of.iter().enumerate() {
            let (process, program) = (self.first + index, *program as usize);
            let reads = start.readers.contains(&(process as u32));
            match self.start_one(&starter, process, program, reads) {
                Ok(held) => {
                    self.queue.send(&Frame::Started(process, held.process.pid()));
                    self.held.push(held);
                }
                Err(error) => {
                    let name = starter.programs[program].name.to_string_lossy().into_owned();
                    let why = format!("{name}: {}", start_reason(&error));
                    return self.queue.send(&Frame::Refused(process, why));
                }
            }
        }
    }

    fn starter(&self, start: &Start) -> Result<Starter, String> {
        let here = start.program_of.len();
        make_room(descriptors(here, true) + start.readers.len() as u64).map_err(|error| match error {
            NoRoom::Limit(limit) => {
                format!("{here} processes need more than the {limit} open files allowed (ulimit -Hn)")
            }
            NoRoom::Refused(reason) => format!("raising the limit of open files: {reason}"),
        })?;
        std::env::set_current_dir(&start.directory).map_err(|error| {
            let directory = start.directory.display();
            format!(
                "the working directory {directory} cannot be entered there: {error}; start from one that all \
                 hosts have"
            )
        })?;
        let is_given = |name: &OsString| start.env.iter().any(|(given, _)| given == name);
        let is_setting = |name: &OsString| name.to_string_lossy().starts_with(PREFIX);
        let without = std::env::vars_os().map(|(name, _)| name);
        let without = without.filter(|name| is_setting(name) && !is_given(name)).collect();
        let programs = start.programs.iter().enumerate().map(|(number, it)| {
            let is_needed = start.program_of.contains(&(number as u32));
            let env: Vec<_> = start.env.iter().chain(&it.env).cloned().collect();
            let own = || {
                std::env::current_exe().map_err(|error| format!("finding the path of this command: {error}"))
            };
            let path = env.iter().rev().find(|(key, _)| key == "PATH").map(|(_, value)| value.clone());
            let path = path.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
            let file = match (is_needed, it.program.as_os_str().is_empty()) {
                // If there is no such file, the start reports it.
                (false, _) => it.program.clone(),
                (true, true) => own()?,
                (true, false) => resolve_in(&it.program, &path).map_err(|error| error.to_string())?,
            };
            let name = if it.program.as_os_str().is_empty() { file.clone() } else { it.program.clone() };
            Ok(Ready { file, name: name.into(), args: it.args.clone(), env })
        });
        let tool = tool_of(start, &std::env::var_os("PATH").unwrap_or_default())?;
        Ok(Starter {
            programs: programs.collect::<Result<_, String>>()?,
            size: start.size as usize,
            here: self.first..self.first + here,
            pes_per_process: start.pes_per_process as usize,
            without,
            output: Output::Pipes,
            tool,
            mask: self.signals.mask_before(),
            cpus: if start.binds { cpus_by_core() } else { Vec::new() },
        })
    }

    fn start_one(&self, starter: &Starter, process: usize, program: usize, reads: bool) -> io::Result<Held> {
        let (input, stdin) = if reads {
            let (reader, pipe) = io::pipe()?;
            ioctl_fionbio(&pipe, true)?;
            let feed = Feed { pipe, waiting: VecDeque::new(), is_at_end: false, is_watched: false };
            (Stdio::from(reader), Some(feed))
        } else {
            (Stdio::null(), None)
        };
        let (started, pipes) = starter.start(process, program, input)?;
        self.poller.add(Source::Exit(process), &started)?;
        if let Some(socket) = &started.socket {
            self.poller.add(Source::Pmi(process), socket)?;
        }
        let tap = |pipe: PipeReader, source| -> io::Result<Tap> {
            ioctl_fionbio(&pipe, true)?;
            self.poller.add(source, &pipe)?;
            Ok(Tap { pipe, room_bytes: WINDOW_BYTES, left_bytes: None, is_watched: true })
        };
        let (stdout, stderr) = match pipes {
            Some((out, err)) => {
                (Some(tap(out, Source::Stdout(process))?), Some(tap(err, Source::Stderr(process))?))
            }
            None => (None, None),
        };
        Ok(Held { process: started, stdout, stderr, stdin })
    }

    fn handle(&mut self, source: Source) {
        match source {
            Source::Pmi(process) => self.listen(process),
            Source::Stdout(process) => self.pass(process, Which::Stdout),
            Source::Stderr(process) => self.pass(process, Which::Stderr),
            Source::Room(process) => self.feed(process),
            Source::Exit(process) => self.exit(process),
            _ => {}
        }
    }

    /// Forwards the PMI-1 messages of a process.
    fn listen(&mut self, process: usize) {
        let held = &mut self.held[process - self.first].process;
        let mut bytes = [0_u8; 4096];
        for _ in 0..READS {
            let Some(socket) = &held.socket else { return };
            match recv(socket, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((count, _)) if count > 0 => self.queue.send(&Frame::Pmi(process, bytes[..count].to_vec())),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                _ => {
                    self.poller.remove(socket);
                    held.socket = None;
                    return self.queue.send(&Frame::Pmi(process, Vec::new()));
                }
            }
        }
    }

    /// Forwards the output of a process, as far as the launcher has room.
    fn pass(&mut self, process: usize, which: Which) {
        let (queue, poller) = (&self.queue, &self.poller);
        let tap = self.held[process - self.first].tap(which);
        let is_out = which == Which::Stdout;
        let source = if is_out { Source::Stdout(process) } else { Source::Stderr(process) };
        let frame =
            |bytes| if is_out { Frame::Stdout(process, bytes) } else { Frame::Stderr(process, bytes) };
        let mut bytes = [0_u8; 16 << 10];
        let Some(open) = tap else { return };
        let has_ended = loop {
            if open.left_bytes == Some(0) {
                break true;
            }
            let left = open.left_bytes.map_or(usize::MAX, |left| left as usize);
            let most = bytes.len().min(open.room_bytes).min(left);
            if most == 0 {
                break false;
            }
            match open.pipe.read(&mut bytes[..most]) {
                Ok(0) => break true,
                Ok(count) => {
                    open.room_bytes -= count;
                    open.left_bytes = open.left_bytes.map(|left| left - count as u64);
                    queue.send(&frame(bytes[..count].to_vec()));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                Err(_) => break true,
            }
        };
        let wants = !has_ended && open.room_bytes > 0;
        if open.is_watched && !wants {
            poller.remove(&open.pipe);
        }
        // If the pipe cannot be watched again, it is closed.
        let is_lost = wants && !open.is_watched && poller.add(source, &open.pipe).is_err();
        open.is_watched = wants;
        if has_ended || is_lost {
            *tap = None;
            queue.send(&frame(Vec::new()));
        }
    }

    /// Writes the input that has arrived for a process to its standard input.
    fn feed(&mut self, process: usize) {
        let (queue, poller) = (&self.queue, &self.poller);
        let Some(held) = process.checked_sub(self.first).and_then(|index| self.held.get_mut(index)) else {
            return;
        };
        let Some(feed) = &mut held.stdin else { return };
        let mut taken = 0;
        let is_closed = loop {
            if feed.waiting.is_empty() {
                break feed.is_at_end;
            }
            match feed.pipe.write(feed.waiting.as_slices().0) {
                Ok(count) => {
                    feed.waiting.drain(..count);
                    taken += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                Err(_) => {
                    queue.send(&Frame::InputClosed(process));
                    break true;
                }
            }
        };
        if taken > 0 {
            queue.send(&Frame::Taken(process, Which::Stdin, taken as u32));
        }
        let wants = !is_closed && !feed.waiting.is_empty();
        if feed.is_watched && !wants {
            poller.remove(&feed.pipe);
        } else if wants && !feed.is_watched && poller.add_room(Source::Room(process), &feed.pipe).is_err() {
            held.stdin = None;
            return;
        }
        feed.is_watched = wants;
        if is_closed {
            held.stdin = None;
        }
    }

    fn exit(&mut self, process: usize) {
        // Its last messages are forwarded first.
        while self.held[process - self.first].process.socket.is_some() {
            let before = self.queue.pending_bytes();
            self.listen(process);
            if self.queue.pending_bytes() == before {
                break;
            }
        }
        let held = &mut self.held[process - self.first];
        let Some(end) = held.process.reap() else { return };
        self.poller.remove(&held.process);
        self.queue.send(&match end {
            End::Exit(status) => Frame::Exited(process, status),
            End::Signal(signal) => Frame::Killed(process, signal),
        });
    }
}

/// The tool of the processes of this host; its folder is created.
fn tool_of(start: &Start, path: &OsStr) -> Result<Option<ReadyTool>, String> {
    // As for the programs: the variables of the job come after those of the launcher.
    let mut all = start.env.iter().chain(start.programs.iter().flat_map(|program| &program.env)).rev();
    let given = all.find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
    let Some((name, args)) = start.tool.words.split_first() else { return Ok(None) };
    let found = resolve_in(name.as_ref(), given.unwrap_or(path));
    let file = found.map_err(|error| format!("{error}; install it on all hosts"))?;
    let folder = &start.tool.folder;
    if !folder.as_os_str().is_empty() {
        let failed = |error| format!("the folder {} cannot be created there: {error}", folder.display());
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let only = start.tool.only.checked_sub(1).map(|process| process as usize);
    Ok(Some(ReadyTool { file, args: args.to_vec(), only, has_terminal: false }))
}

const _: () = assert!(READS * 4096 <= QUEUE_MAX_BYTES && PAYLOAD_MAX_BYTES >= 16 << 10);
