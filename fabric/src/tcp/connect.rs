//! Connecting to another process. No call waits: each step is made when the poller says that it can be.

use super::accept::PROOF_TIME_MAX;
use super::cipher::{Cipher, Exchange};
use super::domain::{Domain, Fault, Tag};
use super::handshake::{self, Call, Side, Terms};
use super::peer::{Attempt, History, Link, Peer, Stage};
use super::socket::{self, Interest, Moved, Watched};
use super::stream::{Opener, Sealer};
use crate::sync::Ordering;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time limit for the challenge in the first attempt at an address; it grows by as much with each further
/// one, because the peer may be a process that the system rarely runs.
const ATTEMPT: Duration = Duration::from_secs(5);
/// The time limit of all attempts together.
const ALL_ATTEMPTS: Duration = Duration::from_secs(60);
/// The time for which a process waits for a descriptor. Nobody may take it for lost before it says so.
pub(super) const SHORTAGE_MAX: Duration = Duration::from_secs(3);
/// The same after a connection was reset.
const ATTEMPTS_AFTER_RESET: Duration = Duration::from_secs(5);
/// The shortest and the longest pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The result of the steps of an attempt.
enum Outcome {
    /// The next message has not arrived.
    Pending,
    /// The connection is proved, and the peer has received this over earlier ones. It has keys if it is
    /// encrypted.
    Proved(u64, Option<Cipher>),
    /// The peer belongs to the job, and no connection to it can be used, for this reason.
    Unusable(String),
}

impl Domain {
    /// Begins to connect to a peer, unless that has begun.
    pub(super) fn connect(&self, peer: &Peer) {
        let mut link = peer.link();
        if !matches!(*link, Link::Idle) {
            return;
        }
        self.n_connecting.fetch_add(1, Ordering::Relaxed);
        *link = self.next_attempt(peer, self.no_attempts(peer, None));
    }

    /// The history of a peer to which this process begins to connect, after a reset if there is a reason.
    pub(super) fn no_attempts(&self, peer: &Peer, reset: Option<String>) -> History {
        let (addresses, reason) = match self.addresses_of(peer.process) {
            Ok(addresses) => (addresses, String::new()),
            Err(reason) => (Vec::new(), reason),
        };
        let (since, has_proved, lacks_descriptors) = (Instant::now(), false, false);
        History { since, count: 0, addresses, reason, reset, refusals: 0, has_proved, lacks_descriptors }
    }

    fn next_attempt(&self, peer: &Peer, mut history: History) -> Link {
        let Some(&address) = history.addresses.get(history.count % history.addresses.len().max(1)) else {
            // The next look at the deadlines ends the attempts.
            return Link::Waiting(Instant::now(), history);
        };
        history.count += 1;
        history.lacks_descriptors = false;
        let begun = socket::connect(address, &self.congestion).and_then(|socket| {
            let tag = Tag::Peer(peer.process).code();
            Ok((Watched::new(socket, &self.poller, tag, Interest::Both)?, handshake::nonce()?))
        });
        match begun {
            Ok((socket, nonce)) => Link::Connecting(Attempt {
                socket,
                stage: Stage::Connecting,
                call: Call { from: self.process as u32, to: peer.process as u32 },
                nonce,
                received: Vec::new(),
                deadline: Instant::now() + ATTEMPT * history.rounds().max(1),
                history,
            }),
            Err(error) => {
                history.lacks_descriptors = socket::lacks_descriptors(&error);
                // Nobody is reached at this address either, unless a descriptor was missing.
                history.refusals += usize::from(!history.lacks_descriptors);
                wait_after(history, format!("{address}: {error}"))
            }
        }
    }

