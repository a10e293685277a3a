//! Frames: the messages between the launcher and the agent of a host, over the standard input and output of a
//! remote shell.
//!
//! ```text
//! agent: \npelago agent VERSION\n, then frames;     launcher: frames
//! frame: kind (1 byte), process (4), length of what follows (4), payload; numbers are little-endian
//! ```
//! Invariant: all input is parsed as frames or as [`Garbage`]; no input makes the reader panic, or allocate
//! more memory than the bytes that have arrived. A frame concerns one process of the job, or the host
//! (process 0).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::rc::Rc;

use rustix::fd::AsFd;
use rustix::io::{Errno, write};

/// Bytes before the payload.
const HEADER_BYTES: usize = 9;
/// The longest payload, except that of a start.
pub(super) const PAYLOAD_MAX_BYTES: usize = 64 << 10;
/// The longest payload of a start: arguments and environment of all programs, which the system limits to less
/// for each.
const START_MAX_BYTES: usize = 64 << 20;
/// The window of a stream of a process: the number of bytes that may be in flight before the receiver has
/// acknowledged some.
pub(super) const WINDOW_BYTES: usize = 64 << 10;
/// The maximum number of bytes before the greeting, which start-up files of the shell may write.
const NOISE_MAX_BYTES: usize = 64 << 10;

/// Why the input is not a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Garbage;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// To the agent, first: the job.
    Start(Box<Start>),
    /// To the launcher: the process has been started, with this process id.
    Started(usize, i32),
    /// To the launcher: the process cannot be started, for this reason.
    Refused(usize, String),
    /// Both ways: bytes on the PMI socket of the process; empty: the process has closed its end.
    Pmi(usize, Vec<u8>),
    /// To the launcher: the process does not read the responses to its requests.
    Deaf(usize),
    /// To the agent: input of the process; empty: end of input.
    Input(usize, Vec<u8>),
    /// To the launcher: the process has closed its standard input.
    InputClosed(usize),
    /// To the launcher: bytes of standard output; empty: end of the stream.
    Stdout(usize, Vec<u8>),
    /// To the launcher: bytes of standard error; empty: end of the stream.
    Stderr(usize, Vec<u8>),
    /// Both ways: this number of bytes of a stream of the process has been consumed; the sender may send that
    /// many more.
    Taken(usize, Which, u32),
    /// To the agent: send this signal to the process and the rest of its group.
    Signal(usize, i32),
    /// To the launcher: the process has exited with this status.
    Exited(usize, i32),
    /// To the launcher: the process was killed by this signal.
    Killed(usize, i32),
    /// To the agent: asks for the state of the process. To the launcher: the state, as the number of a
    /// [`ProcessState`](crate::ProcessState).
    State(usize, u8),
    /// To the agent: forward only the present contents of the output pipes of the process.
    Finish(usize),
    /// Both ways: the sender is alive. The agent returns each of these frames.
    Alive,
    /// To the agent: the launcher is about to be stopped, and is silent until it is continued.
    Pause,
}

/// A stream of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Stdin,
    Stdout,
    Stderr,
}

/// The part of the job that the agent of one host needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// The number of processes of the job.
    pub(super) size: u32,
    /// The first process of this host, and the index of the program of each process.
    pub(super) first: u32,
    pub(super) program_of: Vec<u32>,
    pub(super) pes_per_process: u32,
    pub(super) binds: bool,
    /// After this time without a frame from the launcher, the agent kills its processes; 0: never.
    pub(super) silence_millis: u64,
    pub(super) directory: PathBuf,
    /// The variables of the launcher.
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) programs: Vec<StartProgram>,
    /// The processes of this host that get input from the launcher.
    pub(super) readers: Vec<u32>,
    pub(super) tool: StartTool,
}

/// The tool that processes run under; without words there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StartTool {
    pub(super) words: Vec<OsString>,
    /// The process that alone runs under it, plus 1; 0: all do.
    pub(super) only: u32,
    /// The folder to create; empty: none.
    pub(super) folder: PathBuf,
}

