//! Incoming connections. Before a connection is proved, nothing that arrives on it reaches memory, and it is
//! not the connection to a peer.

use super::cipher::Exchange;
use super::connect::{SHORTAGE_MAX, receive_exactly, send_whole};
use super::domain::{Domain, Fault, Tag};
use super::handshake::{self, HELLO_BYTES, PROOF_BYTES, Side, Terms};
use super::peer::{Attempt, Link};
use super::socket::{self, Interest, Watched};
use crate::sync::Ordering;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// The time limit for a hello.
const HELLO_TIME: Duration = Duration::from_secs(5);
/// The time limit for the proof of a process that has said hello, and for the welcome after the proof. The
/// system may run it rarely.
pub(super) const PROOF_TIME_MAX: Duration = Duration::from_secs(30);
/// The most incoming connections at a time, so that strangers cannot use up the descriptors. The oldest one
/// is closed first.
const INCOMING_MAX: usize = 256;
/// The time that each of them has in any case, as members may come in crowds. The rest wait at the listener.
const KEPT: Duration = Duration::from_millis(if cfg!(test) { 3000 } else { 100 });
/// The pause before the process tries to accept a connection again for which it had no descriptor.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(20);

/// A connection that was accepted and is not proved.
pub(super) struct Incoming {
    pub(super) socket: Watched,
    /// The received part of the message that is expected.
    received: Vec<u8>,
    /// The terms of the connection. `None` before the challenge is sent.
    challenged: Option<Terms>,
    /// The exchange of keys, once the proof is there.
    exchange: Option<Exchange>,
    since: Instant,
    pub(super) deadline: Instant,
}

/// A time in which connections wait at a listener and the process, or the system, has no descriptor free.
/// The poller does not watch the listeners meanwhile, as it would report them all the time.
pub(super) struct Shortage {
    /// When it began, or when a connection was accepted last.
    pub(super) since: Instant,
    /// When the process tries again.
    until: Instant,
}

impl Domain {
    /// Accepts the connections that wait at a listener. If the process has no free descriptor, they wait for
    /// one.
    pub(super) fn accept(&self, listener: usize) {
        let is_full = |all: &[Incoming]| all.len() == INCOMING_MAX && all[0].since.elapsed() < KEPT;
        while !is_full(&self.incoming.lock()) {
            let socket = match socket::accept(&self.listeners[listener]) {
                Ok(Some(socket)) => socket,
                Err(error) if socket::lacks_descriptors(&error) => {
                    return self.pause_accepting(listener, &error);
                }
                _ => return,
            };
            let tag = Tag::Incoming(socket.as_raw_fd().unsigned_abs()).code();
            let watched = socket::set_options(&socket)
                .and_then(|()| Watched::new(socket, &self.poller, tag, Interest::Input));
            let Ok(socket) = watched else { continue };
            let mut incoming = self.incoming.lock();
            if incoming.len() == INCOMING_MAX {
                incoming.remove(0);
            }
            let since = Instant::now();
            let deadline = since + HELLO_TIME;
            if let Some(shortage) = self.shortage.lock().as_mut() {
                shortage.since = since;
            }
            let (received, challenged, exchange) = (Vec::new(), None, None);
            incoming.push(Incoming { socket, received, challenged, exchange, since, deadline });
            self.n_incoming.store(incoming.len(), Ordering::Relaxed);
        }
    }

    /// Lets the connections at a listener wait for a descriptor. If none is free for a long time, the job
    /// cannot go on.
    #[cold]
    fn pause_accepting(&self, listener: usize, error: &io::Error) {
        // The system looks for a descriptor before it looks for a connection.
        if !socket::has_input(&self.listeners[listener]) {
            return;
        }
        let (now, mut shortage) = (Instant::now(), self.shortage.lock());
        let since = shortage.as_ref().map_or(now, |shortage| shortage.since);
        if now - since > SHORTAGE_MAX {
            let _ = self.fault.set(Fault::Descriptors("accepting a connection", error.to_string()));
        }
        self.watch_listeners(Interest::Nothing);
        *shortage = Some(Shortage { since, until: now + SHORTAGE_PAUSE });
        self.is_short.store(true, Ordering::Relaxed);
    }

    /// Tries to accept the connections that wait for a descriptor, after a pause.
    pub(super) fn resume_accepting(&self, now: Instant) {
        let is_due = || self.shortage.lock().as_ref().is_some_and(|shortage| shortage.until <= now);
        if !self.is_short.load(Ordering::Relaxed) || !is_due() {
            return;
        }
        for listener in 0..self.listeners.len() {
            if socket::has_input(&self.listeners[listener]) {
                self.accept(listener);
            }
        }
        let mut shortage = self.shortage.lock();
        if shortage.take_if(|shortage| shortage.until <= now).is_some() {
            self.watch_listeners(Interest::Input);
            self.is_short.store(false, Ordering::Relaxed);
        }
    }

    fn watch_listeners(&self, interest: Interest) {
        for (listener, i) in self.listeners.iter().zip(0..) {
            // The poller has the listener and needs no memory for the change.
            let _ = self.poller.change(listener.as_raw_fd(), Tag::Listener(i).code(), interest);
        }
    }

