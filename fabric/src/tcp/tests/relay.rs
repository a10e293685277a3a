//! A relay between two processes: it sees all bytes that pass, and may change them.
//!
//! It cuts the bytes that pass into the messages of the handshake and records. That takes no secret.

use super::super::cipher::MESSAGE_BYTES;
use super::super::handshake::{CHALLENGE_BYTES, HELLO_BYTES, PROOF_BYTES, WELCOME_BYTES};
use crate::sync::{AtomicBool, Ordering};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Where a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Caller,
    Called,
}

/// Changes a message on its way. It gets the sender, the number of the message (0 and 1 are the handshake's),
/// and the bytes, and returns the bytes that the relay sends.
pub(super) type Change = Box<dyn FnMut(From, usize, Vec<u8>) -> Vec<u8> + Send>;

/// One direction of a connection.
struct Direction {
    from: From,
    source: TcpStream,
    target: TcpStream,
    /// Bytes that are not a whole message.
    pending: Vec<u8>,
    count: usize,
    encrypts: bool,
}

impl Direction {
    /// The length of the next message, if it is known.
    fn next_bytes(&self) -> Option<usize> {
        let exchange = if self.encrypts { MESSAGE_BYTES } else { 0 };
        match (self.from, self.count) {
            (From::Caller, 0) => Some(HELLO_BYTES),
            (From::Called, 0) => Some(CHALLENGE_BYTES),
            (From::Caller, 1) => Some(PROOF_BYTES + exchange),
            (From::Called, 1) => Some(WELCOME_BYTES + exchange),
            _ if !self.encrypts => Some(self.pending.len().max(1)),
            _ => {
                let length = self.pending.first_chunk::<2>()?;
                Some(2 + usize::from(u16::from_be_bytes(*length)))
            }
        }
    }

    /// Passes on what there is. Returns `false` when the source has closed.
    fn pass(&mut self, change: &mut Change, seen: &Mutex<Vec<u8>>) -> bool {
        let mut bytes = [0; 4096];
        match self.source.read(&mut bytes) {
            Ok(0) => return false,
            Ok(count) => self.pending.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            Err(_) => return false,
        }
        while let Some(bytes) = self.next_bytes().filter(|&bytes| bytes <= self.pending.len()) {
            let message: Vec<u8> = self.pending.drain(..bytes).collect();
            seen.lock().unwrap().extend_from_slice(&message);
            let changed = change(self.from, self.count, message);
            self.count += 1;
            let mut rest = &changed[..];
            while !rest.is_empty() {
                match self.target.write(rest) {
                    Ok(count) => rest = &rest[count..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                    Err(_) => return false,
                }
            }
        }
        true
    }
}

/// A relay to one process. It ends when it is dropped.
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    /// All bytes that it has received.
    pub(super) seen: Arc<Mutex<Vec<u8>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub(super) fn open(to: SocketAddr, encrypts: bool, mut change: Change) -> Relay {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, is_over) = (Arc::<Mutex<Vec<u8>>>::default(), Arc::new(AtomicBool::new(false)));
        let (all, ends) = (Arc::clone(&seen), Arc::clone(&is_over));
        let work = move || {
            let mut connections: Vec<[Direction; 2]> = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                if let Ok((caller, _)) = listener.accept() {
                    let called = TcpStream::connect(to).unwrap();
                    for stream in [&caller, &called] {
                        stream.set_nonblocking(true).unwrap();
                        stream.set_nodelay(true).unwrap();
                    }
                    let direction = |from, source: &TcpStream, target: &TcpStream| Direction {
                        from,
                        source: source.try_clone().unwrap(),
                        target: target.try_clone().unwrap(),
                        pending: Vec::new(),
                        count: 0,
                        encrypts,
                    };
                    connections.push([
                        direction(From::Caller, &caller, &called),
                        direction(From::Called, &called, &caller),
                    ]);
                }
                connections.retain_mut(|both| both.iter_mut().all(|one| one.pass(&mut change, &all)));
                std::thread::yield_now();
            }
        };
        Relay { address, seen, is_over, thread: Some(std::thread::spawn(work)) }
    }

    /// Whether these bytes have passed.
    pub(super) fn has_seen(&self, bytes: &[u8]) -> bool {
        self.seen.lock().unwrap().windows(bytes.len()).any(|window| window == bytes)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the relay has failed");
    }
}
