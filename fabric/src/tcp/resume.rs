//! Connections that are reset, and opened again.
//!
//! A firewall, or a machine that translates addresses, may forget a connection and reset it. Both processes
//! count the bytes that they send and receive, over all connections to each other. When they connect again,
//! each tells the other how many bytes it has received. If the other has sent the same number, nothing was
//! lost, and they go on, even in the middle of a frame. Otherwise the job ends, because a sender does not
//! keep bytes that it has sent. An encrypted connection is not opened again: its bytes are counted within its
//! records.
//!
//! A process may learn late that a connection was reset, or that an attempt of the other is over. So each
//! tells how many connections it has had, and an attempt to open the same connection again is accepted once.
//!
//! Bytes of frames that have travelled in datagrams count as well. Those are kept until they are
//! acknowledged, so the sender sends the missing ones over the new connection, and no datagrams any more.
//!
//! No process waits for one that has died: the system refuses the connection.

use super::datagram::Look;
use super::domain::Domain;
use super::handshake::Earlier;
use super::peer::{History, Link, Peer};
use super::progress::Sink;
use super::socket;
use crate::sync::Ordering;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Instant;

impl Domain {
    /// Whether a connection with this error may be opened again.
    #[cold]
    pub(super) fn can_resume(&self, error: &io::Error) -> bool {
        is_reset(error) && !self.encrypts
    }

    /// Goes on after an error of a send over this socket.
    #[cold]
    pub(super) fn failed_to_send(&self, peer: &Peer, socket: Option<RawFd>, error: &io::Error) {
        match socket {
            Some(socket) if is_reset(error) => self.resume(peer, socket, error.to_string()),
            _ => self.lost(peer, "sending", Some(error.to_string())),
        }
    }

    /// Begins to open the connection to a peer again, unless that was begun or the connection is closed. If
    /// the peer has left, it closes the connection; if that is encrypted, the peer is lost.
    #[cold]
    pub(super) fn resume(&self, peer: &Peer, socket: RawFd, reason: String) {
        let mut link = peer.link();
        if !matches!(&*link, Link::Up(up) if up.as_raw_fd() == socket) {
            return;
        }
        let mut receiver = peer.receiver();
        // The frames that the peer has sent before count. Its goodbye may be among them.
        let (mut frames, sink) = (0, &mut Sink::to_inboxes());
        let place = (socket, Look::Everywhere);
        while self.receive_once(peer, place, &mut receiver, sink, &mut frames).is_none() {}
        if receiver.holds_frames_back() {
            // An inbox has no room for more. A later round of progress receives the rest, and finds the end.
            self.note_hidden(peer, receiver.has_hidden_work());
            return;
        }
        self.forget_socket(socket);
        self.forget_datagrams(peer);
        socket::shut_down(socket);
        receiver.end_datagrams();
        let mut queue = peer.send_queue();
        if receiver.has_left && !queue.is_awaited() {
            drop((queue, receiver, link));
            self.close(peer);
            return;
        }
        if self.encrypts {
            drop((queue, receiver, link));
            return self.lost(peer, "sending", Some(reason));
        }
        peer.set_socket(None);
        queue.socket = None;
        queue.watches_room = false;
        queue.give_datagrams_up();
        receiver.opener = None;
        drop((queue, receiver));
        self.links.fetch_sub(1, Ordering::Relaxed);
        self.n_connecting.fetch_add(1, Ordering::Relaxed);
        let waiting = Link::Waiting(Instant::now(), self.no_attempts(peer, Some(reason)));
        if let Link::Up(socket) = std::mem::replace(&mut *link, waiting) {
            *peer.retired.lock() = Some(socket);
        }
    }

    /// Gives up the connection to a peer. Only the peer has noticed that it was reset.
    pub(super) fn yield_to_resumed(&self, peer: &Peer, earlier: Earlier) {
        let is_this = earlier.connections == peer.connections.load(Ordering::Relaxed);
        if let Some(socket) = peer.socket().filter(|_| is_this) {
            self.resume(peer, socket, "the peer has found it reset".to_owned());
        }
    }
}

/// Whether a call has failed because the connection was reset.
fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::NotConnected)
}

impl Peer {
    /// The connections so far.
    pub(super) fn earlier(&self) -> Earlier {
        let connections = self.connections.load(Ordering::Relaxed);
        Earlier { connections, received: self.receiver().received_bytes }
    }

    /// Whether the peer has received all that was sent to it over earlier connections. The bytes of the last
    /// datagrams that it lacks are sent again. An error describes what is lost.
    pub(super) fn check_received(&self, received: u64) -> Result<(), String> {
        let mut queue = self.send_queue();
        let sent = queue.sent_bytes;
        if received == sent || queue.repeat_missing(received) {
            return Ok(());
        }
        let lost = sent.wrapping_sub(received);
        Err(format!("the connection was reset, and {lost} of the {sent} bytes that were sent to it are lost"))
    }
}

impl History {
    /// Whether there is no address to connect to, or no process can accept a connection after a reset.
    pub(super) fn is_hopeless(&self) -> bool {
        self.addresses.is_empty() || self.reset.is_some() && self.is_refused_everywhere()
    }

    /// Why there is no connection.
    pub(super) fn explain(self) -> String {
        match self.reset {
            Some(reset) => format!("{reset}; connecting again: {}", self.reason),
            None => self.reason,
        }
    }
}
