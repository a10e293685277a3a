//! PMI-1 client, the side of a process: sends a request and receives a response, within a time limit.
//!
//! Invariant: at most one request is outstanding, because only the owner of the [`Client`] sends requests;
//! `pelago run` may ask between two responses what the PEs wait for, by a line that is not a response. Lines
//! without a response (`note`, `abort`, `waits`) may come from any thread at any time, through the [`Link`]
//! alone. Every line is written as a whole, under a lock, and no wait exceeds the limit.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use thiserror::Error;

use super::value::{head, hex, part_key, split, unhex};
use super::wire::{Lines, Message};
use super::{MAPPING_KEY, MISSED, OURS, REPORT, REPORTS, WAITED, mapping};

/// The longest text of a `note` or an `abort`, in bytes.
const TEXT_MAX_BYTES: usize = 1024;
/// The longest text about what PEs wait for, in bytes.
const WAITS_MAX_BYTES: usize = 4096;
/// The additional wait for `pelago run`, which applies the limit itself and can name the PEs that are
/// missing.
const LAUNCHER_FIRST: Duration = Duration::from_secs(5);

/// Why an exchange with the launcher failed.
#[derive(Debug, Error)]
pub enum PmiError {
    /// The launcher did not respond in time.
    #[error(
        "no {awaited} from the launcher within {} s; see whether every PE has started, \
         or raise PELAGO_INIT_TIMEOUT", limit.as_secs_f64()
    )]
    Timeout {
        /// The response that was expected.
        awaited: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// The launcher has closed its end.
    #[error("the launcher is gone (its end of PMI_FD is closed) while this PE waited for {0}")]
    Gone(&'static str),
    /// The socket failed.
    #[error("the socket to the launcher (PMI_FD) failed: {0}")]
    Socket(#[from] Errno),
    /// The launcher refused the request.
    #[error("the launcher refused {request:?} by {answer:?}")]
    Refused {
        /// The request.
        request: String,
        /// The response.
        answer: String,
    },
    /// The launcher sent a line that is not a response to the request.
    #[error(
        "the launcher answered {request:?} by {answer:?}, which is not PMI-1; start this program by \
             mpiexec.hydra, srun --mpi=pmi2 or pelago run"
    )]
    Unexpected {
        /// The request.
        request: String,
        /// The response.
        answer: String,
    },
    /// The value under the key was not put by this library, or is incomplete.
    #[error("what the launcher keeps under the key {0:?} was not put there by Pelago, or is not complete")]
    Foreign(String),
}

/// The socket to the launcher, with a lock that orders the lines written to it.
#[derive(Debug)]
pub(crate) struct Link {
    socket: OwnedFd,
    writing: Mutex<()>,
}

impl Link {
    /// Tells the launcher why this process is about to die. Never waits and never fails, because the process
    /// is already failing for another reason.
    pub(crate) fn note(&self, text: &str) {
        let message = Message::new("note").with("text", text_hex(text, TEXT_MAX_BYTES));
        let _ = self.write(&message, "room for a note", Duration::ZERO);
    }

    /// Tells the launcher what the PEs of this process wait for, and how long each of them has waited, unless
    /// the socket has no room for the line.
    pub(crate) fn tell_waits(&self, text: &str, waited: &[Option<Duration>]) {
        let millis =
            |waited: &Option<Duration>| waited.map_or_else(String::new, |it| it.as_millis().to_string());
        let waited = waited.iter().map(millis).collect::<Vec<_>>().join(",");
        let message = Message::new("waits").with("text", text_hex(text, WAITS_MAX_BYTES));
        // Of very many PEs only the text fits into the line.
        let message = if waited.len() <= WAITS_MAX_BYTES { message.with(WAITED, waited) } else { message };
        let _ = self.write(&message, "room for a line", Duration::ZERO);
    }

