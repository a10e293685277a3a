//! Progress: polling of the connections, acknowledgements, and the end of connections.
//!
//! Any thread that polls receives for all PEs of the process. With one connection, a round is one system
//! call: it reads from the peer that has sent something last. It calls epoll only if that peer has sent
//! nothing, and once in [`ROUNDS_PER_EPOLL`] rounds.

use super::completion_queue::CompletionQueue;
use super::datagram::Look;
use super::domain::{Domain, Fault, Tag};
use super::frame::Kind;
use super::peer::{Link, Peer};
use super::receiver::{Received, Receiver};
use super::send_queue::SendQueue;
use super::socket;
use crate::sync::Ordering;
use crate::types::Event;
use parking_lot::MutexGuard;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rounds between two calls of epoll while there is one connection, and between two looks at acknowledgements
/// while frames arrive.
const ROUNDS_PER_EPOLL: u32 = 16;
/// Receives from one connection in one round.
const RECEIVES_MAX: usize = 8;
/// The time limit for sending the last frames.
const LINGER: Duration = Duration::from_secs(2);
/// The same in tests, where a goodbye that is not sent in this time is a mistake: longer than any delay of a
/// peer that receives.
const LINGER_STRICTLY: Duration = Duration::from_secs(10);
/// The pause between two attempts to send them.
const LINGER_PAUSE: Duration = Duration::from_micros(100);

/// The handler of an endpoint's events.
type Handler<'a> = dyn FnMut(Event<'_>) + 'a;

/// The endpoint that polls, if it receives messages. Its messages go to its handler, and messages for other
/// PEs to their inboxes.
pub(super) struct Sink<'a, 'b> {
    /// The number of the PE within the process, and the handler.
    pub(super) own: Option<(usize, &'a mut Handler<'b>)>,
    /// Events that were handed to it.
    pub(super) events: usize,
}

impl Sink<'_, '_> {
    /// All messages go to inboxes.
    pub(super) fn to_inboxes() -> Sink<'static, 'static> {
        Sink { own: None, events: 0 }
    }
}

/// The reason to stop receiving from a connection.
pub(super) enum Stop {
    /// There is nothing more now.
    Empty,
    /// The peer has closed the connection.
    End,
    /// The connection, or a frame, is broken.
    Broken(String),
    /// The connection was reset.
    Reset(String),
}

impl Domain {
    /// Makes a round of progress. Returns the number of frames that were executed.
    pub(super) fn poll(&self, sink: &mut Sink<'_, '_>) -> usize {
        if !self.gathering.is_empty() && self.rounds_to_gather.are_over() {
            self.end_gathering();
        }
        self.flush_unsent();
        let links = self.links.load(Ordering::Relaxed);
        let mut frames = 0;
        if self.n_hidden.load(Ordering::Relaxed) > 0 {
            frames += self.receive_hidden(sink);
        }
        if links > 0
            && let Some(peer) = self.peers.get(self.last_active.load(Ordering::Relaxed))
            && let Some(socket) = peer.socket()
        {
            frames += self.receive_from(peer, (socket, Look::Likely), sink);
        }
        // Threads that count at the same time may lose a round, which does no harm.
        let round = self.rounds.load(Ordering::Relaxed).wrapping_add(1);
        self.rounds.store(round, Ordering::Relaxed);
        let is_regular = round.is_multiple_of(ROUNDS_PER_EPOLL);
        if frames == 0 && links > 1 || is_regular || self.n_connecting.load(Ordering::Relaxed) > 0 {
            frames += self.poll_descriptors(sink);
        }
        // While frames of one peer arrive in every round, another may wait.
        if frames == 0 && self.owed_acks.are_due() || is_regular && self.owed_acks.are_urgent() {
            self.acknowledge();
        }
        frames
    }

