//! Another process, and the states of the connection to it.
//!
//! ```text
//! Idle --connect--> Connecting --welcome--> Up --goodbye, or the connection is lost--> Closed
//!   |                 |    ^                ^ |
//!   |            failed    after a pause    | |
//!   |                 v    |                | |
//!   |                Waiting ---------------+ |
//!   |                   ^---------------------+   the connection is reset (resume.rs)
//!   +---------------------------------------+     an incoming connection is proved
//! ```
//! Both processes may connect to each other at once. The process with the lower number then refuses the
//! incoming connection, if it has sent its own proof, so that the other one may use that connection; the one
//! with the higher number accepts it in place of its own. One connection is left.

use super::cipher::Exchange;
use super::datagram::DatagramSocket;
use super::handshake::{CHALLENGE_BYTES, Call, Nonce, Terms, WELCOME_BYTES};
use super::receiver::Receiver;
use super::send_queue::SendQueue;
use super::socket::Watched;
use crate::sync::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use parking_lot::{Mutex, MutexGuard};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::time::Instant;

/// The value of `socket` while there is no connection.
const NO_SOCKET: i32 = -1;

/// The stage of an attempt to connect.
pub(super) enum Stage {
    /// The system opens the connection.
    Connecting,
    /// The hello is sent. The challenge has not arrived.
    Challenged,
    /// The proof is sent. The welcome has not arrived.
    Proved(Terms, Option<Exchange>),
}

impl Stage {
    /// The length of the message that is expected next, in bytes.
    pub(super) fn expected_bytes(&self) -> usize {
        match self {
            Stage::Connecting => 0,
            Stage::Challenged => CHALLENGE_BYTES,
            Stage::Proved(terms, _) => WELCOME_BYTES + terms.exchange_bytes(),
        }
    }
}

/// An attempt to connect.
pub(super) struct Attempt {
    pub(super) socket: Watched,
    pub(super) stage: Stage,
    pub(super) call: Call,
    pub(super) nonce: Nonce,
    /// The received part of the message that is expected.
    pub(super) received: Vec<u8>,
    pub(super) deadline: Instant,
    pub(super) history: History,
}

/// The attempts to connect so far.
#[derive(Clone)]
pub(super) struct History {
    /// The time of the first attempt.
    pub(super) since: Instant,
    pub(super) count: usize,
    /// The addresses of the peer, which are tried in turn.
    pub(super) addresses: Vec<SocketAddr>,
    /// The reason why the last attempt failed.
    pub(super) reason: String,
    /// Whether the connection takes the place of one that was reset, and why that was.
    pub(super) reset: Option<String>,
    /// How many attempts in a row the system has refused: nobody listens at these addresses.
    pub(super) refusals: usize,
    /// Whether the proof was sent in an attempt: the peer may use that connection.
    pub(super) has_proved: bool,
    /// Whether the last attempt has failed because no descriptor was free.
    pub(super) lacks_descriptors: bool,
}

impl History {
    /// How often all addresses were tried.
    pub(super) fn rounds(&self) -> u32 {
        (self.count / self.addresses.len().max(1)) as u32
    }

    /// Whether the system has refused the last attempts at all addresses.
    pub(super) fn is_refused_everywhere(&self) -> bool {
        self.refusals > 0 && self.refusals >= self.addresses.len()
    }
}

/// The state of a connection.
#[derive(Default)]
pub(super) enum Link {
    #[default]
    Idle,
    Connecting(Attempt),
    /// The next attempt follows at this time.
    Waiting(Instant, History),
    Up(Watched),
    /// Nothing more is sent. The descriptor stays open, as another thread may be about to use it.
    Closed {
        _socket: Option<Watched>,
    },
}

/// Another process. Lock order: link, receiver, send queue.
pub(super) struct Peer {
    pub(super) process: usize,
    link: Mutex<Link>,
    receiver: Mutex<Receiver>,
    send_queue: Mutex<SendQueue>,
    socket: AtomicI32,
    /// Connections so far.
    pub(super) connections: AtomicU32,
    /// The last socket that was reset. It stays open, as another thread may be about to use it.
    pub(super) retired: Mutex<Option<Watched>>,
    /// The socket for datagrams. It stays open, as another thread may be about to use it.
    pub(super) datagrams: OnceLock<DatagramSocket>,
    /// Puts and messages of the peer that were executed here.
    executed: AtomicU32,
    /// The last count that was sent to the peer.
    acknowledged: AtomicU32,
    /// Whether the peer is in the domain's list of those that are owed an acknowledgement.
    pub(super) is_ack_listed: AtomicBool,
    /// Whether the receiver has work that the poller does not announce. It is set with the receiver locked.
    pub(super) has_hidden_work: AtomicBool,
}

impl Peer {
    pub(super) fn new(process: usize) -> Peer {
        Peer {
            process,
            link: Mutex::default(),
            receiver: Mutex::default(),
            send_queue: Mutex::default(),
            socket: AtomicI32::new(NO_SOCKET),
            connections: AtomicU32::new(0),
            retired: Mutex::default(),
            datagrams: OnceLock::new(),
            executed: AtomicU32::new(0),
            acknowledged: AtomicU32::new(0),
            is_ack_listed: AtomicBool::new(false),
            has_hidden_work: AtomicBool::new(false),
        }
    }

    /// Whether the peer takes no more bytes: the connection is closed, or nobody accepts one at its
    /// addresses.
    pub(super) fn takes_nothing(&self) -> bool {
        match &*self.link() {
            Link::Closed { .. } => true,
            Link::Waiting(_, history) => history.is_refused_everywhere(),
            _ => false,
        }
    }

    pub(super) fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock()
    }

    #[inline]
    pub(super) fn send_queue(&self) -> MutexGuard<'_, SendQueue> {
        self.send_queue.lock()
    }

    /// The receiver, unless another thread uses it.
    #[inline]
    pub(super) fn try_receiver(&self) -> Option<MutexGuard<'_, Receiver>> {
        self.receiver.try_lock()
    }

    /// The receiver. For the end of an endpoint: others do not wait for it.
    pub(super) fn receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock()
    }

    /// The socket of the connection, if it is up.
    #[inline]
    pub(super) fn socket(&self) -> Option<RawFd> {
        // SYNC POINT up: acquires the state that was prepared for the connection.
        Some(self.socket.load(Ordering::Acquire)).filter(|&socket| socket != NO_SOCKET)
    }

    pub(super) fn set_socket(&self, socket: Option<RawFd>) {
        // SYNC POINT up: releases the state that was prepared for the connection.
        self.socket.store(socket.unwrap_or(NO_SOCKET), Ordering::Release);
    }

    /// Counts a put or message of the peer that was executed here.
    #[inline]
    pub(super) fn count_executed(&self) {
        // SYNC POINT executed: releases the data that it has written.
        self.executed.fetch_add(1, Ordering::Release);
    }

    /// The count that the next frame carries.
    #[inline]
    pub(super) fn acks_to_send(&self) -> u32 {
        // SYNC POINT executed: acquires the data that were written.
        let executed = self.executed.load(Ordering::Acquire);
        self.acknowledged.store(executed, Ordering::Relaxed);
        executed
    }

    /// The puts and messages that no frame has acknowledged yet.
    #[inline]
    pub(super) fn owed_acks(&self) -> u32 {
        self.executed.load(Ordering::Relaxed).wrapping_sub(self.acknowledged.load(Ordering::Relaxed))
    }
}
