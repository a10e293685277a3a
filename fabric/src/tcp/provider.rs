//! The endpoint of a PE.

use super::business_card::BusinessCard;
use super::completion_queue::CompletionQueue;
use super::domain::{Domain, Starts, TcpChoice};
use super::frame::{Header, Kind};
use super::inject::TcpInject;
use super::peer::Peer;
use super::progress::Sink;
use super::receiver::BUFFER_BYTES;
use super::send_queue::{BATCH_BYTES, Data, PendingReply, Source};
use crate::amo::{Atomic, AtomicKind, write_word};
use crate::contract::{Lookup, Provider, joined};
use crate::copy;
use crate::lazy::{LazyTable, Reserved};
use crate::opening::Opening;
use crate::operation::{Amo, Completion, Get, Put, Signal};
use crate::secret::Secret;
use crate::types::{Completions, Event, FabricError, FabricResult, Key, Limits, Pe, Remote, Status};
use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// The longest put whose data are copied if they cannot be sent at once.
pub(super) const INJECT_BYTES: usize = 8 << 10;
/// The longest message: 32 KiB and some words that travel with them.
const MESSAGE_BYTES: usize = (64 << 10) + 256;
/// The longest put or get: a header has 32 bits for its length.
const TRANSFER_BYTES: usize = 1 << 30;

/// A PE's endpoint, or another sending side of it.
pub struct Tcp {
    pub(super) me: Pe,
    /// The PE's number within its process.
    pub(super) slot: usize,
    /// Whether messages arrive here. They do not arrive at a context.
    receives: bool,
    pub(super) domain: Arc<Domain>,
    pub(super) completions: Arc<CompletionQueue>,
    has_reported: Cell<bool>,
    /// The processes to which unreported puts were started since the last flush.
    unreported: Unreported,
}

/// Processes without duplicates.
struct Unreported {
    is_listed: Reserved<Cell<bool>>,
    list: RefCell<Vec<usize>>,
}

impl Unreported {
    fn new(processes: usize) -> Unreported {
        Unreported { is_listed: Reserved::new(processes), list: RefCell::default() }
    }

    #[inline]
    fn note(&self, process: usize) {
        if !self.is_listed[process].replace(true) {
            self.list.borrow_mut().push(process);
        }
    }

    /// Takes all of them.
    fn take(&self) -> Vec<usize> {
        let list = self.list.take();
        list.iter().for_each(|&process| self.is_listed[process].set(false));
        list
    }
}

impl Tcp {
    /// Bytes that a process of a job reserves for the tables of its peers. Pages come when they are first
    /// written, at the contact with a peer.
    pub const fn reserved_bytes(processes: usize) -> usize {
        LazyTable::<Peer>::reserved_bytes(processes) + processes * size_of::<Cell<bool>>()
    }

    /// Bytes of a peer with an open connection, over which data have come in both directions. Data that wait
    /// to be sent come on top.
    pub const fn contact_bytes() -> usize {
        LazyTable::<Peer>::entry_bytes() + BUFFER_BYTES + BATCH_BYTES
    }

    /// Opens an endpoint for each PE of a process.
    ///
    /// # Errors
    /// Those of [`Tcp::open`].
    pub fn of_process(opening: &Opening) -> FabricResult<Vec<Tcp>> {
        let choice = TcpChoice { is_local: opening.is_local, ..opening.tcp.clone() };
        Tcp::open(opening.process, opening.pes_per_process, opening.n_pes, &choice, opening.secret)
    }

    /// Opens the endpoints of the PEs of process `process` of a job of `n_pes` PEs, with `each` PEs a
    /// process.
    ///
    /// # Errors
    /// If the process cannot listen; the error says what to do.
    pub fn open(
        process: usize,
        each: usize,
        n_pes: usize,
        choice: &TcpChoice,
        secret: Secret,
    ) -> FabricResult<Vec<Tcp>> {
        assert!(each > 0 && each <= usize::from(u16::MAX) && process * each < n_pes, "PEs of a process");
        let domain = Arc::new(Domain::open((process, each, n_pes), choice, secret)?);
        let endpoint = |slot| Tcp::new(process * each + slot, slot, true, &domain);
        Ok((0..each.min(n_pes - process * each)).map(endpoint).collect())
    }

    fn new(me: Pe, slot: usize, receives: bool, domain: &Arc<Domain>) -> Tcp {
        let (domain, completions) = (Arc::clone(domain), Arc::default());
        let unreported = Unreported::new(domain.peers.len());
        Tcp { me, slot, receives, domain, completions, has_reported: Cell::new(false), unreported }
    }