    fn poll_descriptors(&self, sink: &mut Sink<'_, '_>) -> usize {
        let (mut room, mut frames) = ([0; 32], 0);
        self.watch_all_unless_polled();
        for &tag in self.poller.ready(&mut room) {
            match Tag::of(tag) {
                Tag::Peer(process) => match self.peer(process) {
                    peer if peer.socket().is_none() => self.advance(peer),
                    peer => frames += self.receive_announced(peer, Look::Connection, sink),
                },
                Tag::Datagrams(process) => {
                    frames += self.receive_announced(self.peer(process), Look::Datagrams, sink);
                }
                Tag::Listener(i) => self.accept(i as usize),
                Tag::Incoming(socket) => self.advance_incoming(socket),
                Tag::Tick => self.tick(),
                Tag::Doorbell | Tag::Unwatched => {}
            }
        }
        let n_opening = self.n_connecting.load(Ordering::Relaxed) + self.n_incoming.load(Ordering::Relaxed);
        if n_opening > 0 || self.is_short.load(Ordering::Relaxed) {
            let now = self.opened.elapsed().as_millis() as u64;
            if self.checked.swap(now, Ordering::Relaxed) != now {
                self.check_deadlines();
            }
        }
        frames
    }

    /// Receives where the poller has announced something.
    fn receive_announced(&self, peer: &Peer, look: Look, sink: &mut Sink<'_, '_>) -> usize {
        let Some(socket) = peer.socket() else { return 0 };
        let frames = self.receive_from(peer, (socket, look), sink);
        if frames > 0 {
            self.last_active.store(peer.process, Ordering::Relaxed);
        }
        frames
    }

    /// Executes the frames that have arrived from peers and that the poller does not announce.
    #[cold]
    fn receive_hidden(&self, sink: &mut Sink<'_, '_>) -> usize {
        let mut frames = 0;
        for peer in self.known_peers().filter(|peer| peer.has_hidden_work.load(Ordering::Relaxed)) {
            frames += self.receive(peer, sink);
            if peer.socket().is_none()
                && let Some(_receiver) = peer.try_receiver()
            {
                self.note_hidden(peer, false);
            }
        }
        frames
    }

    /// Notes whether a peer, whose receiver is locked, has work that the poller does not announce.
    #[inline]
    pub(super) fn note_hidden(&self, peer: &Peer, is_hidden: bool) {
        if peer.has_hidden_work.load(Ordering::Relaxed) != is_hidden {
            peer.has_hidden_work.store(is_hidden, Ordering::Relaxed);
            match is_hidden {
                true => self.n_hidden.fetch_add(1, Ordering::Relaxed),
                false => self.n_hidden.fetch_sub(1, Ordering::Relaxed),
            };
        }
    }

    /// Receives from a peer and executes its frames, unless another thread does so. Returns their number.
    #[inline]
    pub(super) fn receive(&self, peer: &Peer, sink: &mut Sink<'_, '_>) -> usize {
        peer.socket().map_or(0, |socket| self.receive_from(peer, (socket, Look::Everywhere), sink))
    }

    /// Receives from a peer over this socket, or in datagrams.
    #[inline]
    pub(super) fn receive_from(
        &self,
        peer: &Peer,
        (socket, look): (RawFd, Look),
        sink: &mut Sink<'_, '_>,
    ) -> usize {
        let Some(mut receiver) = peer.try_receiver() else { return 0 };
        // Another thread may have found the connection reset, and have shut it down.
        if peer.socket() != Some(socket) {
            return 0;
        }
        let (mut frames, mut stop) = (0, None);
        for _ in 0..RECEIVES_MAX {
            stop = self.receive_once(peer, (socket, look), &mut receiver, sink, &mut frames);
            if stop.is_some() {
                break;
            }
        }
        let goes_on = matches!(stop, None | Some(Stop::Empty));
        receiver.note_received();
        self.note_hidden(peer, goes_on && receiver.has_hidden_work());
        if goes_on && frames > 0 {
            self.note_arrival(peer, socket);
        }
        match stop {
            None | Some(Stop::Empty) => drop(receiver),
            Some(Stop::End) => self.ended(peer, socket, receiver),
            Some(Stop::Broken(reason)) => {
                drop(receiver);
                self.lost(peer, "receiving", Some(reason));
            }
            Some(Stop::Reset(reason)) => {
                drop(receiver);
                self.resume(peer, socket, reason);
            }
        }
        if frames > 0 {
            self.flush_unsent();
        }
        frames
    }