/// A program of the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StartProgram {
    /// A path, or a name that is looked up in `PATH`; empty: the agent itself.
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    /// Variables besides those of the launcher.
    pub(super) env: Vec<(OsString, OsString)>,
}

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Self::Start(_) => 1,
            Self::Started(..) => 2,
            Self::Refused(..) => 3,
            Self::Pmi(..) => 4,
            Self::Deaf(_) => 5,
            Self::Input(..) => 6,
            Self::InputClosed(_) => 7,
            Self::Stdout(..) => 8,
            Self::Stderr(..) => 9,
            Self::Taken(..) => 10,
            Self::Signal(..) => 11,
            Self::Exited(..) => 12,
            Self::Killed(..) => 13,
            Self::State(..) => 14,
            Self::Finish(_) => 15,
            Self::Alive => 16,
            Self::Pause => 17,
        }
    }

    /// The process that the frame concerns; 0 if it concerns the host.
    pub(super) fn process(&self) -> usize {
        match self {
            Self::Start(_) | Self::Alive | Self::Pause => 0,
            Self::Started(process, _)
            | Self::Refused(process, _)
            | Self::Pmi(process, _)
            | Self::Deaf(process)
            | Self::Input(process, _)
            | Self::InputClosed(process)
            | Self::Stdout(process, _)
            | Self::Stderr(process, _)
            | Self::Taken(process, ..)
            | Self::Signal(process, _)
            | Self::Exited(process, _)
            | Self::Killed(process, _)
            | Self::State(process, _)
            | Self::Finish(process) => *process,
        }
    }

    fn payload(&self) -> Vec<u8> {
        match self {
            Self::Start(start) => start.packed(),
            Self::Refused(_, text) => text.as_bytes().to_vec(),
            Self::Pmi(_, bytes) | Self::Input(_, bytes) | Self::Stdout(_, bytes) | Self::Stderr(_, bytes) => {
                bytes.clone()
            }
            Self::Taken(_, which, count) => [&[*which as u8], &count.to_le_bytes()[..]].concat(),
            Self::Started(_, number)
            | Self::Signal(_, number)
            | Self::Exited(_, number)
            | Self::Killed(_, number) => number.to_le_bytes().to_vec(),
            Self::State(_, state) => vec![*state],
            Self::Deaf(_) | Self::InputClosed(_) | Self::Finish(_) | Self::Alive | Self::Pause => Vec::new(),
        }
    }

    fn of(kind: u8, process: usize, payload: &[u8]) -> Result<Self, Garbage> {
        let number = || payload.try_into().map(i32::from_le_bytes).map_err(|_| Garbage);
        let none = |frame| if payload.is_empty() { Ok(frame) } else { Err(Garbage) };
        let bytes = || payload.to_vec();
        Ok(match kind {
            1 => Self::Start(Box::new(Start::of(payload).ok_or(Garbage)?)),
            2 => Self::Started(process, number()?),
            3 => Self::Refused(process, String::from_utf8_lossy(payload).into_owned()),
            4 => Self::Pmi(process, bytes()),
            5 => none(Self::Deaf(process))?,
            6 => Self::Input(process, bytes()),
            7 => none(Self::InputClosed(process))?,
            8 => Self::Stdout(process, bytes()),
            9 => Self::Stderr(process, bytes()),
            10 => {
                let (which, count) = payload.split_first().ok_or(Garbage)?;
                let which = match which {
                    0 => Which::Stdin,
                    1 => Which::Stdout,
                    2 => Which::Stderr,
                    _ => return Err(Garbage),
                };
                Self::Taken(process, which, count.try_into().map(u32::from_le_bytes).map_err(|_| Garbage)?)
            }
            11 => Self::Signal(process, number()?),
            12 => Self::Exited(process, number()?),
            13 => Self::Killed(process, number()?),
            14 => match payload {
                [state] => Self::State(process, *state),
                _ => return Err(Garbage),
            },
            15 => none(Self::Finish(process))?,
            16 => none(Self::Alive)?,
            17 => none(Self::Pause)?,
            _ => return Err(Garbage),
        })
    }
}

/// The queue of frames that wait to be written, in the order in which they were sent. Clones share the queue.
#[derive(Clone, Debug, Default)]
pub(super) struct SendQueue(Rc<RefCell<VecDeque<u8>>>);

