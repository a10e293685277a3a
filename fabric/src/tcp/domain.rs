//! The domain: the state that all endpoints of a process share, as in libfabric. It has the listeners, the
//! peers, and the PEs of the process.

use super::accept::{Incoming, Shortage};
use super::business_card::{self, BusinessCard, Interface};
use super::cipher::CAN_ENCRYPT;
use super::completion_queue::CompletionQueue;
use super::congestion::Congestion;
use super::datagram::Ticker;
use super::descriptors;
use super::frame::{Header, Kind};
use super::local_pe::LocalPe;
use super::peer::{Link, Peer};
use super::ports::Ports;
use super::progress::Sink;
use super::send_queue::{AT_ONCE, Data, PendingReply, SendQueue, Source};
use super::socket::{self, Interest, Poller};
use super::watch::Watch;
use crate::contract::Lookup;
use crate::lazy::LazyTable;
pub use crate::opening::TcpChoice;
use crate::secret::Secret;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::types::{FabricError, FabricResult, Key, Pe, Token};
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The reason why the job cannot go on.
#[derive(Clone)]
pub(super) enum Fault {
    /// A peer is lost: the first PE of its process, what was attempted, and the reason if there is one.
    Peer(Pe, &'static str, Option<String>),
    /// This process has no descriptor left for a connection.
    Descriptors(&'static str, String),
}

/// The remedy where descriptors are short.
const DESCRIPTORS: &str =
    "Does `ulimit -n` allow a descriptor for each process of the job, and does fs.file-max?";

/// The remedy where a build cannot encrypt.
const ENCRYPTION: &str = "Build it with the feature `encrypt`, or set PELAGO_TCP_ENCRYPT=off";

/// The state that all endpoints of a process share.
pub(super) struct Domain {
    pub(super) process: usize,
    /// PEs of each process.
    pub(super) each: usize,
    pub(super) secret: Secret,
    pub(super) encrypts: bool,
    pub(super) insists_on_goodbye: bool,
    pub(super) congestion: Congestion,
    pub(super) listeners: Vec<OwnedFd>,
    pub(super) poller: Arc<Poller>,
    pub(super) watch: Watch,
    /// `None` if this process uses no datagrams.
    pub(super) ticker: Option<Arc<Ticker>>,
    /// The processes for whose datagrams this one has opened a socket.
    pub(super) datagram_peers: Mutex<Vec<usize>>,
    /// Whether the user names the ports.
    names_ports: bool,
    card: BusinessCard,
    /// The addresses of this machine and their networks.
    pub(super) interfaces: Vec<Interface>,
    pub(super) local_pes: Box<[LocalPe]>,
    /// By process. A peer is made at the first contact, by this process or by the peer.
    pub(super) peers: LazyTable<Peer>,
    /// The business card of a process, which is looked up when this process connects to it.
    lookup: OnceLock<Lookup>,
    pub(super) incoming: Mutex<Vec<Incoming>>,
    /// Why connections wait at the listeners, if they do, and whether they do.
    pub(super) shortage: Mutex<Option<Shortage>>,
    pub(super) is_short: AtomicBool,
    /// Peers with unsent bytes.
    pub(super) unsent: PeerList,
    /// Peers for which messages are gathered, and the rounds for which that may go on.
    pub(super) gathering: PeerList,
    pub(super) rounds_to_gather: RoundsToGather,
    pub(super) owed_acks: OwedAcks,
    /// Connections that are up, those that this process is opening, and incoming ones that are not proved.
    pub(super) links: AtomicUsize,
    pub(super) n_connecting: AtomicUsize,
    pub(super) n_incoming: AtomicUsize,
    /// Peers whose receiver has work that the poller does not announce.
    pub(super) n_hidden: AtomicUsize,
    pub(super) opened: Instant,
    /// When deadlines were checked last, in milliseconds since `opened`.
    pub(super) checked: AtomicU64,
    /// The peer that has sent something last.
    pub(super) last_active: AtomicUsize,
    /// Rounds of polling.
    pub(super) rounds: AtomicU32,
    pub(super) fault: OnceLock<Fault>,
    /// Endpoints of PEs that are not closed.
    pub(super) open: AtomicUsize,
}

/// A list of peers without duplicates: a flag of the peer says whether it is in the list.
#[derive(Default)]
pub(super) struct PeerList {
    count: AtomicUsize,
    peers: Mutex<VecDeque<usize>>,
}

impl PeerList {
    /// Adds a peer whose flag was just set.
    pub(super) fn add(&self, peer: usize) {
        let mut peers = self.peers.lock();
        peers.push_back(peer);
        self.count.store(peers.len(), Ordering::Relaxed);
    }

    /// Takes the peers that are in the list now, one after another. Those that are added meanwhile stay.
    pub(super) fn take(&self) -> impl Iterator<Item = usize> {
        (0..self.count.load(Ordering::Relaxed)).map_while(|_| {
            let mut peers = self.peers.lock();
            let peer = peers.pop_front();
            self.count.store(peers.len(), Ordering::Relaxed);
            peer
        })
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Whether this holds for all peers of the list.
    pub(super) fn all(&self, holds: impl Fn(usize) -> bool) -> bool {
        self.peers.lock().iter().all(|&peer| holds(peer))
    }
}

/// Peers that are owed an acknowledgement. It is sent when no frame has carried it until then: that of a put
/// in the next round without a frame, as the peer may wait for it. That of a message waits on for
/// [`IDLE_MAX`](Self::IDLE_MAX) such rounds, or until [`MESSAGES_MAX`](Self::MESSAGES_MAX) messages have
/// come: nobody waits for it, and to send it takes as long as to receive several messages. While frames
/// arrive in every round, those of puts are sent in one round of several.
#[derive(Default)]
pub(super) struct OwedAcks {
    pub(super) peers: PeerList,
    /// Whether a peer may wait for one: for that of a put, or because it gathers messages until one comes.
    is_urgent: AtomicBool,
    /// Rounds without a frame while a peer was listed, since acknowledgements were sent last in such a round.
    /// A peer may be listed late, so its acknowledgement waits for as many rounds at most.
    idle: AtomicU32,
}

impl OwedAcks {
    /// Messages of a peer after which it is sent an acknowledgement without delay.
    pub(super) const MESSAGES_MAX: u32 = AT_ONCE - 1;
    /// Rounds without a frame after which acknowledgements are sent in any case.
    pub(super) const IDLE_MAX: u32 = 16;

    /// Lets the next round without a frame send what is listed.
    #[inline]
    pub(super) fn hurry(&self) {
        // SYNC POINT urgent_acks: releases the peer that was listed.
        self.is_urgent.store(true, Ordering::Release);
    }

    /// Whether a peer may wait for an acknowledgement: then they are to be sent now.
    #[inline]
    pub(super) fn are_urgent(&self) -> bool {
        // SYNC POINT urgent_acks: acquires the peer that was listed.
        !self.peers.is_empty() && self.is_urgent.swap(false, Ordering::AcqRel)
    }

    /// Counts a round without a frame: whether acknowledgements are to be sent now. Threads that count at the
    /// same time may lose a round, which does no harm.
    #[inline]
    pub(super) fn are_due(&self) -> bool {
        !self.peers.is_empty() && self.is_last_round()
    }

    fn is_last_round(&self) -> bool {
        let idle = self.idle.load(Ordering::Relaxed) + 1;
        let is_last = self.are_urgent() || idle >= Self::IDLE_MAX;
        self.idle.store(if is_last { 0 } else { idle }, Ordering::Relaxed);
        is_last
    }
}

/// For how many rounds of progress messages are gathered. A PE that goes on sending makes a round between two
/// messages, for any peer; one that waits makes rounds without messages.
#[derive(Default)]
pub(super) struct RoundsToGather {
    /// Rounds since a message was gathered last, and since messages were sent.
    idle: AtomicU32,
    all: AtomicU32,
}

impl RoundsToGather {
    /// Rounds without a message after which the PE seems to wait.
    const IDLE_MAX: u32 = 2;
    /// Rounds after which messages are sent in any case.
    const ALL_MAX: u32 = 16;

    #[inline]
    fn note_message(&self) {
        self.idle.store(0, Ordering::Relaxed);
    }

    /// Counts a round while messages are gathered: whether they are to be sent now. Threads that count at the
    /// same time may lose a round, which does no harm.
    pub(super) fn are_over(&self) -> bool {
        let [idle, all] = [&self.idle, &self.all].map(|rounds| rounds.load(Ordering::Relaxed) + 1);
        let are_over = idle >= Self::IDLE_MAX || all >= Self::ALL_MAX;
        self.idle.store(if are_over { 0 } else { idle }, Ordering::Relaxed);
        self.all.store(if are_over { 0 } else { all }, Ordering::Relaxed);
        are_over
    }
}

/// The operation that a frame starts.
pub(super) enum Starts {
    /// A put, or an atomic that fetches nothing.
    Put(Option<Token>),
    /// A put that is not acknowledged.
    Unreported,
    /// A message, or a put that no counter counts.
    Uncounted,
    /// A get, or an atomic that fetches.
    Fetch(PendingReply),
}

/// The remedy of an error: that of the operation, unless the error has one of its own.
fn remedy_of(error: &io::Error, operation: &'static str) -> &'static str {
    match error.kind() {
        _ if socket::lacks_descriptors(error) => DESCRIPTORS,
        io::ErrorKind::AddrInUse => {
            "Set PELAGO_TCP_PORTS to a range with a port for each process of the machine"
        }
        _ => operation,
    }
}

fn remedy_of_listening(congestion: &Congestion) -> &'static str {
    match congestion {
        Congestion::Named(_) => {
            "PELAGO_TCP_INTERFACE names the interface to use, PELAGO_TCP_CONGESTION an algorithm that the \
             system permits (net.ipv4.tcp_allowed_congestion_control)"
        }
        _ => "PELAGO_TCP_INTERFACE names the interface to use",
    }
}

impl Domain {
    /// Opens the domain of a process and listens.
    pub(super) fn open(
        (process, each, n_pes): (usize, usize, usize),
        choice: &TcpChoice,
        secret: Secret,
    ) -> FabricResult<Domain> {
        let failed = |operation: &str, remedy| {
            let (pe, operation) = (process * each, operation.to_owned());
            move |error: io::Error| {
                let remedy = remedy_of(&error, remedy);
                FabricError::System { pe, operation, reason: error.to_string(), remedy }
            }
        };
        if choice.encrypts && !CAN_ENCRYPT {
            let cannot = io::Error::other("this build of Pelago cannot encrypt");
            return Err(failed("opening TCP with PELAGO_TCP_ENCRYPT=on", ENCRYPTION)(cannot));
        }
        let is_near = choice.is_local && choice.interface.is_none();
        let interfaces = business_card::interfaces(choice.interface.as_deref())
            .or_else(|error| if is_near { Ok(Vec::new()) } else { Err(error) })
            .map_err(failed("asking for the network's interfaces", "Is the network of this host up?"))?;
        let addresses: Vec<_> = interfaces.iter().map(Interface::address).collect();
        let near = if is_near { &business_card::LOOPBACKS[..] } else { &[] };
        let congestion = Congestion::of(choice.congestion.as_deref());
        let has_room = descriptors::make_room(n_pes.div_ceil(each));
        let (ports, control) = (Ports::of(choice.ports.clone(), process), congestion.describe());
        let (listeners, card) = business_card::listen_near(near, &addresses, &ports, &congestion)
            .map_err(failed("listening for the job's other processes", remedy_of_listening(&congestion)))?;
        log::debug!(target: "fabric", "tcp listens at {:?}, congestion control: {control}", card.0);
        let local_pes = (0..each).map(|_| LocalPe::open()).collect::<io::Result<Box<[LocalPe]>>>();
        let local_pes = local_pes.map_err(failed("opening a doorbell", DESCRIPTORS))?;
        let (poller, ticker) = open_poller(&listeners, &local_pes, has_room && choice.uses_datagrams())
            .map_err(failed("opening a poller", DESCRIPTORS))?;
        let watch = Watch::new().map_err(failed("opening an event", DESCRIPTORS))?;
        Ok(Domain {
            process,
            each,
            secret,
            encrypts: choice.encrypts,
            insists_on_goodbye: choice.insists_on_goodbye,
            congestion,
            listeners,
            poller,
            watch,
            ticker,
            datagram_peers: Mutex::default(),
            names_ports: choice.ports.is_some(),
            card,
            interfaces,
            local_pes,
            peers: LazyTable::new(n_pes.div_ceil(each)),
            lookup: OnceLock::new(),
            incoming: Mutex::default(),
            shortage: Mutex::default(),
            is_short: AtomicBool::new(false),
            unsent: PeerList::default(),
            gathering: PeerList::default(),
            rounds_to_gather: RoundsToGather::default(),
            owed_acks: OwedAcks::default(),
            links: AtomicUsize::new(0),
            n_connecting: AtomicUsize::new(0),
            n_incoming: AtomicUsize::new(0),
            n_hidden: AtomicUsize::new(0),
            opened: Instant::now(),
            checked: AtomicU64::new(0),
            last_active: AtomicUsize::new(0),
            rounds: AtomicU32::new(0),
            fault: OnceLock::new(),
            open: AtomicUsize::new(each.min(n_pes - process * each)),
        })
    }

    /// The business card of this process.
    pub(super) fn card(&self) -> &BusinessCard {
        &self.card
    }

    /// The port of this process for datagrams at one of its addresses: if the user names ports, that at which
    /// it listens there. With port 0 the system chooses one.
    pub(super) fn datagram_port(&self, address: IpAddr) -> u16 {
        let is_named = |listens: &&SocketAddr| self.names_ports && listens.ip() == address;
        self.card.0.iter().find(is_named).map_or(0, SocketAddr::port)
    }

    /// Takes the way to look up the business card of a process, by its lowest PE.
    pub(super) fn set_lookup(&self, lookup: impl FnOnce() -> FabricResult<Lookup>) -> FabricResult<()> {
        if self.lookup.get().is_none() {
            // Another PE of this process may have set it first. It is the same.
            let _ = self.lookup.set(lookup()?);
        }
        Ok(())
    }

    /// The addresses of a process in the order in which this one is to try them. An error says why there are
    /// none.
    pub(super) fn addresses_of(&self, process: usize) -> Result<Vec<SocketAddr>, String> {
        let pe = process * self.each;
        let lookup = self.lookup.get().ok_or("this endpoint is not connected")?;
        let card = BusinessCard::from_bytes(&lookup(pe).map_err(|error| error.to_string())?);
        let card =
            card.ok_or_else(|| format!("PE {pe} has published no address that this build understands"))?;
        Ok(card.by_nearness(&self.interfaces))
    }

    /// A peer. The process exists, and is another one.
    #[inline]
    pub(super) fn peer(&self, process: usize) -> &Peer {
        self.peers.get_or_make(process, Peer::new)
    }

    /// The peers that this process has had to do with.
    pub(super) fn known_peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().map(|(_, peer)| peer)
    }

    /// The address of `bytes` bytes at an offset of a PE's region. It is null if the PE has closed its
    /// endpoint: frames may still be under way to it. An error says that the bytes are not registered.
    #[inline]
    pub(super) fn place(&self, slot: usize, key: Key, offset: u64, bytes: usize) -> Result<*mut u8, String> {
        let place = self.local_pes.get(slot).and_then(|pe| pe.place(key, offset, bytes));
        place.ok_or_else(|| self.not_registered(slot, key, offset, bytes))
    }

    /// Says that a PE has not registered some bytes.
    #[cold]
    pub(super) fn not_registered(&self, slot: usize, key: Key, offset: u64, bytes: usize) -> String {
        let pe = self.process * self.each + slot;
        format!("{bytes} bytes at offset {offset} of key {key}, which PE {pe} has not registered")
    }

    /// Starts an operation by a frame to a peer. Returns `false` if the peer's queue is full: then nothing
    /// has begun.
    ///
    /// # Safety
    /// The data are valid for reads as `source` says. The target of a reply is valid for writes until then.
    #[inline(always)]
    pub(super) unsafe fn start(
        &self,
        peer: &Peer,
        (mut header, operands): (Header, &[u64]),
        (data, source): (Data, Source),
        (starts, completions): (Starts, &Arc<CompletionQueue>),
    ) -> bool {
        let mut queue = peer.send_queue();
        if queue.is_full() {
            return false;
        }
        match starts {
            Starts::Put(token) => queue.count(Some(completions), token),
            Starts::Unreported => header.is_unreported = true,
            Starts::Uncounted => queue.count(None, None),
            Starts::Fetch(reply) => queue.expect_reply(reply),
        }
        header.acks = peer.acks_to_send();
        // SAFETY: the caller's promises are the same.
        let pushed = unsafe { queue.push(header, operands, data, source) };
        self.send_if_due(peer, queue, pushed, &header);
        true
    }

    /// The process of a PE, and the PE's number within it.
    #[inline]
    pub(super) fn process_of(&self, pe: Pe) -> (usize, u16) {
        match self.each {
            // A division takes as long as all the rest of a short put.
            1 => (pe, 0),
            each => (pe / each, (pe % each) as u16),
        }
    }

    /// Starts a put of a word that has no event, as [`start`](Domain::start) does. Returns `false` if the
    /// queue takes no word now.
    #[inline]
    pub(super) fn start_word(
        &self,
        peer: &Peer,
        mut header: Header,
        word: u64,
        completions: &Arc<CompletionQueue>,
    ) -> bool {
        let mut queue = peer.send_queue();
        if !queue.takes_word() {
            return false;
        }
        queue.count(Some(completions), None);
        header.acks = peer.acks_to_send();
        queue.push_word(header, word);
        if queue.is_word_due() || !queue.is_listed {
            self.send_if_due(peer, queue, Ok(()), &header);
        }
        true
    }

    /// Sends a frame that has a header alone.
    pub(super) fn send_control(&self, peer: &Peer, kind: Kind) {
        self.push_control(peer, peer.send_queue(), kind);
    }

    /// Starts an operation that is complete when all frames before it are executed, and that counts as a put.
    /// Returns `false` if the connection is closed.
    pub(super) fn flush(&self, peer: &Peer, completions: &Arc<CompletionQueue>) -> bool {
        if matches!(*peer.link(), Link::Closed { .. }) {
            return false;
        }
        let mut queue = peer.send_queue();
        queue.count(Some(completions), None);
        self.push_control(peer, queue, Kind::Flush);
        true
    }

    fn push_control(&self, peer: &Peer, mut queue: MutexGuard<'_, SendQueue>, kind: Kind) {
        let header = Header::control(kind, peer.acks_to_send());
        // SAFETY: a frame without data reads nothing of the caller.
        let pushed = unsafe { queue.push(header, &[], Data::NONE, Source::Copied) };
        self.send_if_due(peer, queue, pushed, &header);
    }

    /// Sends the bytes of a queue, unless its last frame, which has this header, may wait.
    #[inline]
    fn send_if_due<'p>(
        &self,
        peer: &'p Peer,
        mut queue: MutexGuard<'p, SendQueue>,
        pushed: io::Result<()>,
        header: &Header,
    ) {
        if pushed.is_ok() && !queue.is_due(header) && queue.begins_batch() {
            queue = self.receive_acks(peer, queue);
        }
        if pushed.is_ok() && !queue.is_due(header) {
            if queue.socket.is_none() {
                self.send_later(peer, queue, Ok(()));
            } else if header.kind == Kind::Message {
                self.gather(peer, &mut queue);
            } else if !queue.is_listed && queue.has_unsent() {
                queue.is_listed = true;
                self.unsent.add(peer.process);
            }
            return;
        }
        let flushed = pushed.and_then(|()| queue.flush());
        if !matches!(flushed, Ok(true)) {
            self.watch_room(peer, &mut queue, true);
            self.send_later(peer, queue, flushed.map(drop));
        }
    }

    /// Receives what a peer has sent, unless frames follow each other closely: a PE that computes between its
    /// operations has not seen their acknowledgements. Others may send the queue meanwhile.
    #[cold]
    #[inline(never)]
    fn receive_acks<'p>(
        &self,
        peer: &'p Peer,
        mut queue: MutexGuard<'p, SendQueue>,
    ) -> MutexGuard<'p, SendQueue> {
        if !queue.may_look_for_acks(Instant::now()) {
            return queue;
        }
        drop(queue);
        self.receive(peer, &mut Sink::to_inboxes());
        peer.send_queue()
    }

    /// Lets the messages of a queue wait for others.
    #[inline]
    fn gather(&self, peer: &Peer, queue: &mut SendQueue) {
        self.rounds_to_gather.note_message();
        if !queue.is_gathering {
            queue.is_gathering = true;
            self.gathering.add(peer.process);
        }
    }

    /// Lets the poller watch for room to send, or not. It then wakes a thread that sleeps.
    #[cold]
    pub(super) fn watch_room(&self, peer: &Peer, queue: &mut SendQueue, watches: bool) {
        if let Some(socket) = queue.socket.filter(|_| queue.watches_room != watches) {
            self.watch_all();
            let interest = if watches { Interest::Both } else { Interest::Input };
            let is_changed = self.poller.change(socket, Tag::Peer(peer.process).code(), interest).is_ok();
            queue.watches_room = watches && is_changed;
        }
    }

    /// Leaves unsent bytes for the next round of progress, and opens the connection if there is none.
    #[cold]
    pub(super) fn send_later(
        &self,
        peer: &Peer,
        mut queue: MutexGuard<'_, SendQueue>,
        outcome: io::Result<()>,
    ) {
        self.list_queue(peer, &mut queue);
        let socket = queue.socket;
        let is_up = socket.is_some();
        drop(queue);
        match outcome {
            Err(error) => self.failed_to_send(peer, socket, &error),
            Ok(()) if !is_up => self.connect(peer),
            Ok(()) => {}
        }
    }

    /// The wait descriptor of a PE, on which its service thread sleeps. For the only PE of its process that
    /// is the poller: the system would look at a set around it whenever something arrives, also while nobody
    /// sleeps.
    pub(super) fn wait_descriptor(&self, slot: usize) -> io::Result<OwnedFd> {
        if self.local_pes.len() == 1 {
            return self.poller.descriptor();
        }
        let poller = Poller::open()?;
        poller.add(self.poller.as_raw(), 0, Interest::Input)?;
        poller.add(self.local_pes[slot].doorbell(), 1, Interest::Input)?;
        poller.descriptor()
    }

    /// The fault, as an error of PE `pe`.
    pub(super) fn fault(&self, pe: Pe) -> Option<FabricError> {
        Some(match self.fault.get()?.clone() {
            Fault::Peer(peer, operation, Some(reason)) => {
                FabricError::Unreachable { pe, peer, operation, reason }
            }
            Fault::Peer(peer, operation, None) => FabricError::PeerLost { pe, peer, operation },
            Fault::Descriptors(operation, reason) => {
                let operation = operation.to_owned();
                FabricError::System { pe, operation, reason, remedy: DESCRIPTORS }
            }
        })
    }
}

