//! Which connections the poller watches: all of them, except perhaps the only one and its socket for
//! datagrams.
//!
//! The system tells a poller of every arrival at a socket that it watches, also while no thread sleeps. That
//! takes 0.2 us of the 3 us of a short message. A process with one connection and one PE receives from it in
//! each round of progress, and needs no poller to find what has arrived. So after [`ARRIVALS`] arrivals the
//! poller stops watching the socket, until a thread is about to sleep, a second connection is up, or there is
//! no room to send.
//!
//! ```text
//! watched ---- ARRIVALS arrivals, one connection ----> not watched
//!    ^                                                      |
//!    +-- may_sleep, a second connection, no room to send ---+
//! ```
//! Invariant: while a socket is not watched, a descriptor that is always readable is in the poller. So the
//! wait descriptor of a PE is readable whenever something may arrive that the poller does not notice: a
//! thread that sleeps there wakes up, and asks again whether it may sleep. The lock is the last in the order
//! of locks.

use super::datagram::DatagramSocket;
use super::domain::{Domain, Tag};
use super::peer::Peer;
use super::socket::{Interest, Poller};
use crate::sync::{AtomicBool, AtomicU32, Ordering};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Arrivals, since a thread was about to sleep, after which the poller does not watch the only connection. To
/// stop and begin again costs as much as about ten watched arrivals.
pub(super) const ARRIVALS: u32 = 32;

/// The state of the only connection.
pub(super) struct Watch {
    /// Arrivals since a thread was about to sleep.
    arrivals: AtomicU32,
    /// Whether a socket is not watched: a hint, as the lock orders the changes.
    is_off: AtomicBool,
    /// The sockets that are not watched, and their tags.
    unwatched: Mutex<Vec<(RawFd, u64)>>,
    /// An eventfd, which is always readable.
    readable: OwnedFd,
}

impl Watch {
    pub(super) fn new() -> io::Result<Watch> {
        let readable = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (arrivals, is_off) = (AtomicU32::new(0), AtomicBool::new(false));
        Ok(Watch { arrivals, is_off, unwatched: Mutex::default(), readable })
    }

    /// Counts an arrival, and returns whether it is time to stop watching. Threads that count at the same
    /// time may lose an arrival, which does no harm.
    #[inline]
    fn counts_last(&self) -> bool {
        let arrivals = self.arrivals.load(Ordering::Relaxed) + 1;
        let is_last = arrivals >= ARRIVALS && !self.is_off();
        self.arrivals.store(if arrivals >= ARRIVALS { 0 } else { arrivals }, Ordering::Relaxed);
        is_last
    }

    #[inline]
    pub(super) fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    /// Lets the poller watch the sockets again that it does not watch.
    #[cold]
    #[inline(never)]
    fn begin(&self, poller: &Poller) {
        let mut unwatched = self.unwatched.lock();
        unwatched.retain(|&(socket, tag)| poller.add(socket, tag, Interest::Input).is_err());
        self.note_watched(poller, unwatched.is_empty());
    }

    /// Removes a socket from the poller.
    fn end(&self, poller: &Poller, socket: RawFd) {
        let mut unwatched = self.unwatched.lock();
        match unwatched.iter().position(|&(other, _)| other == socket) {
            None => _ = poller.remove(socket),
            Some(place) => {
                unwatched.swap_remove(place);
                self.note_watched(poller, unwatched.is_empty());
            }
        }
    }

    /// Notes whether the poller watches all sockets. Those that it does not watch are locked.
    fn note_watched(&self, poller: &Poller, are_all: bool) {
        if are_all && self.is_off() {
            self.is_off.store(false, Ordering::Relaxed);
            let _ = poller.remove(self.readable.as_raw_fd());
        }
    }
}

impl Domain {
    /// Notes that something has arrived from a peer, whose receiver is locked, over this socket.
    #[inline]
    pub(super) fn note_arrival(&self, peer: &Peer, socket: RawFd) {
        if self.watch.counts_last() {
            self.stop_watching(peer, socket);
        }
    }

    #[cold]
    #[inline(never)]
    fn stop_watching(&self, peer: &Peer, socket: RawFd) {
        let is_only = self.links.load(Ordering::Relaxed) == 1
            && self.last_active.load(Ordering::Relaxed) == peer.process;
        // The service threads of other PEs of the process would be woken each time.
        if !is_only || self.local_pes.len() > 1 {
            return;
        }
        // The poller must keep the socket while it watches for room to send. The queue is locked, so that no
        // thread begins that meanwhile.
        let queue = peer.send_queue();
        let mut unwatched = self.watch.unwatched.lock();
        if queue.watches_room || !unwatched.is_empty() {
            return;
        }
        let (poller, readable) = (&self.poller, self.watch.readable.as_raw_fd());
        if poller.add(readable, Tag::Unwatched.code(), Interest::Input).is_err() {
            return;
        }
        // The connection may have been closed meanwhile.
        if poller.remove(socket).is_err() {
            let _ = poller.remove(readable);
            return;
        }
        unwatched.push((socket, Tag::Peer(peer.process).code()));
        if let Some(datagrams) = peer.datagrams.get().map(DatagramSocket::as_raw)
            && poller.remove(datagrams).is_ok()
        {
            unwatched.push((datagrams, Tag::Datagrams(peer.process).code()));
        }
        self.watch.is_off.store(true, Ordering::Relaxed);
    }

    /// Lets the poller watch all connections, because a thread may be about to sleep.
    #[inline]
    pub(super) fn watch_all(&self) {
        self.watch.arrivals.store(0, Ordering::Relaxed);
        if self.watch.is_off() {
            self.watch.begin(&self.poller);
        }
    }

    /// The same, unless each round of progress receives from the only connection.
    pub(super) fn watch_all_unless_polled(&self) {
        let polled = self.peers.get(self.last_active.load(Ordering::Relaxed));
        let is_polled = polled.is_some_and(|peer| peer.socket().is_some());
        if self.links.load(Ordering::Relaxed) != 1 || !is_polled {
            self.watch_all();
        }
    }

    /// Removes the socket for datagrams of a peer from the poller.
    pub(super) fn forget_datagrams(&self, peer: &Peer) {
        if let Some(socket) = peer.datagrams.get() {
            self.watch.end(&self.poller, socket.as_raw());
        }
    }

    /// Removes the socket of a connection that ends from the poller.
    pub(super) fn forget_socket(&self, socket: RawFd) {
        self.watch.end(&self.poller, socket);
    }
}