    /// The process of a PE, `None` if that is this one, and the PE's number within the process.
    #[inline]
    pub(super) fn peer(&self, pe: Pe) -> (Option<&Peer>, u16) {
        let (process, slot) = self.domain.process_of(pe);
        ((process != self.domain.process).then(|| self.domain.peer(process)), slot)
    }

    pub(super) fn header(&self, kind: Kind, to: u16, bytes: usize, remote: Remote) -> Header {
        let (word, offset) = (remote.key, remote.offset_bytes as u64);
        let (from, bytes) = (self.slot as u16, bytes as u32);
        Header { from, to, bytes, word, offset, ..Header::control(kind, 0) }
    }

    /// An address in a registered region of this process. It is null if the PE has closed its endpoint.
    fn own_place(&self, slot: u16, remote: Remote, bytes: usize) -> *mut u8 {
        let place = self.domain.place(slot.into(), remote.key, remote.offset_bytes as u64, bytes);
        place.unwrap_or_else(|what| panic!("PE {}: {what}", self.me))
    }

    /// Executes an atomic on a word of this process. Returns the old value, or 0 if the PE has closed its
    /// endpoint.
    ///
    /// # Safety
    /// The word is aligned.
    unsafe fn execute_own(&self, slot: u16, word: Remote, atomic: Atomic) -> u64 {
        let place = self.own_place(slot, word, atomic.kind.bytes());
        // SAFETY: the caller has promised the word, which lies in a registered region.
        if place.is_null() { 0 } else { unsafe { atomic.execute(place) } }
    }

    /// Makes a round of progress without a handler. Messages go to inboxes.
    pub(super) fn poll(&self) {
        self.domain.poll(&mut Sink::to_inboxes());
    }

    /// Starts a put, with a signal if there is one. A put to a PE of this process is complete at return.
    ///
    /// # Safety
    /// As [`Provider::put_signal`].
    #[inline(always)]
    unsafe fn start_put(&self, put: Put, signal: Option<Signal>) -> Status {
        let Put { pe, target, source: start, bytes, completion } = put;
        let (peer, slot) = self.peer(pe);
        let Some(peer) = peer else {
            let place = self.own_place(slot, target, bytes);
            if !place.is_null() {
                // SAFETY: the caller has promised source and target.
                unsafe { copy::transfer(place, start, bytes) };
            }
            if let Some(Signal { word, atomic }) = signal {
                // SAFETY: the caller has promised the word.
                unsafe { self.execute_own(slot, word, atomic) };
            }
            self.completions.count_puts(u64::from(completion.is_reported()));
            return Status::Done;
        };
        let token = completion.token();
        if !completion.is_reported() {
            self.unreported.note(peer.process);
        }
        let starts = match completion {
            Completion::Unreported => Starts::Unreported,
            Completion::Gathered => Starts::Uncounted,
            _ => Starts::Put(token),
        };
        let source = if bytes > INJECT_BYTES {
            Source::Stays(token.map(|token| (Arc::clone(&self.completions), token)))
        } else {
            Source::Copied
        };
        let data = (Data { start, bytes }, source);
        // SAFETY: the caller's promises are the same.
        unsafe {
            match signal {
                None => self.start(peer, (self.header(Kind::Put, slot, bytes, target), &[]), data, starts),
                Some(Signal { word, atomic }) => {
                    let is_gathered = matches!(completion, Completion::Gathered);
                    let kind = if is_gathered { Kind::Broadcast } else { Kind::PutSignal };
                    let header = self.header(kind, slot, bytes, target);
                    let header = Header { code: atomic.code(), ..header };
                    let operands = [word.key, word.offset_bytes as u64, atomic.operand];
                    self.start(peer, (header, &operands), data, starts)
                }
            }
        }
    }

    /// Starts a message whose payload is these words and, behind them, these bytes.
    fn start_message(&self, (peer, slot): (&Peer, u16), header: u64, words: &[u64], rest: &[u8]) -> Status {
        let bytes = size_of_val(words) + rest.len();
        let header = self.header(Kind::Message, slot, bytes, Remote { key: header, offset_bytes: 0 });
        let data = (Data { start: rest.as_ptr(), bytes: rest.len() }, Source::Copied);
        // SAFETY: the caller has lent the payload, which is copied before this returns.
        match unsafe { self.start(peer, (header, words), data, Starts::Uncounted) } {
            Status::Pending => Status::Done,
            status => status,
        }
    }

