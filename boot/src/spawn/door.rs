//! Door: where other commands ask the launcher about its job.
//!
//! Invariant: nothing here blocks the launcher. A question has a bounded length, the number of commands at a
//! time is bounded, and a thread writes each answer, with a limit of time.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::poller::{Poller, Source};
use crate::jobs::{Files, PES, STATE, folder};

/// The number of commands that may ask at the same time.
const CLIENTS_MAX: usize = 16;
/// The longest question, in bytes.
const QUESTION_MAX_BYTES: usize = 64;
/// How long a command may take to read its answer.
const READ_LIMIT: Duration = Duration::from_secs(5);

/// A question about the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// The state of the job.
    State,
    /// The activity of each PE.
    Pes,
}

/// The record of the job, its socket, and the commands that ask.
pub(super) struct Door {
    files: Files,
    clients: [Option<Client>; CLIENTS_MAX],
}

struct Client {
    stream: UnixStream,
    question: Vec<u8>,
}

impl Door {
    /// Records the job in the folder of the jobs, and listens.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub(super) fn open(path: Option<&str>, record: &str, poller: &Poller) -> io::Result<Self> {
        let folder = folder(path, true)?.ok_or(io::ErrorKind::NotFound)?;
        let files = Files::create(&folder)?;
        files.write(record)?;
        poller.add(Source::Door, &files.listener)?;
        Ok(Self { files, clients: Default::default() })
    }

    /// Admits the commands that wait. One for which there is no place is refused.
    pub(super) fn admit(&mut self, poller: &Poller) {
        while let Ok((stream, _)) = self.files.listener.accept() {
            let Some(place) = self.clients.iter().position(Option::is_none) else { continue };
            let is_ready = stream.set_nonblocking(true).is_ok();
            if is_ready && poller.add(Source::Client(place), &stream).is_ok() {
                self.clients[place] = Some(Client { stream, question: Vec::new() });
            }
        }
    }

    /// Reads from a command; returns its question when that is complete. A command that closes its end or
    /// asks something else is dismissed.
    pub(super) fn hear(&mut self, client: usize, poller: &Poller) -> Option<Question> {
        let place = self.clients.get_mut(client)?;
        let held = place.as_mut()?;
        let mut bytes = [0_u8; QUESTION_MAX_BYTES];
        match held.stream.read(&mut bytes) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return None;
            }
            Ok(count) if count > 0 => held.question.extend_from_slice(&bytes[..count]),
            _ => {
                dismiss(place, poller);
                return None;
            }
        }
        let Some(line) = held.question.strip_suffix(b"\n") else {
            if held.question.len() > QUESTION_MAX_BYTES {
                dismiss(place, poller);
            }
            return None;
        };
        let question = match line {
            line if line == STATE.as_bytes() => Some(Question::State),
            line if line == PES.as_bytes() => Some(Question::Pes),
            _ => None,
        };
        match question {
            // Whether the command is still there shows when the answer is written.
            Some(_) => poller.remove(&held.stream),
            None => dismiss(place, poller),
        }
        question
    }

    /// Sends a command its answer, and closes the connection.
    pub(super) fn reply(&mut self, client: usize, text: String, poller: &Poller) {
        let Some(Client { mut stream, .. }) = self.clients.get_mut(client).and_then(Option::take) else {
            return;
        };
        poller.remove(&stream);
        let write = move || {
            // If the command is gone, nobody needs the answer.
            let _ = stream.set_nonblocking(false);
            let _ = stream.set_write_timeout(Some(READ_LIMIT));
            let _ = stream.write_all(text.as_bytes());
        };
        let _ = std::thread::Builder::new().name("pelago reply".to_owned()).spawn(write);
    }
}

fn dismiss(place: &mut Option<Client>, poller: &Poller) {
    if let Some(client) = place.take() {
        poller.remove(&client.stream);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::fuzzing;

    fn opened(name: &str) -> (Door, Poller, PathBuf, PathBuf) {
        let path = std::env::temp_dir().join(format!("pelago-door-{name}-{}", std::process::id()));
        let poller = Poller::new().unwrap();
        let door = Door::open(path.to_str(), "a record", &poller).unwrap();
        let mut files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        let socket = files.find(|file| file.extension().is_some_and(|ending| ending == "socket")).unwrap();
        (door, poller, path, socket)
    }

    #[test]
    fn fuzz_questions() {
        let (mut door, poller, path, socket) = opened("fuzz");
        let mut asked = 0;
        fuzzing::fuzz_with(50, &["state\n", "pes\n", "what\n"], |input| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            door.admit(&poller);
            let _ = stream.write_all(input);
            drop(stream);
            for client in 0..CLIENTS_MAX {
                while door.clients[client].is_some() {
                    if door.hear(client, &poller).is_some() {
                        asked += 1;
                        door.reply(client, "state\tended\n".to_owned(), &poller);
                    }
                }
            }
        });
        assert!(asked > 0, "no question was understood");
        drop(door);
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "files are left in {path:?}");
        std::fs::remove_dir(&path).unwrap();
    }

    #[test]
    fn more_commands_than_places_are_refused() {
        let (mut door, poller, path, socket) = opened("many");
        let connect = |_| UnixStream::connect(&socket).unwrap();
        let streams: Vec<_> = (0..CLIENTS_MAX + 1).map(connect).collect();
        door.admit(&poller);
        let last = streams.last().unwrap();
        last.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut byte = [0];
        let read = |mut stream: &UnixStream, byte: &mut [u8]| stream.read(byte);
        assert_eq!(read(last, &mut byte).unwrap(), 0, "the connection is closed");
        assert!(door.clients.iter().all(Option::is_some));
        drop(door);
        std::fs::remove_dir(&path).unwrap();
    }
}