/// A poller that watches the listeners, the doorbell of the process if it has one PE, and the ticker if the
/// process uses datagrams.
fn open_poller(
    listeners: &[OwnedFd],
    local_pes: &[LocalPe],
    uses_datagrams: bool,
) -> io::Result<(Arc<Poller>, Option<Arc<Ticker>>)> {
    let poller = Poller::open()?;
    for (listener, i) in listeners.iter().zip(0..) {
        poller.add(listener.as_raw_fd(), Tag::Listener(i).code(), Interest::Input)?;
    }
    if let [only] = local_pes {
        poller.add(only.doorbell(), Tag::Doorbell.code(), Interest::Input)?;
    }
    let ticker = if uses_datagrams { Some(Arc::new(Ticker::open()?)) } else { None };
    if let Some(ticker) = &ticker {
        poller.add(ticker.descriptor(), Tag::Tick.code(), Interest::Input)?;
    }
    Ok((Arc::new(poller), ticker))
}

/// The meaning of a descriptor that the poller watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Listener(u32),
    /// By its descriptor.
    Incoming(u32),
    /// By its process.
    Peer(usize),
    /// The socket for datagrams, by the process.
    Datagrams(usize),
    /// That of the only PE of this process, which each round of progress resets.
    Doorbell,
    /// Says that a connection is not watched.
    Unwatched,
    /// A tick is due.
    Tick,
}

/// The bit of a peer's tag that says that it is one of its socket for datagrams.
const DATAGRAMS: u64 = 1 << 61;

impl Tag {
    pub(super) fn code(self) -> u64 {
        match self {
            Tag::Listener(i) => u64::from(i),
            Tag::Incoming(socket) => 1 << 62 | u64::from(socket),
            Tag::Peer(process) => 2 << 62 | process as u64,
            Tag::Datagrams(process) => 2 << 62 | DATAGRAMS | process as u64,
            Tag::Doorbell => 3 << 62,
            Tag::Unwatched => 3 << 62 | 1,
            Tag::Tick => 3 << 62 | 2,
        }
    }

    pub(super) fn of(code: u64) -> Tag {
        let number = code & ((1 << 62) - 1);
        match code >> 62 {
            0 => Tag::Listener(number as u32),
            1 => Tag::Incoming(number as u32),
            2 if number & DATAGRAMS != 0 => Tag::Datagrams((number ^ DATAGRAMS) as usize),
            2 => Tag::Peer(number as usize),
            _ if number == 0 => Tag::Doorbell,
            _ if number == 1 => Tag::Unwatched,
            _ => Tag::Tick,
        }
    }
}