impl SendQueue {
    /// Queues the greeting, which is not a frame.
    pub(super) fn greet(&self) {
        self.0.borrow_mut().extend(greeting().as_bytes());
    }

    pub(super) fn send(&self, frame: &Frame) {
        let (process, payload) = (frame.process(), frame.payload());
        let mut queue = self.0.borrow_mut();
        queue.push_back(frame.kind());
        queue.extend((process as u32).to_le_bytes());
        queue.extend((payload.len() as u32).to_le_bytes());
        queue.extend(payload);
    }

    /// The bytes of all queued frames.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.borrow().iter().copied().collect()
    }

    /// Queues bytes, in as many frames as they need.
    pub(super) fn send_bytes(&self, bytes: &[u8], frame: impl Fn(Vec<u8>) -> Frame) {
        bytes.chunks(PAYLOAD_MAX_BYTES).for_each(|chunk| self.send(&frame(chunk.to_vec())));
    }

    pub(super) fn pending_bytes(&self) -> usize {
        self.0.borrow().len()
    }

    /// Writes queued bytes to a non-blocking descriptor; true if none are left.
    pub(super) fn write_to(&self, fd: impl AsFd) -> Result<bool, Errno> {
        let mut queue = self.0.borrow_mut();
        while !queue.is_empty() {
            match write(&fd, queue.as_slices().0) {
                Ok(count) => drop(queue.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// The start of the agent's greeting.
const GREETING_START: &str = "\npelago agent ";

/// The greeting, the first bytes of the agent. Both sides must have the same version.
fn greeting() -> String {
    format!("{GREETING_START}{}\n", env!("CARGO_PKG_VERSION"))
}

/// Bytes received from the other side.
#[derive(Debug, Default)]
pub(super) struct Frames {
    held: Vec<u8>,
    /// The number of held bytes that have been parsed.
    done: usize,
}

impl Frames {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.done);
        self.done = 0;
        self.held.extend_from_slice(bytes);
    }

    /// Searches for the greeting: true if it is found, and removed. The bytes before it are skipped.
    ///
    /// # Errors
    /// The text that arrived in its place, if the greeting cannot arrive any more.
    pub(super) fn greeted(&mut self) -> Result<bool, String> {
        let (held, wanted) = (&self.held[self.done..], greeting());
        if let Some(at) = position(held, wanted.as_bytes()) {
            self.done += at + wanted.len();
            return Ok(true);
        }
        let other = position(held, GREETING_START.as_bytes()).map(|at| &held[at + 1..]);
        let other = other.and_then(|rest| Some(&rest[..rest.iter().position(|byte| *byte == b'\n')?]));
        match other {
            Some(line) => Err(String::from_utf8_lossy(line).into_owned()),
            None if held.len() > NOISE_MAX_BYTES => Err(self.noise()),
            None => Ok(false),
        }
    }

    /// The input in the place of the greeting, shortened.
    pub(super) fn noise(&self) -> String {
        let text = String::from_utf8_lossy(&self.held[self.done..]);
        let text = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
        text.take(200).collect()
    }

    /// The next frame, if all of it has arrived.
    pub(super) fn pop(&mut self) -> Result<Option<Frame>, Garbage> {
        let held = &self.held[self.done..];
        let Some((header, rest)) = held.split_at_checked(HEADER_BYTES) else {
            return if held.first().is_some_and(|kind| !(1..=17).contains(kind)) {
                Err(Garbage)
            } else {
                Ok(None)
            };
        };
        let word =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (kind, process, length) = (header[0], word(1) as usize, word(5) as usize);
        let most = if kind == 1 { START_MAX_BYTES } else { PAYLOAD_MAX_BYTES };
        if length > most || !(1..=17).contains(&kind) {
            return Err(Garbage);
        }
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let frame = Frame::of(kind, process, payload)?;
        self.done += HEADER_BYTES + length;
        Ok(Some(frame))
    }
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

impl Start {
    fn packed(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        number(&mut bytes, self.size);
        number(&mut bytes, self.first);
        number(&mut bytes, self.pes_per_process);
        number(&mut bytes, u32::from(self.binds));
        bytes.extend(self.silence_millis.to_le_bytes());
        text(&mut bytes, self.directory.as_os_str());
        list(&mut bytes, &self.program_of, |bytes, program| number(bytes, *program));
        list(&mut bytes, &self.env, pair);
        list(&mut bytes, &self.programs, |bytes, program| {
            text(bytes, program.program.as_os_str());
            list(bytes, &program.args, |bytes, arg| text(bytes, arg));
            list(bytes, &program.env, pair);
        });
        list(&mut bytes, &self.readers, |bytes, process| number(bytes, *process));
        list(&mut bytes, &self.tool.words, |bytes, word| text(bytes, word));
        number(&mut bytes, self.tool.only);
        text(&mut bytes, self.tool.folder.as_os_str());
        bytes
    }

    fn of(payload: &[u8]) -> Option<Self> {
        let mut input = Unpacker(payload);
        let start = Self {
            size: input.number()?,
            first: input.number()?,
            pes_per_process: input.number()?,
            binds: input.number()? != 0,
            silence_millis: u64::from_le_bytes(input.take(8)?.try_into().ok()?),
            directory: input.text()?.into(),
            program_of: input.list(Unpacker::number)?,
            env: input.list(Unpacker::pair)?,
            programs: input.list(|input| {
                let (program, args) = (input.text()?.into(), input.list(Unpacker::text)?);
                Some(StartProgram { program, args, env: input.list(Unpacker::pair)? })
            })?,
            readers: input.list(Unpacker::number)?,
            tool: StartTool {
                words: input.list(Unpacker::text)?,
                only: input.number()?,
                folder: input.text()?.into(),
            },
        };
        let (first, here) = (start.first as usize, start.program_of.len());
        let makes_sense = (1..=4096).contains(&start.pes_per_process)
            && first.checked_add(here).is_some_and(|end| end <= start.size as usize)
            && start.program_of.iter().all(|program| (*program as usize) < start.programs.len());
        (makes_sense && input.0.is_empty()).then_some(start)
    }
}

fn number(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend(number.to_le_bytes());
}

fn text(bytes: &mut Vec<u8>, text: &OsStr) {
    number(bytes, text.len() as u32);
    bytes.extend(text.as_bytes());
}

fn pair(bytes: &mut Vec<u8>, (key, value): &(OsString, OsString)) {
    text(bytes, key);
    text(bytes, value);
}

fn list<T>(bytes: &mut Vec<u8>, items: &[T], each: impl Fn(&mut Vec<u8>, &T)) {
    number(bytes, items.len() as u32);
    items.iter().for_each(|item| each(bytes, item));
}

/// The rest of a payload that is being parsed.
struct Unpacker<'a>(&'a [u8]);

impl<'a> Unpacker<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// A text without NUL, because the system accepts no NUL in arguments and variables.
    fn text(&mut self) -> Option<OsString> {
        let length = self.number()? as usize;
        let bytes = self.take(length)?;
        (!bytes.contains(&0)).then(|| OsString::from_vec(bytes.to_vec()))
    }

    fn pair(&mut self) -> Option<(OsString, OsString)> {
        Some((self.text()?, self.text()?))
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()? as usize;
        // Each item has at least 4 bytes, so that a wrong count allocates no memory.
        let mut items = Vec::with_capacity(count.min(self.0.len() / 4));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing;

    fn examples() -> Vec<Frame> {
        let odd = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let program = StartProgram {
            program: "./a b".into(),
            args: vec!["".into(), "two words".into(), "'\"\\\n".into(), odd(b"\xff\xfe")],
            env: vec![("A".into(), odd(b"=\x80"))],
        };
        let start = Start {
            size: 5,
            first: 2,
            program_of: vec![0, 0, 1],
            pes_per_process: 4,
            binds: true,
            silence_millis: 30_000,
            directory: odd(b"/d\xff").into(),
            env: vec![("PATH".into(), "/bin".into()), ("EMPTY".into(), "".into())],
            programs: vec![program, StartProgram::default()],
            readers: vec![2, 4],
            tool: StartTool { words: vec!["gdb".into(), "".into()], only: 5, folder: "a b".into() },
        };
        vec![
            Frame::Start(Box::new(start)),
            Frame::Started(3, 77),
            Frame::Refused(3, "no é".to_owned()),
            Frame::Pmi(4, b"cmd=init\n".to_vec()),
            Frame::Deaf(1),
            Frame::Input(0, vec![0; 300]),
            Frame::InputClosed(0),
            Frame::Stdout(2, Vec::new()),
            Frame::Stderr(2, vec![255]),
            Frame::Taken(2, Which::Stderr, 65536),
            Frame::Signal(2, 15),
            Frame::Exited(2, -1),
            Frame::Killed(2, 9),
            Frame::State(2, 1),
            Frame::Finish(2),
            Frame::Alive,
            Frame::Pause,
        ]
    }

    fn bytes_of(frames: &[Frame]) -> Vec<u8> {
        let queue = SendQueue::default();
        frames.iter().for_each(|frame| queue.send(frame));
        queue.bytes()
    }

    #[test]
    fn frames_arrive_as_they_were_sent_wherever_the_bytes_are_cut() {
        let (sent, bytes) = (examples(), bytes_of(&examples()));
        for size in [1, 7, bytes.len()] {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for piece in bytes.chunks(size) {
                frames.push(piece);
                while let Some(frame) = frames.pop().unwrap() {
                    found.push(frame);
                }
            }
            assert_eq!(found, sent, "in pieces of {size}");
        }
    }

    #[test]
    fn the_greeting_is_found_behind_noise() {
        let mut frames = Frames::default();
        frames.push(b"Welcome to b!\nno newline");
        assert_eq!(frames.greeted(), Ok(false));
        frames.push(&[greeting().as_bytes(), &bytes_of(&[Frame::Alive])].concat());
        assert_eq!(frames.greeted(), Ok(true));
        assert_eq!(frames.pop(), Ok(Some(Frame::Alive)));
        let mut frames = Frames::default();
        frames.push(b"\npelago agent 99.0\n");
        assert_eq!(frames.greeted(), Err("pelago agent 99.0".to_owned()));
        let mut frames = Frames::default();
        frames.push(&[b'x'; NOISE_MAX_BYTES + 1]);
        assert_eq!(frames.greeted(), Err("x".repeat(200)));
    }

    #[test]
    fn what_is_no_frame_is_refused_at_once() {
        let garbage = |bytes: &[u8]| {
            let mut frames = Frames::default();
            frames.push(bytes);
            frames.pop()
        };
        for bytes in
            [&[0][..], &[18], b"hello", &[16, 0, 0, 0, 0, 1, 0, 0, 0, 9], &[4, 0, 0, 0, 0, 1, 0, 1, 0]]
        {
            assert_eq!(garbage(bytes), Err(Garbage), "{bytes:?}");
        }
        assert_eq!(garbage(&[1, 0, 0, 0, 0, 0, 0, 0, 4]), Ok(None), "a start may be long");
        assert_eq!(garbage(&[1, 0, 0, 0, 0, 0, 0, 0, 5]), Err(Garbage), "but not as long as that");
        let start = |change: fn(&mut Start)| {
            let Frame::Start(mut start) = examples().swap_remove(0) else { panic!("the first is a start") };
            change(&mut start);
            garbage(&bytes_of(&[Frame::Start(start)])).is_err()
        };
        assert!(!start(|_| ()));
        assert!(start(|start| start.first = 3), "more processes than there are");
        assert!(start(|start| start.first = u32::MAX));
        assert!(start(|start| start.program_of[0] = 2), "a program that there is not");
        assert!(start(|start| start.pes_per_process = 0));
        assert!(start(|start| start.directory = "/a\0b".into()));
    }

    #[test]
    fn fuzz_frames() {
        let all: Vec<_> = examples().iter().map(|frame| bytes_of(std::slice::from_ref(frame))).collect();
        fuzzing::fuzz(&all, |input| {
            let mut frames = Frames::default();
            let (head, tail) = input.split_at(input.len() / 2);
            for piece in [head, tail] {
                frames.push(piece);
                let _ = frames.greeted();
                while let Ok(Some(frame)) = frames.pop() {
                    let again = bytes_of(std::slice::from_ref(&frame));
                    let mut copy = Frames::default();
                    copy.push(&again);
                    assert!(matches!(copy.pop(), Ok(Some(_))), "{frame:?}");
                }
            }
        });
    }
}