    /// Executes the frames that an inbox had no room for, receives once, and executes what has arrived.
    #[inline]
    pub(super) fn receive_once(
        &self,
        peer: &Peer,
        (socket, look): (RawFd, Look),
        receiver: &mut Receiver,
        sink: &mut Sink<'_, '_>,
        frames: &mut usize,
    ) -> Option<Stop> {
        let broken = |what| Stop::Broken(format!("it has sent {what}"));
        if receiver.has_bytes() {
            if let Err(what) = self.execute_frames(peer, receiver, sink, frames) {
                return Some(broken(what));
            }
            if receiver.is_full() {
                return Some(Stop::Empty);
            }
        }
        let received = match receiver.receive(socket, look) {
            Ok(received) => received,
            // A peer that has said goodbye may reset the connection.
            Err(_) if receiver.has_left => Received::End,
            Err(error) if self.can_resume(&error) => return Some(Stop::Reset(error.to_string())),
            Err(error) => return Some(Stop::Broken(error.to_string())),
        };
        match received {
            Received::Nothing => return Some(Stop::Empty),
            Received::End => return Some(Stop::End),
            Received::Full | Received::All => {}
        }
        if let Err(what) = self.execute_frames(peer, receiver, sink, frames) {
            return Some(broken(what));
        }
        (received == Received::All).then_some(Stop::Empty)
    }

    /// Sends the bytes that earlier rounds have left.
    #[inline]
    pub(super) fn flush_unsent(&self) {
        if !self.unsent.is_empty() {
            self.flush_listed();
        }
    }