    /// Makes the steps of an attempt that can be made now.
    pub(super) fn advance(&self, peer: &Peer) {
        let mut link = peer.link();
        let Link::Connecting(attempt) = &mut *link else { return };
        let History { count, addresses, .. } = &attempt.history;
        let address = addresses[(count - 1) % addresses.len()];
        match self.step(peer, attempt) {
            Ok(Outcome::Pending) => {}
            Ok(Outcome::Proved(received, cipher)) => {
                if let Err(reason) = peer.check_received(received) {
                    self.n_connecting.fetch_sub(1, Ordering::Relaxed);
                    drop(link);
                    self.lost(peer, "connecting", Some(reason));
                    return;
                }
                let Link::Connecting(attempt) = std::mem::take(&mut *link) else { return };
                self.n_connecting.fetch_sub(1, Ordering::Relaxed);
                *link = self.begin_use(peer, attempt.socket, cipher);
            }
            Ok(Outcome::Unusable(reason)) => {
                self.n_connecting.fetch_sub(1, Ordering::Relaxed);
                drop(link);
                self.lost(peer, "connecting", Some(reason));
            }
            Err(error) => {
                let mut history = attempt.history.clone();
                let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
                history.refusals = if is_refused { history.refusals + 1 } else { 0 };
                *link = wait_after(history, format!("{address}: {error}"));
            }
        }
    }

    /// Makes the next steps.
    fn step(&self, peer: &Peer, attempt: &mut Attempt) -> io::Result<Outcome> {
        let earlier = peer.earlier();
        if matches!(attempt.stage, Stage::Connecting) {
            socket::error_of(&attempt.socket)?;
            socket::set_options(&attempt.socket)?;
            let hello = handshake::hello((attempt.call, self.encrypts, earlier, attempt.nonce));
            if !send_whole(&attempt.socket, &hello)? {
                // The connection is not open yet.
                return Ok(Outcome::Pending);
            }
            let tag = Tag::Peer(attempt.call.to as usize).code();
            self.poller.change(attempt.socket.as_raw_fd(), tag, Interest::Input)?;
            attempt.stage = Stage::Challenged;
        }
        while receive_exactly(&attempt.socket, &mut attempt.received, attempt.stage.expected_bytes())? {
            let message = std::mem::take(&mut attempt.received);
            if let Stage::Proved(_, exchange) = &mut attempt.stage {
                let welcome = handshake::read_welcome(&message);
                let (received, rest) =
                    welcome.ok_or_else(|| io::Error::other("no welcome after the proof"))?;
                let finish = |mut exchange: Exchange| {
                    exchange.read(rest)?;
                    exchange.finish()
                };
                return Ok(Outcome::Proved(received, exchange.take().map(finish).transpose()?));
            }
            let (theirs, nonce, proof) = handshake::read_challenge(&message);
            let (encrypts, nonces) = ([self.encrypts, theirs], [attempt.nonce, nonce]);
            let terms = Terms { secret: self.secret, call: attempt.call, earlier, encrypts, nonces };
            if !terms.is_proved(Side::Accepts, proof) {
                return Err(io::Error::other("it has not proved that it belongs to this job"));
            }
            let (mut answer, mut exchange) = (terms.proof(Side::Connects).to_vec(), None);
            if encrypts == [true; 2] {
                let begun = exchange.insert(Exchange::begin(&terms, Side::Connects)?);
                answer.extend(begun.write()?);
            }
            if !send_whole(&attempt.socket, &answer)? {
                return Err(io::Error::other("the new connection has no room for the proof"));
            }
            if let Err(reason) = terms.are_encrypted() {
                return Ok(Outcome::Unusable(reason));
            }
            attempt.stage = Stage::Proved(terms, exchange);
            attempt.history.has_proved = true;
            // The peer may use the connection from now on, so no other attempt is made.
            attempt.deadline = Instant::now() + PROOF_TIME_MAX;
        }
        Ok(Outcome::Pending)
    }

    /// Begins to use a connection that is proved, and encrypted if it has keys.
    pub(super) fn begin_use(&self, peer: &Peer, socket: Watched, cipher: Option<Cipher>) -> Link {
        let raw = socket.as_raw_fd();
        debug_assert_eq!(cipher.is_some(), self.encrypts, "the setting holds for all connections");
        let cipher = cipher.map(Arc::new);
        let mut receiver = peer.receiver();
        receiver.opener = cipher.clone().map(|cipher| Box::new(Opener::new(cipher)));
        // After a reset, frames may still wait for an inbox, and acknowledgements for a connection.
        self.note_hidden(peer, receiver.has_hidden_work());
        let mut queue = peer.send_queue();
        queue.sealer = cipher.map(|cipher| Box::new(Sealer::new(cipher)));
        queue.socket = Some(raw);
        if peer.connections.load(Ordering::Relaxed) == 0 {
            self.open_datagrams(peer, raw, &mut receiver, &mut queue);
        }
        drop((queue, receiver));
        peer.connections.fetch_add(1, Ordering::Relaxed);
        peer.set_socket(Some(raw));
        self.last_active.store(peer.process, Ordering::Relaxed);
        self.links.fetch_add(1, Ordering::Relaxed);
        self.watch_all();
        self.list_ack(peer);
        self.owed_acks.hurry();
        // The next round of progress sends the frames that have waited for the connection.
        self.list_unsent(peer);
        Link::Up(socket)
    }