    /// Whether the socket is readable.
    fn is_readable(&self) -> bool {
        matches!(poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&Timespec::default())), Ok(1))
    }

    /// Tells the launcher that this process may exit from now on, until it sends another request; and whether
    /// PEs that continue wait for it in vain.
    pub(crate) fn rest(&self, is_missed: bool) {
        let message = marked(Message::new("rest"), is_missed);
        let _ = self.write(&message, "room for a message", Duration::from_secs(1));
    }

    /// Asks the launcher to end the job. `pelago run` also learns which PE asks, and why.
    pub(crate) fn abort(&self, status: i32, told: Option<(usize, &str)>) -> Result<(), PmiError> {
        let message = Message::new("abort").with("exitcode", status);
        let message = match told {
            Some((pe, "")) => message.with("pe", pe),
            Some((pe, words)) => message.with("pe", pe).with("message", text_hex(words, TEXT_MAX_BYTES)),
            None => message,
        };
        self.write(&message, "room for an abort", Duration::from_secs(1))
    }

    /// Whether the launcher has closed its end. Does not wait.
    pub(crate) fn peer_gone(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1))
    }

    fn write(&self, message: &Message, awaited: &'static str, limit: Duration) -> Result<(), PmiError> {
        let line = message.line();
        let mut rest = line.as_bytes();
        let deadline = Instant::now() + limit;
        // A thread that panics here leaves no partial line: one call writes the line, unless the socket is
        // full because its reader has stopped reading.
        let _order = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        while !rest.is_empty() {
            match send(&self.socket, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, awaited, deadline, limit)?,
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(PmiError::Gone(awaited)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns when the socket is ready for `what`, has an error or is closed.
    fn wait(
        &self,
        what: PollFlags,
        awaited: &'static str,
        deadline: Instant,
        limit: Duration,
    ) -> Result<(), PmiError> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(|_| Errno::OVERFLOW)?;
            match poll(&mut [PollFd::new(&self.socket, what)], Some(&left)) {
                Ok(0) => return Err(PmiError::Timeout { awaited, limit }),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A process that has joined a job by PMI-1.
#[derive(Debug)]
pub(crate) struct Client {
    link: Arc<Link>,
    lines: Lines,
    limit: Duration,
    kvs_name: String,
    key_max: usize,
    value_max: usize,
    ours: bool,
}

impl Client {
    /// Joins the job at the other end of `socket`; no response may take longer than `limit`.
    pub(crate) fn join(socket: OwnedFd, limit: Duration) -> Result<Self, PmiError> {
        let link = Arc::new(Link { socket, writing: Mutex::new(()) });
        let lines = Lines::default();
        let (kvs_name, ours) = (String::new(), false);
        let mut client = Self { link, lines, limit, kvs_name, key_max: 64, value_max: 1024, ours };
        let hello = Message::new("init").with("pmi_version", 1).with("pmi_subversion", 1);
        let answer = client.request(&hello, "response_to_init")?;
        client.ours = answer.get(OURS).is_some();
        if answer.get(REPORTS).is_some() {
            client.link.write(&Message::new("hears"), "room for a line", limit)?;
        }
        if client.ours {
            client.limit += LAUNCHER_FIRST;
        }
        // `pelago run` sends all of this in its response to init; other launchers are asked for it.
        let told = answer.get("kvsname").is_some();
        let maxes =
            if told { answer.clone() } else { client.request(&Message::new("get_maxes"), "maxes")? };
        let limit_of = |field, at_most| {
            maxes
                .number(field)
                .and_then(|number| usize::try_from(number).ok())
                .map_or(at_most, |n| n.min(at_most))
        };
        client.key_max = limit_of("keylen_max", 64);
        client.value_max = limit_of("vallen_max", 1024);
        let ask = Message::new("get_my_kvsname");
        let answer = if told { answer } else { client.request(&ask, "my_kvsname")? };
        client.kvs_name =
            answer.get("kvsname").ok_or_else(|| unexpected(&ask, &answer.to_string()))?.to_owned();
        Ok(client)
    }

    /// The socket, for lines that need no response.
    pub(crate) fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link)
    }

    /// Whether the launcher is `pelago run`.
    pub(crate) fn launcher_is_ours(&self) -> bool {
        self.ours
    }

    /// The longest key that [`Client::put`] takes, in characters: the launcher's limit less the number of a
    /// part.
    pub(crate) fn key_max(&self) -> usize {
        self.key_max.saturating_sub(8)
    }

    /// Publishes bytes under a key; other processes see them after the next barrier.
    pub(crate) fn put(&mut self, key: &str, value: &[u8]) -> Result<(), PmiError> {
        for (index, text) in split(value, self.value_max).into_iter().enumerate() {
            let request = Message::new("put").with("kvsname", &self.kvs_name);
            let request = request.with("key", part_key(key, index)).with("value", text);
            let answer = self.request(&request, "put_result")?;
            if !answer.succeeded() {
                return Err(PmiError::Refused { request: request.to_string(), answer: answer.to_string() });
            }
        }
        Ok(())
    }

    /// The bytes under a key, or `None` if no process has put any.
    pub(crate) fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, PmiError> {
        let foreign = || PmiError::Foreign(key.to_owned());
        let Some(first) = self.get_text(key)? else { return Ok(None) };
        let (count, first) = head(&first).ok_or_else(foreign)?;
        let mut text = first.to_owned();
        for index in 1..count {
            text += &self.get_text(&part_key(key, index))?.ok_or_else(foreign)?;
        }
        unhex(&text).map(Some).ok_or_else(foreign)
    }

    /// The node of each rank, if the launcher publishes it.
    pub(crate) fn nodes(&mut self, size: usize) -> Result<Option<Vec<usize>>, PmiError> {
        Ok(self.get_text(MAPPING_KEY)?.and_then(|text| mapping::nodes(&text, size)))
    }

    /// Returns when every process of the job has called it.
    pub(crate) fn barrier(&mut self) -> Result<(), PmiError> {
        self.request(&Message::new("barrier_in"), "barrier_out").map(drop)
    }

    /// Whether the launcher has asked what the PEs of this process wait for. Does not wait.
    pub(crate) fn is_asked(&mut self) -> bool {
        let mut bytes = [0_u8; 2048];
        // Errors are ignored here: the next request detects that the launcher is gone or sends garbage.
        while self.link.is_readable()
            && let Ok((count @ 1.., _)) = recv(&self.link.socket, &mut bytes, RecvFlags::DONTWAIT)
            && self.lines.push(&bytes[..count])
        {}
        let mut is_asked = false;
        while let Some(line) = self.lines.pop() {
            is_asked |= is_question(&line);
        }
        is_asked
    }

    /// Leaves the job. `pelago run` also learns whether PEs that continue wait for this process in vain.
    pub(crate) fn finalize(&mut self, is_missed: bool) -> Result<(), PmiError> {
        let request = marked(Message::new("finalize"), is_missed && self.ours);
        self.request(&request, "finalize_ack").map(drop)
    }

    fn get_text(&mut self, key: &str) -> Result<Option<String>, PmiError> {
        let request = Message::new("get").with("kvsname", &self.kvs_name).with("key", key);
        let answer = self.request(&request, "get_result")?;
        Ok(answer.get("value").filter(|_| answer.succeeded()).map(str::to_owned))
    }

    fn request(&mut self, request: &Message, awaited: &'static str) -> Result<Message, PmiError> {
        self.link.write(request, awaited, self.limit)?;
        let deadline = Instant::now() + self.limit;
        let line = loop {
            match self.lines.pop() {
                // The PE waits for the launcher, which knows what it waits for.
                Some(line) if is_question(&line) => self.link.tell_waits("", &[]),
                Some(line) => break line,
                None => self.read(request, awaited, deadline)?,
            }
        };
        match Message::parse(&line) {
            Some(answer) if answer.command == awaited => Ok(answer),
            _ => Err(unexpected(request, &line)),
        }
    }

    fn read(&mut self, request: &Message, awaited: &'static str, deadline: Instant) -> Result<(), PmiError> {
        self.link.wait(PollFlags::IN, awaited, deadline, self.limit)?;
        let mut bytes = [0_u8; 2048];
        match recv(&self.link.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) | Err(Errno::CONNRESET) => Err(PmiError::Gone(awaited)),
            Ok((count, _)) if self.lines.push(&bytes[..count]) => Ok(()),
            Ok(_) => Err(unexpected(request, "a line without end")),
            Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Marks the message of a process that leaves, if other PEs wait for it in vain.
fn marked(message: Message, is_missed: bool) -> Message {
    if is_missed { message.with(MISSED, 1) } else { message }
}

fn unexpected(request: &Message, answer: &str) -> PmiError {
    PmiError::Unexpected { request: request.to_string(), answer: answer.to_owned() }
}

/// Whether a line of `pelago run` asks what the PEs wait for.
fn is_question(line: &str) -> bool {
    Message::parse(line).is_some_and(|message| message.command == REPORT)
}

/// The text, truncated to what a line can carry, as hexadecimal digits.
fn text_hex(text: &str, max_bytes: usize) -> String {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    hex(&text.as_bytes()[..end])
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;
    use std::thread::{self, JoinHandle};

    use super::super::server::{Event, Server};
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    /// Runs `body` as each PE of a job of our server. Returns the results of the PEs and the server's events.
    fn job<R: Send + 'static>(
        size: usize,
        body: impl Fn(usize, Client) -> R + Clone + Send + 'static,
    ) -> (Vec<R>, Vec<Event>) {
        let (lines, incoming) = mpsc::channel();
        let mut outgoing = Vec::new();
        let mut pes: Vec<JoinHandle<R>> = Vec::new();
        for pe in 0..size {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (reader, lines) = (BufReader::new(ours.try_clone().unwrap()), lines.clone());
            thread::spawn(move || {
                reader.lines().map_while(Result::ok).try_for_each(|line| lines.send((pe, line)))
            });
            outgoing.push(ours);
            let body = body.clone();
            pes.push(thread::spawn(move || body(pe, Client::join(theirs.into(), LIMIT).unwrap())));
        }
        drop(lines);
        let mut server = Server::of_one_node(size);
        let (mut events, mut answers) = (Vec::new(), Vec::new());
        for (pe, line) in incoming {
            events.push(server.handle(pe, &line, &mut answers));
            for (to, answer) in answers.drain(..) {
                outgoing[to].write_all(answer.line().as_bytes()).unwrap();
            }
        }
        (pes.into_iter().map(|pe| pe.join().unwrap()).collect(), events)
    }

    /// A client whose launcher replies to each line with the next of `answers` and then closes its end.
    fn against(answers: &'static [&'static str]) -> Result<Client, PmiError> {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        thread::spawn(move || {
            let reader = BufReader::new(ours.try_clone().unwrap());
            for (_, answer) in reader.lines().zip(answers) {
                ours.write_all(answer.as_bytes()).unwrap();
            }
        });
        Client::join(theirs.into(), LIMIT)
    }

    #[test]
    fn values_of_all_lengths_reach_every_pe() {
        let value = |pe: usize| vec![pe as u8; [0, 1, 500, 506, 507, 5000][pe]];
        let (all, events) = job(6, move |pe, mut client| {
            assert!(client.launcher_is_ours());
            client.put(&format!("address-{pe}"), &value(pe)).unwrap();
            client.barrier().unwrap();
            let all: Vec<_> = (0..6).map(|from| client.get(&format!("address-{from}")).unwrap()).collect();
            assert_eq!(client.get("nothing").unwrap(), None);
            assert_eq!(client.nodes(6).unwrap(), Some(vec![0; 6]));
            client.finalize(false).unwrap();
            all
        });
        for seen in all {
            assert_eq!(seen, (0..6).map(|pe| Some(value(pe))).collect::<Vec<_>>());
        }
        assert!(!events.contains(&Event::Broken));
    }

    #[test]
    fn last_words_pass_a_request_that_waits() {
        let (_, events) = job(2, |pe, mut client| {
            if pe == 0 {
                client.link().note("an é and\na newline");
                client.link().abort(3, Some((5, "why not"))).unwrap();
                client.link().note(&"é".repeat(TEXT_MAX_BYTES));
            }
            client.barrier().unwrap();
        });
        assert!(events.contains(&Event::Hears));
        assert!(events.contains(&Event::Note("an é and\na newline".to_owned())));
        assert!(events.contains(&Event::Note("é".repeat(TEXT_MAX_BYTES / 2))));
        assert!(events.contains(&Event::Abort {
            status: 3,
            pe: Some(5),
            message: Some("why not".to_owned())
        }));
    }

    #[test]
    fn a_launcher_in_other_words() {
        let client = against(&[
            "pmi_subversion=1 cmd=response_to_init rc=0 pmi_version=1\n",
            "cmd=maxes vallen_max=40 keylen_max=30 kvsname_max=256\n",
            "kvsname=kvs_7_0 cmd=my_kvsname\n",
            "cmd=get_result rc=-1 msg=key_x_not_found value=unknown\n",
            "cmd=get_result rc=0 value=unknown\n",
            "cmd=put_result rc=1\n",
        ]);
        let mut client = client.unwrap();
        assert!(!client.launcher_is_ours());
        assert_eq!((client.key_max(), client.value_max, client.kvs_name.as_str()), (22, 40, "kvs_7_0"));
        assert_eq!(client.get("x").unwrap(), None);
        assert!(matches!(client.get("x"), Err(PmiError::Foreign(key)) if key == "x"));
        assert!(matches!(client.put("x", b"1"), Err(PmiError::Refused { .. })));
        let error = client.barrier().unwrap_err();
        assert!(matches!(error, PmiError::Gone("barrier_out" | "put_result")), "{error}");
        assert!(client.link().peer_gone());
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for answers in [
            &["hello\n"][..],
            &["cmd=maxes\n"],
            &["cmd=response_to_init\n", "cmd=maxes\n", "cmd=my_kvsname\n"],
        ] {
            let error = against(answers).unwrap_err();
            assert!(matches!(error, PmiError::Unexpected { .. }), "{answers:?}: {error}");
        }
        assert!(matches!(against(&[]), Err(PmiError::Gone("response_to_init"))));
    }

    #[test]
    fn silence_ends_with_the_limit_and_says_what_was_awaited() {
        let (_ours, theirs) = UnixStream::pair().unwrap();
        let error = Client::join(theirs.into(), Duration::from_millis(5)).unwrap_err();
        assert!(matches!(error, PmiError::Timeout { awaited: "response_to_init", .. }), "{error}");
        assert!(error.to_string().contains("PELAGO_INIT_TIMEOUT"), "{error}");
    }

    #[test]
    fn a_question_is_answered_between_requests_and_within_one() {
        const HELLO: &str =
            "cmd=response_to_init pmi_version=1 rc=0 pelago=1 reports=1 kvsname=k keylen_max=64\n";
        let (ours, theirs) = UnixStream::pair().unwrap();
        let launcher = thread::spawn(move || {
            let mut lines = BufReader::new(ours.try_clone().unwrap()).lines().map(Result::unwrap);
            assert!(lines.next().unwrap().starts_with("cmd=init "));
            (&ours).write_all(HELLO.as_bytes()).unwrap();
            assert_eq!(lines.next().unwrap(), "cmd=hears");
            assert_eq!(lines.next().unwrap(), "cmd=barrier_in");
            (&ours).write_all(b"cmd=report\n").unwrap();
            let told = lines.next().unwrap();
            assert_eq!(told, "cmd=waits text= waited=");
            (&ours).write_all(b"cmd=barrier_out rc=0\ncmd=report\n").unwrap();
            lines.next()
        });
        let mut client = Client::join(theirs.into(), LIMIT).unwrap();
        client.barrier().unwrap();
        let start = Instant::now();
        while !client.is_asked() {
            assert!(start.elapsed() < LIMIT, "waited {LIMIT:?} for the question");
        }
        assert!(!client.is_asked());
        drop(client);
        assert_eq!(launcher.join().unwrap(), None);
    }

    #[test]
    fn an_open_launcher_is_not_gone() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let link = Link { socket: theirs.into(), writing: Mutex::new(()) };
        assert!(!link.peer_gone());
        (&ours).write_all(b"unread").unwrap();
        assert!(!link.peer_gone());
        drop(ours);
        assert!(link.peer_gone());
        link.note("no launcher reads this");
    }
}