    /// Makes the steps of an incoming connection that can be made now.
    pub(super) fn advance_incoming(&self, socket: u32) {
        let mut incoming = self.incoming.lock();
        let is_it = |one: &Incoming| one.socket.as_raw_fd().unsigned_abs() == socket;
        let Some(place) = incoming.iter().position(is_it) else { return };
        let one = &mut incoming[place];
        // The other process gives its attempt up at about that time, and would not know of the connection.
        let is_late = one.challenged.is_some() && one.deadline <= Instant::now();
        let outcome = if is_late { Err(io::ErrorKind::TimedOut.into()) } else { self.step_incoming(one) };
        if let Ok(false) = outcome {
            return;
        }
        let one = incoming.remove(place);
        self.n_incoming.store(incoming.len(), Ordering::Relaxed);
        drop(incoming);
        if outcome.is_ok() {
            // If the other process has closed it meanwhile, the connection is closed here.
            let _ = self.admit(one);
        }
    }

    /// Makes the next step. Returns whether the connection is proved.
    fn step_incoming(&self, one: &mut Incoming) -> io::Result<bool> {
        let bytes = one.challenged.map_or(HELLO_BYTES, |terms| PROOF_BYTES + terms.exchange_bytes());
        if !receive_exactly(&one.socket, &mut one.received, bytes)? {
            return Ok(false);
        }
        let message = std::mem::take(&mut one.received);
        if let Some(terms) = one.challenged {
            let (proof, theirs) = message.split_at(PROOF_BYTES);
            if !terms.is_proved(Side::Connects, proof) {
                return Err(io::Error::other("it has not proved that it belongs to this job"));
            }
            if !theirs.is_empty() {
                let mut exchange = Exchange::begin(&terms, Side::Accepts)?;
                exchange.read(theirs)?;
                one.exchange = Some(exchange);
            }
            return Ok(true);
        }
        let hello = message.as_slice().try_into().expect("it has the length of a hello");
        let hello = handshake::read_hello(hello).ok_or_else(|| io::Error::other("no hello"))?;
        let (call, encrypts, earlier, theirs) = hello;
        let is_for_this_process = call.to as usize == self.process
            && call.from as usize != self.process
            && (call.from as usize) < self.peers.len();
        if !is_for_this_process {
            return Err(io::Error::other("a hello for another process"));
        }
        let (encrypts, nonces) = ([encrypts, self.encrypts], [theirs, handshake::nonce()?]);
        let terms = Terms { secret: self.secret, call, earlier, encrypts, nonces };
        one.challenged = Some(terms);
        one.deadline = Instant::now() + PROOF_TIME_MAX;
        if !send_whole(&one.socket, &handshake::challenge(&terms))? {
            return Err(io::Error::other("the new connection has no room for the challenge"));
        }
        Ok(false)
    }

    /// Uses a proved connection as the connection to its process, unless this process has a connection to it,
    /// or is to open one.
    fn admit(&self, one: Incoming) -> io::Result<()> {
        let terms = one.challenged.expect("a proved connection was challenged");
        let peer = self.peer(terms.call.from as usize);
        if let Err(reason) = terms.are_encrypted() {
            self.lost(peer, "connecting", Some(reason));
            return Ok(());
        }
        if terms.earlier.connections > 0 {
            self.yield_to_resumed(peer, terms.earlier);
        }
        let mut link = peer.link();
        if terms.earlier.connections != peer.connections.load(Ordering::Relaxed) {
            // Both processes have connected meanwhile, or the caller does not know yet that its connection
            // was reset.
            return Ok(());
        }
        match &*link {
            Link::Up(_) | Link::Closed { .. } => return Ok(()),
            Link::Connecting(Attempt { history, .. }) | Link::Waiting(_, history)
                if self.process < peer.process && history.has_proved =>
            {
                return Ok(());
            }
            Link::Connecting(_) | Link::Waiting(..) | Link::Idle => {}
        }
        let tag = Tag::Peer(peer.process).code();
        self.poller.change(one.socket.as_raw_fd(), tag, Interest::Input)?;
        let end_attempts = |link: &Link| {
            if matches!(link, Link::Connecting(_) | Link::Waiting(..)) {
                self.n_connecting.fetch_sub(1, Ordering::Relaxed);
            }
        };
        if let Err(reason) = peer.check_received(terms.earlier.received) {
            end_attempts(&link);
            drop(link);
            self.lost(peer, "connecting", Some(reason));
            return Ok(());
        }
        let mut welcome = handshake::welcome(peer.earlier().received);
        let mut cipher = None;
        if let Some(mut exchange) = one.exchange {
            welcome.extend(exchange.write()?);
            cipher = Some(exchange.finish()?);
        }
        if !send_whole(&one.socket, &welcome)? {
            return Err(io::Error::other("the new connection has no room for the welcome"));
        }
        // An error before leaves the own attempts as they are.
        end_attempts(&link);
        *link = self.begin_use(peer, one.socket, cipher);
        Ok(())
    }

    /// Closes incoming connections that have not been proved in time.
    pub(super) fn drop_late_incoming(&self, now: Instant) {
        let mut incoming = self.incoming.lock();
        incoming.retain(|one| one.deadline > now);
        self.n_incoming.store(incoming.len(), Ordering::Relaxed);
    }
}