    /// Sends the messages that are gathered with the next unsent bytes.
    #[cold]
    #[inline(never)]
    pub(super) fn end_gathering(&self) {
        for process in self.gathering.take() {
            let mut queue = self.peer(process).send_queue();
            queue.is_gathering = false;
            if queue.has_unsent() && !queue.is_listed {
                queue.is_listed = true;
                self.unsent.add(process);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn flush_listed(&self) {
        for process in self.unsent.take() {
            let peer = self.peer(process);
            let mut queue = peer.send_queue();
            let flushed = queue.flush();
            queue.is_listed = matches!(flushed, Ok(false));
            if queue.is_listed {
                self.unsent.add(process);
            }
            let watches = queue.is_listed;
            self.watch_room(peer, &mut queue, watches);
            let socket = queue.socket;
            drop(queue);
            if let Err(error) = flushed {
                self.failed_to_send(peer, socket, &error);
            }
        }
    }

    /// Leaves the bytes of a peer's queue for the next round of progress.
    pub(super) fn list_unsent(&self, peer: &Peer) {
        self.list_queue(peer, &mut peer.send_queue());
    }

    /// The same, for a queue that is locked.
    #[inline]
    pub(super) fn list_queue(&self, peer: &Peer, queue: &mut SendQueue) {
        if !queue.is_listed {
            queue.is_listed = true;
            self.unsent.add(peer.process);
        }
    }

    /// Lets a later round acknowledge what was executed for a peer, unless another frame does it first.
    #[inline]
    pub(super) fn list_ack(&self, peer: &Peer) {
        // SYNC POINT owed_acks: the thread that takes the peer from the list sees the count.
        if !peer.is_ack_listed.swap(true, Ordering::AcqRel) {
            self.owed_acks.peers.add(peer.process);
        }
    }

    /// Sends the acknowledgements that no other frame has carried.
    pub(super) fn acknowledge(&self) {
        for process in self.owed_acks.peers.take() {
            let peer = self.peer(process);
            // SYNC POINT owed_acks: acquires the count of the thread that has found the peer in the list.
            // One access does both: a store could become visible after the load of the count.
            peer.is_ack_listed.swap(false, Ordering::AcqRel);
            if peer.owed_acks() > 0 && peer.socket().is_some() {
                self.send_control(peer, Kind::Ack);
            }
        }
    }

    /// Whether there is work that no descriptor announces.
    pub(super) fn needs_progress(&self) -> bool {
        let is_watched = |process: usize| self.peer(process).send_queue().watches_room;
        self.n_connecting.load(Ordering::Relaxed) + self.n_hidden.load(Ordering::Relaxed) > 0
            || self.is_short.load(Ordering::Relaxed)
            || !self.unsent.all(is_watched)
    }

    /// The peer has closed the connection.
    fn ended(&self, peer: &Peer, socket: RawFd, receiver: MutexGuard<'_, Receiver>) {
        let has_left = receiver.has_left;
        drop(receiver);
        let queue = peer.send_queue();
        let (is_awaited, has_open_run) = (queue.is_awaited(), queue.has_open_run());
        drop(queue);
        if has_left && !is_awaited {
            self.close(peer);
        } else if !self.encrypts && (socket::is_reset(socket) || has_left && has_open_run) {
            // A send has got the error, or would have got it: the peer has left without the datagrams.
            self.resume(peer, socket, "the connection was reset".to_owned());
        } else {
            self.lost(peer, "receiving", None);
        }
    }

    /// Stops using the connection to a peer.
    pub(super) fn close(&self, peer: &Peer) {
        let mut link = peer.link();
        let socket = match std::mem::take(&mut *link) {
            Link::Up(socket) => {
                // The poller would report the end of the connection for ever.
                self.forget_socket(socket.as_raw_fd());
                self.forget_datagrams(peer);
                socket::shut_down(socket.as_raw_fd());
                peer.set_socket(None);
                self.links.fetch_sub(1, Ordering::Relaxed);
                Some(socket)
            }
            Link::Closed { _socket } => _socket,
            _ => None,
        };
        *link = Link::Closed { _socket: socket };
    }

    /// A peer is lost: the job cannot go on.
    pub(super) fn lost(&self, peer: &Peer, operation: &'static str, reason: Option<String>) {
        // The first fault is reported.
        let _ = self.fault.set(Fault::Peer(peer.process * self.each, operation, reason));
        self.close(peer);
    }

    /// Closes the endpoint of a PE, whose memory is still mapped. With the last endpoint, the process says
    /// goodbye to all peers first. One that panics does not: its peers are to find the connection lost.
    pub(super) fn close_endpoint(&self, slot: usize) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 && !std::thread::panicking() {
            self.say_goodbye();
        }
        self.local_pes[slot].close();
    }

    /// Says goodbye to all peers. Until the last frames are sent the process goes on receiving: the system
    /// resets a connection that is closed with unread bytes, and drops the bytes under way.
    fn say_goodbye(&self) {
        let insists = self.insists_on_goodbye;
        let begun = Instant::now();
        // Bytes may wait for a connection that is not up. No test insists on that: nobody may open it.
        let is_up = |peer: &Peer| peer.socket().is_some();
        let limit = |peer: &Peer| if insists && is_up(peer) { LINGER_STRICTLY } else { LINGER };
        let has_bytes = |peer: &Peer| peer.send_queue().has_unsent() && !peer.takes_nothing();
        let is_open = |peer: &&Peer| !matches!(&*peer.link(), Link::Idle | Link::Closed { .. });
        let peers: Vec<_> = self.known_peers().filter(is_open).collect();
        for peer in &peers {
            // The system repeats what is lost on a connection, also when this process has ended.
            peer.send_queue().close_datagrams();
            self.send_control(peer, Kind::Bye);
        }
        let is_awaited = |peer: &&Peer| has_bytes(peer) && begun.elapsed() <= limit(peer);
        while self.fault.get().is_none() && peers.iter().any(is_awaited) {
            self.poll(&mut Sink::to_inboxes());
            std::thread::sleep(LINGER_PAUSE);
        }
        if insists && self.fault.get().is_none() {
            let left = peers.iter().filter(|peer| is_up(peer) && has_bytes(peer));
            let left: Vec<_> = left.map(|peer| peer.process).collect();
            assert!(left.is_empty(), "no goodbye to the processes {left:?} within {LINGER_STRICTLY:?}");
        }
        // A peer may wait for the reply to a request that has come meanwhile, over the connection or in a
        // datagram.
        for peer in &peers {
            self.receive(peer, &mut Sink::to_inboxes());
        }
    }

    /// Stops using the memory of an endpoint that closes: its operations under way, and, if it is the
    /// endpoint of PE `slot`, the regions of the PE, which are not registered any more.
    pub(super) fn detach(&self, completions: &Arc<CompletionQueue>, slot: Option<usize>) {
        for peer in self.known_peers() {
            // A thread that writes to memory, or sends from it, has one of these locks.
            let mut receiver = peer.receiver();
            let mut queue = peer.send_queue();
            let is_affected = receiver.direct().is_some_and(|header| match header.kind {
                kind if kind.is_put() => slot == Some(header.to.into()),
                _ => queue.next_reply().is_some_and(|reply| Arc::ptr_eq(&reply.completions, completions)),
            });
            if is_affected {
                receiver.drop_direct();
            }
            queue.detach(completions);
        }
    }
}