    /// Ends the attempts whose time is over, and begins those whose pause is over.
    pub(super) fn check_deadlines(&self) {
        let now = Instant::now();
        self.drop_late_incoming(now);
        self.resume_accepting(now);
        if self.n_connecting.load(Ordering::Relaxed) == 0 {
            return;
        }
        for peer in self.known_peers() {
            let is_over = matches!(&*peer.link(), Link::Connecting(attempt) if now > attempt.deadline);
            if is_over {
                // The poller tells of some descriptors at a time. The answer may have come, and a peer that
                // has sent its welcome uses the connection.
                self.advance(peer);
            }
            let mut link = peer.link();
            match &*link {
                Link::Connecting(attempt) if now > attempt.deadline => {
                    let history = History { refusals: 0, ..attempt.history.clone() };
                    *link = wait_after(history, "no answer".to_owned());
                }
                Link::Waiting(until, history) if now > *until => {
                    let history = history.clone();
                    let limit = match (&history.reset, history.lacks_descriptors) {
                        (Some(_), _) => ATTEMPTS_AFTER_RESET,
                        (None, true) => SHORTAGE_MAX,
                        (None, false) => ALL_ATTEMPTS,
                    };
                    if now - history.since <= limit && !history.is_hopeless() {
                        *link = self.next_attempt(peer, history);
                        continue;
                    }
                    self.n_connecting.fetch_sub(1, Ordering::Relaxed);
                    drop(link);
                    if history.lacks_descriptors {
                        let reason = history.reason.clone();
                        let _ = self.fault.set(Fault::Descriptors("opening a connection", reason));
                    }
                    self.lost(peer, "connecting", Some(history.explain()));
                }
                _ => {}
            }
        }
    }
}

/// The state after a failed attempt.
fn wait_after(mut history: History, reason: String) -> Link {
    history.reason = reason;
    let pause = (PAUSE * 2_u32.saturating_pow(history.rounds().min(10))).min(PAUSE_MAX);
    Link::Waiting(Instant::now() + pause, history)
}

/// Sends a short message on a new connection, which has room for it. Returns `false` if the connection is
/// not open yet.
pub(super) fn send_whole(socket: &OwnedFd, bytes: &[u8]) -> io::Result<bool> {
    let part = socket::part(bytes.as_ptr(), bytes.len());
    // SAFETY: the part is the slice that the caller has lent, and is only read.
    match unsafe { socket::send(socket.as_raw_fd(), &[part]) } {
        Ok(Moved::Bytes(sent)) if sent == bytes.len() => Ok(true),
        Ok(Moved::Nothing) => Ok(false),
        Ok(_) => Err(io::Error::other("the new connection has no room for a short message")),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// Receives until `message` has `bytes` bytes, and reads nothing beyond them. Returns whether it has them.
pub(super) fn receive_exactly(socket: &OwnedFd, message: &mut Vec<u8>, bytes: usize) -> io::Result<bool> {
    while message.len() < bytes {
        let mut buffer = [0; 64];
        let wanted = (bytes - message.len()).min(buffer.len());
        let part = socket::part(buffer.as_mut_ptr(), wanted);
        // SAFETY: the part lies in `buffer`, which no other thread uses.
        let moved = unsafe { socket::receive(socket.as_raw_fd(), &mut [part]) };
        match moved? {
            Moved::Bytes(count) => message.extend_from_slice(&buffer[..count]),
            Moved::Nothing => return Ok(false),
            Moved::End => return Err(io::Error::other("the other side has closed the connection")),
        }
    }
    Ok(bytes > 0)
}