    /// Starts an operation at a peer.
    ///
    /// # Safety
    /// As [`Domain::start`].
    #[inline(always)]
    unsafe fn start(
        &self,
        peer: &Peer,
        frame: (Header, &[u64]),
        data: (Data, Source),
        starts: Starts,
    ) -> Status {
        // SAFETY: the caller's promises are the same.
        let has_begun = unsafe { self.domain.start(peer, frame, data, (starts, &self.completions)) };
        if has_begun { Status::Pending } else { Status::Again }
    }
}

impl Provider for Tcp {
    const NAME: &'static str = "tcp";
    const MOVES_BY_ITSELF: bool = true;
    type Inject = TcpInject;

    fn description(&self) -> String {
        if self.domain.encrypts { "tcp, encrypted".to_owned() } else { Self::NAME.to_owned() }
    }

    fn terms(&self) -> String {
        self.description()
    }

    fn limits(&self) -> Limits {
        Limits { inject_bytes: INJECT_BYTES, message_bytes: MESSAGE_BYTES, transfer_bytes: TRANSFER_BYTES }
    }

    fn address(&self) -> FabricResult<Vec<u8>> {
        Ok(BusinessCard::to_bytes(self.domain.card()))
    }

    fn connect(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()> {
        let (n, each) = (self.domain.peers.len(), self.domain.each);
        self.domain.set_lookup(|| {
            let cards: Vec<_> = (0..n).map(|process| lookup(process * each)).collect::<FabricResult<_>>()?;
            Ok(Arc::new(move |pe| Ok(cards[pe / each].clone())))
        })
    }

    fn connect_later(&mut self, lookup: &Lookup) -> FabricResult<()> {
        self.domain.set_lookup(|| Ok(Arc::clone(lookup)))
    }

    fn register(&mut self, key: Key, start: NonNull<u8>, bytes: usize) -> FabricResult<()> {
        if !self.domain.local_pes[self.slot].register(key, start, bytes) {
            return Err(FabricError::Foreign { pe: self.me, what: format!("key {key} is taken") });
        }
        Ok(())
    }

    unsafe fn expose(&self, start: NonNull<u8>, bytes: usize) -> Option<Key> {
        Some(self.domain.local_pes[self.slot].expose(start, bytes))
    }

    fn conceal(&self, key: Key) {
        self.domain.local_pes[self.slot].conceal(key);
    }

    fn context(&self) -> FabricResult<Tcp> {
        Ok(Tcp::new(self.me, self.slot, false, &self.domain))
    }

    fn contacts(&self) -> Option<usize> {
        Some(self.domain.peers.made())
    }

    fn executes(&self, _kind: AtomicKind) -> bool {
        true
    }

    unsafe fn put(&self, put: Put) -> Status {
        // SAFETY: the caller's promises are the same.
        unsafe { self.start_put(put, None) }
    }

    fn signal_bytes(&self) -> Option<usize> {
        Some(TRANSFER_BYTES)
    }

    unsafe fn put_signal(&self, put: Put, signal: Signal) -> Status {
        // SAFETY: the caller's promises are the same.
        unsafe { self.start_put(put, Some(signal)) }
    }

    fn flush(&self) -> u64 {
        let flush = |process| self.domain.flush(self.domain.peer(process), &self.completions);
        self.unreported.take().into_iter().filter(|&process| flush(process)).count() as u64
    }

    unsafe fn get(&self, get: Get) -> Status {
        let Get { pe, source, target, bytes, completion } = get;
        let (peer, slot) = self.peer(pe);
        let Some(peer) = peer else {
            let place = self.own_place(slot, source, bytes);
            // SAFETY: the caller has promised source and target.
            unsafe {
                match place.is_null() {
                    true => target.write_bytes(0, bytes),
                    false => copy::transfer(target, place, bytes),
                }
            }
            self.completions.count_get();
            return Status::Done;
        };
        let (completions, token) = (Arc::clone(&self.completions), completion.token());
        let reply = PendingReply { completions, token, target, bytes, atomic: None };
        let header = self.header(Kind::Get, slot, bytes, source);
        // SAFETY: a get has no data; the caller keeps the target.
        unsafe { self.start(peer, (header, &[]), (Data::NONE, Source::Copied), Starts::Fetch(reply)) }
    }

    unsafe fn atomic(&self, amo: Amo) -> Status {
        let Amo { pe, word, atomic, fetched, completion } = amo;
        let (token, bytes, code) = (completion.token(), atomic.kind.bytes(), atomic.code());
        let (peer, slot) = self.peer(pe);
        let Some(peer) = peer else {
            // SAFETY: the caller has promised the word, and the place of the old value if there is one.
            unsafe {
                let old = self.execute_own(slot, word, atomic);
                if fetched.is_null() {
                    self.completions.count_puts(1);
                } else {
                    write_word(atomic.kind, old, fetched);
                    self.completions.count_get();
                }
            }
            return Status::Done;
        };
        let operands = [atomic.operand, atomic.compare];
        let (kind, starts) = if fetched.is_null() {
            (Kind::Update, Starts::Put(token))
        } else {
            let (completions, atomic) = (Arc::clone(&self.completions), Some(atomic.kind));
            (Kind::Fetch, Starts::Fetch(PendingReply { completions, token, target: fetched, bytes, atomic }))
        };
        let header = Header { code, ..self.header(kind, slot, 0, word) };
        // SAFETY: an atomic has no data; the caller keeps the place of the old value.
        unsafe { self.start(peer, (header, &operands), (Data::NONE, Source::Copied), starts) }
    }

    fn send(&self, pe: Pe, header: u64, payload: &[u8]) -> Status {
        let (peer, slot) = self.peer(pe);
        let Some(peer) = peer else {
            let message = (self.me, header, payload);
            let delivered = self.domain.deliver(slot.into(), message, &mut Sink::to_inboxes());
            let has_room = delivered.expect("the PE is one of this process");
            return if has_room { Status::Done } else { Status::Again };
        };
        self.start_message((peer, slot), header, &[], payload)
    }

    fn send_with_word(
        &self,
        pe: Pe,
        header: u64,
        (word, rest): (u64, &[u8]),
        scratch: &mut Vec<u8>,
    ) -> Status {
        match self.peer(pe) {
            (Some(peer), slot) => self.start_message((peer, slot), header, &[word], rest),
            (None, _) => self.send(pe, header, joined(word, rest, scratch)),
        }
    }

    fn progress(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        let mut events = self.completions.drain(handle);
        if self.receives {
            let own = &self.domain.local_pes[self.slot];
            own.reset_doorbell();
            events += own.drain_inbox(handle);
            let mut sink = Sink { own: Some((self.slot, handle)), events: 0 };
            let frames = self.domain.poll(&mut sink);
            events += sink.events.max(frames);
        } else {
            events += self.domain.poll(&mut Sink::to_inboxes());
        }
        events += self.completions.drain(handle);
        match self.domain.fault(self.me).filter(|_| !self.has_reported.replace(true)) {
            None => Ok(events),
            Some(error) => Err(error),
        }
    }

    fn drain(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        // Any endpoint's progress serves the connections of the process, and reports a fault.
        Ok(self.completions.drain(handle))
    }

    fn inject(&self, key: Key) -> Option<TcpInject> {
        Some(TcpInject::new(&self.domain, &self.completions, key, self.slot as u16))
    }

    fn rest(&self, _bound: Duration) {
        std::thread::yield_now();
    }

    fn completions(&self) -> Completions {
        self.completions.completions()
    }

    fn has_completed(&self, started: Completions) -> bool {
        self.completions() == started || {
            self.poll();
            self.completions() == started
        }
    }

    fn wait_descriptor(&self) -> Option<OwnedFd> {
        self.domain.wait_descriptor(self.slot).ok()
    }

    fn is_urgent(&self) -> bool {
        true
    }

    fn keeps_messages_behind_puts(&self) -> bool {
        true
    }

    fn may_sleep(&self) -> bool {
        self.domain.end_gathering();
        self.domain.flush_unsent();
        self.domain.acknowledge();
        self.domain.watch_all();
        let has_mail = self.receives && self.domain.local_pes[self.slot].has_mail();
        let is_watched = !self.domain.watch.is_off();
        is_watched && !has_mail && !self.completions.has_entries() && !self.domain.needs_progress()
    }

    fn owes(&self) -> bool {
        !self.domain.owed_acks.peers.is_empty() || !self.domain.gathering.is_empty()
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        // Contexts do not count: a program may forget one.
        if self.receives {
            self.domain.close_endpoint(self.slot);
        }
        self.domain.detach(&self.completions, self.receives.then_some(self.slot));
    }
}
