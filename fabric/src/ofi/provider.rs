//! The provider `ofi`: puts, gets, atomics and messages over libfabric.
//!
//! Small puts are injected, and medium puts are copied to a buffer, so that their source is free at return.
//! Longer puts are sent from their source. A put is complete when the provider reports that it is delivered.
//! A put with a signal is a message, which the target's processor executes (`deliveries.rs`).
//! Sources: M. Luo et al., Early Evaluation of Scalable Fabric Interface for PGAS Programming Models;
//! `fi_rma(3)`, `fi_atomic(3)`.
//!
//! Invariant: every operation that libfabric has accepted has a slot, except operations that were injected
//! without a token. Only the counters include these.

use super::atomic::{datatype, operation};
use super::deliveries::{DATA_BYTES, Deliveries, HEAD_BYTES, Owed};
use super::domain::{Choice, Domain};
use super::endpoint::{BATCH, Completion, Endpoint, Of, RECEIVES, Transfer, list_of};
use super::message::{
    ACKNOWLEDGEMENT, CALLERS, Inbox, MessageKind, PAYLOAD_BYTES, PREFIX_BYTES, PUT, pack, unpack,
};
use super::prepared::{OfiInject, Prepared};
use super::region::{Loan, Memory};
use super::remote::{self, Peers};
use super::slots::{BUFFER_BYTES, Kind, Slot, Slots};
use super::sys::*;
use crate::amo::{AtomicKind, AtomicOp};
use crate::contract::Provider;
use crate::opening::Opening;
use crate::operation::{Amo, Get, Put, Signal};
use crate::secret::Secret;
use crate::sync::{AtomicU64, Ordering};
use crate::types::{Completions, Event, FabricError, FabricResult, Key, Limits, Pe, Remote, Status, Token};
use libc::c_void;
use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time limit for sending the last messages of an endpoint that is dropped.
const LINGER: Duration = Duration::from_secs(2);
/// The approximate number of completions that one call of `progress` reads.
const COMPLETIONS_MAX: usize = 4 * BATCH;
/// If there are two queues, one in this number of polls reads the other queue as well.
const LOOKS_PER_OTHER: u32 = 16;

/// A PE's endpoint, or another sending side of it.
pub struct Ofi {
    me: Pe,
    n_pes: usize,
    /// Closed first, so that libfabric releases slots and buffers.
    endpoint: Endpoint,
    slots: RefCell<Slots>,
    /// The buffers in which messages arrive. A context has none.
    inbox: Option<Inbox>,
    peers: Arc<Peers>,
    memory: Memory,
    /// The error of an operation that libfabric has refused, until `progress` returns it.
    refusal: RefCell<Option<FabricError>>,
    /// Messages that have not left yet, without those that were injected.
    messages: Cell<usize>,
    /// The puts that are messages; `None` if there are none here.
    deliveries: Option<Deliveries>,
    /// The number of polls of the queues.
    turns: Cell<u32>,
    /// The values of the counters when they were last read.
    counted: Cell<Completions>,
    /// Atomics that are puts here, but that libfabric has counted as gets.
    fetched_in_vain: Arc<AtomicU64>,
}

// SAFETY: slots and buffers are memory with no tie to a thread; libfabric was asked for `FI_THREAD_SAFE`.
unsafe impl Send for Ofi {}

impl Ofi {
    /// Opens an endpoint for each PE of a process.
    ///
    /// # Errors
    /// Those of [`Ofi::open`].
    pub fn of_process(opening: &Opening) -> FabricResult<Vec<Ofi>> {
        let lower_pes = opening.lower_on_node * opening.pes_per_process;
        let open = |(index, pe)| {
            let turn = opening.ofi.turn.map(|_| lower_pes + index);
            let choice = Choice { is_local: opening.is_local, turn, ..opening.ofi.clone() };
            Ofi::open(pe, opening.n_pes, &choice, opening.secret)
        };
        opening.pes().enumerate().map(open).collect()
    }

    /// Opens the endpoint of PE `me` of `n_pes`, over the best of libfabric's offers that fits the choice,
    /// for the members of the job that has this secret.
    ///
    /// # Errors
    ///
    /// If libfabric is not installed, has no offer that fits, or refuses; the error names the remedy.
    pub fn open(me: Pe, n_pes: usize, choice: &Choice, secret: Secret) -> FabricResult<Ofi> {
        let domain = Arc::new(Domain::open(me, n_pes, choice, secret)?);
        let endpoint = Endpoint::open(&domain, true)?;
        let mut slots = Slots::open(&domain).map_err(|error| error.at(me))?;
        let inbox = Some(Inbox::open(&endpoint, &mut slots)?);
        let memory = Memory::new(&domain);
        Ok(Ofi::new((me, n_pes), endpoint, slots, inbox, (Arc::default(), memory)))
    }

    fn new(
        (me, n_pes): (Pe, usize),
        endpoint: Endpoint,
        slots: Slots,
        inbox: Option<Inbox>,
        (peers, memory): (Arc<Peers>, Memory),
    ) -> Ofi {
        let (slots, refusal) = (RefCell::new(slots), RefCell::default());
        let (messages, counted) = (Cell::new(0), Cell::default());
        let (fetched_in_vain, turns) = (Arc::default(), Cell::new(0));
        // A word is atomic for one executor only. Acknowledgements arrive at the first endpoint.
        let delivers = inbox.is_some() && endpoint.domain.offer.caps & FI_ATOMIC == 0;
        let deliveries = delivers.then(|| Deliveries::new(n_pes));
        Ofi {
            me,
            n_pes,
            endpoint,
            slots,
            inbox,
            peers,
            memory,
            refusal,
            messages,
            deliveries,
            turns,
            counted,
            fetched_in_vain,
        }
    }

    /// The length up to which libfabric copies the data at once.
    fn inject_bytes(&self) -> usize {
        self.endpoint.domain.offer.inject_bytes.min(BUFFER_BYTES)
    }

    /// The status of an operation after a call of libfabric. `slot` is freed if no operation is under way.
    fn status(&self, code: isize, slot: Option<NonNull<Slot>>, kind: Kind, pe: Pe) -> Status {
        if code == 0 {
            return Status::Pending;
        }
        if let Some(slot) = slot {
            // SAFETY: the slot was taken for this call, which libfabric has refused.
            unsafe { self.slots.borrow_mut().free(slot) };
        }
        if code != -(FI_EAGAIN as isize) {
            let refusal = self.endpoint.refusal(kind.name(), pe, code);
            self.refusal.borrow_mut().get_or_insert(refusal);
        }
        Status::Again
    }

    fn take(&self, kind: Kind, pe: Pe, token: Option<Token>) -> Option<NonNull<Slot>> {
        self.slots.borrow_mut().take(kind, pe, token)
    }

    /// Starts a put whose data libfabric copies, or are in a slot's buffer, or stay at their source.
    ///
    /// # Safety
    /// As [`Provider::put`]; the source stays valid as `flags` and the slot require.
    unsafe fn put_from(
        &self,
        pe: Pe,
        (source, bytes): (*const u8, usize),
        slot: Option<NonNull<Slot>>,
        (target, flags): (Remote, u64),
        descriptor: *mut c_void,
    ) -> Status {
        let local = iovec { iov_base: source.cast_mut().cast(), iov_len: bytes };
        let transfer = Transfer { local, descriptor, remote: self.peers.range(pe, target, bytes) };
        let message = transfer.message(self.peers.addresses[pe], slot);
        let completion = if slot.is_some() { FI_COMPLETION } else { 0 };
        let flags = flags | completion | FI_DELIVERY_COMPLETE;
        // SAFETY: the endpoint is enabled; the caller guarantees the source, and the slot stays allocated.
        let code = unsafe { fi_writemsg(self.endpoint.ep.as_ptr(), &message, flags) };
        self.status(code, slot, Kind::Put, pe)
    }

    /// Makes sure that a transfer may use memory of the program. If it may not, its slot is freed.
    fn lend(
        &self,
        mut slot: NonNull<Slot>,
        pe: Pe,
        (start, bytes): (usize, usize),
        is_target: bool,
    ) -> Option<*mut c_void> {
        match self.memory.lend(start, bytes, is_target) {
            Ok(Loan { descriptor, lent }) => {
                // SAFETY: the slot was taken for the transfer, which is not started yet.
                unsafe { slot.as_mut().lent = lent };
                Some(descriptor)
            }
            Err(error) => {
                let refusal = FabricError::Unreachable {
                    pe: self.me,
                    peer: pe,
                    operation: "a transfer",
                    reason: error.to_string(),
                };
                self.refusal.borrow_mut().get_or_insert(refusal);
                // SAFETY: the slot was taken for the transfer, which is never started.
                unsafe { self.slots.borrow_mut().free(slot) };
                None
            }
        }
    }

    /// The place to which the provider writes a get of `bytes` bytes: its target, if the provider can write
    /// there, else the slot's buffer.
    ///
    /// # Safety
    /// The slot was just taken, with a buffer if the get needs one; the target is valid for writes.
    unsafe fn landing(
        &self,
        slot: NonNull<Slot>,
        pe: Pe,
        target: *mut u8,
        bytes: usize,
    ) -> Option<(*mut u8, *mut c_void)> {
        if !self.bounces(target, bytes) {
            return Some((target, self.lend(slot, pe, (target as usize, bytes), true)?));
        }
        let mut slots = self.slots.borrow_mut();
        // SAFETY: the slot has a buffer, and no other operation has the slot; the caller guarantees the
        // target.
        unsafe {
            let buffer = slot.as_ref().room().as_ptr();
            slots.land(slot, buffer, target, bytes);
            Some((buffer, slots.buffer_descriptor()))
        }
    }

    /// Whether a get to this target goes through a buffer, because registering the memory would take longer.
    fn bounces(&self, target: *mut u8, bytes: usize) -> bool {
        !self.memory.is_free()
            && bytes <= BUFFER_BYTES
            && self.memory.exposed_descriptor(target as usize, bytes).is_none()
    }

    /// Reads the queues and handles their completions. Returns the number of events.
    fn look(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        if !self.endpoint.keeps_arrivals_apart() {
            return self.take_completions(Of::Transfers, handle);
        }
        // Each read of a queue is a round of the provider's progress. The queue that the caller waits for is
        // read each time, and the other rarely. Completions in the other free the slots of messages, and
        // report that puts without a slot have failed.
        let turn = self.turns.replace(self.turns.get().wrapping_add(1));
        let has_transfers = self.slots.borrow().in_use() > RECEIVES + self.messages.get();
        let mut events = 0;
        if has_transfers || turn.is_multiple_of(LOOKS_PER_OTHER) {
            events += self.take_completions(Of::Transfers, handle)?;
        }
        if !has_transfers || turn.is_multiple_of(LOOKS_PER_OTHER) {
            events += self.take_completions(Of::Arrivals, handle)?;
        }
        Ok(events)
    }

    /// Handles completions. Returns the number of events.
    fn take_completions(&self, of: Of, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        let (mut events, mut seen) = (0, 0);
        let mut batch = [None; BATCH];
        loop {
            let count = self.endpoint.poll(of, &mut batch)?;
            for completion in batch.iter().take(count).flatten() {
                events += self.complete(*completion, handle)?;
            }
            seen += count;
            if count == 0
                && let Some(inbox) = &self.inbox
                && (of == Of::Arrivals || !self.endpoint.keeps_arrivals_apart())
            {
                inbox.settle(&self.endpoint)?;
            }
            if count < BATCH || seen >= COMPLETIONS_MAX {
                return Ok(events);
            }
        }
    }

    /// Handles one completion, and reports it as its operation requires.
    fn complete(&self, completion: Completion, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        let (kind, token, owes_sent) = {
            // SAFETY: the slot belongs to this endpoint, and libfabric has given it back.
            let slot = unsafe { completion.slot.as_ref() };
            if slot.fetches_in_vain {
                // Synchronization that lets another thread use this endpoint makes the count visible to it.
                self.fetched_in_vain.fetch_add(1, Ordering::Relaxed);
            }
            (slot.kind, slot.token, slot.owes_sent)
        };
        if let Kind::Receive = kind {
            return self.receive(completion, handle);
        }
        if let Kind::Message = kind {
            self.messages.set(self.messages.get() - 1);
        }
        // SAFETY: the queue reports that the operation is complete, so libfabric has released the slot. The
        // caller that has started the operation has promised the place of its data.
        unsafe { self.slots.borrow_mut().complete(completion.slot) };
        let Some(token) = token else { return Ok(0) };
        if owes_sent {
            handle(Event::Sent(token));
        }
        handle(Event::Done(token));
        Ok(1 + usize::from(owes_sent))
    }

    fn receive(&self, completion: Completion, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        let inbox = self.inbox.as_ref().expect("only an endpoint with an inbox is told of messages");
        let mut count = 0;
        if completion.flags & FI_RECV != 0 && !completion.data.is_null() && completion.bytes > 0 {
            // SAFETY: this number of bytes has arrived in a buffer that is not posted again before this
            // function returns.
            let message = unsafe { std::slice::from_raw_parts(completion.data, completion.bytes) };
            if let Some((from, kind, header, payload)) = unpack(message, self.endpoint.domain.proof) {
                let outcome = self.deliver(kind, (from, header, payload), handle);
                count = outcome.map_err(|why| {
                    let what =
                        format!("a message of {} bytes has arrived from PE {from}: {why}", message.len());
                    FabricError::Foreign { pe: self.me, what }
                })?;
            }
        }
        if completion.is_in_doubt {
            inbox.doubt(&self.endpoint, completion.slot);
        }
        if completion.flags & FI_MULTI_RECV != 0 {
            inbox.came_back(&self.endpoint, completion.slot)?;
        }
        Ok(count)
    }

    /// Delivers a message of a member of the job. Returns the number of events. An error describes a message
    /// that no member sends.
    fn deliver(
        &self,
        kind: MessageKind,
        (from, header, payload): (Pe, u64, &[u8]),
        handle: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, String> {
        if from >= self.n_pes {
            return Err("there is no such PE".into());
        }
        match (kind, &self.deliveries) {
            (CALLERS, _) => {
                handle(Event::Message { from, header, payload });
                Ok(1)
            }
            (PUT, Some(deliveries)) => deliveries.execute(&self.memory, (from, header, payload), handle),
            (ACKNOWLEDGEMENT, Some(deliveries)) if payload.is_empty() => {
                deliveries.take_count(from, header as u32, handle).map(|events| events.max(1))
            }
            _ => Err(format!("its kind is {kind}")),
        }
    }

    /// Sends a message of `bytes` bytes, which `write` writes. An injected message is copied by libfabric,
    /// and nothing reports that it has left.
    fn post(&self, pe: Pe, bytes: usize, is_injected: bool, write: impl FnOnce(&mut [u8])) -> Status {
        if is_injected && let Some(deliveries) = &self.deliveries {
            let mut room = deliveries.room.borrow_mut();
            write(&mut room[..bytes]);
            // SAFETY: libfabric copies the message before the call returns.
            return unsafe { self.post_from(pe, (room.as_ptr(), bytes), null_mut(), None) };
        }
        let taken = self.slots.borrow_mut().take_with_buffer(Kind::Message, pe, None);
        let Some(slot) = taken else { return Status::Again };
        let descriptor = self.slots.borrow().buffer_descriptor();
        // SAFETY: the slot was just taken, and has a buffer of more bytes than a message, which it owns until
        // the message has left.
        let status = unsafe {
            let buffer = slot.as_ref().room();
            write(NonNull::slice_from_raw_parts(buffer, bytes).as_mut());
            self.post_from(pe, (buffer.as_ptr(), bytes), descriptor, Some(slot))
        };
        self.messages.set(self.messages.get() + usize::from(status == Status::Pending));
        status
    }

    /// Sends a message that was written. Without a slot it is injected.
    ///
    /// # Safety
    /// The message is valid for reads until it has left, or if it is injected until this returns.
    unsafe fn post_from(
        &self,
        pe: Pe,
        (start, bytes): (*const u8, usize),
        descriptor: *mut c_void,
        slot: Option<NonNull<Slot>>,
    ) -> Status {
        let local = iovec { iov_base: start.cast_mut().cast(), iov_len: bytes };
        let message = fi_msg {
            msg_iov: &local,
            desc: list_of(&descriptor),
            iov_count: 1,
            addr: self.peers.addresses[pe],
            context: slot.map_or(null_mut(), |slot| slot.as_ptr().cast()),
            data: 0,
        };
        let flags = if slot.is_some() { FI_COMPLETION | FI_TRANSMIT_COMPLETE } else { FI_INJECT };
        // SAFETY: the endpoint is enabled; the caller guarantees the message, and the slot stays allocated.
        let code = unsafe { fi_sendmsg(self.endpoint.ep.as_ptr(), &message, flags) };
        self.status(code, slot, Kind::Message, pe)
    }

    /// Starts a put that is a message, with a signal if there is one.
    ///
    /// # Safety
    /// As [`Provider::put_signal`].
    unsafe fn put_by_message(&self, put: Put, signal: Option<Signal>) -> Status {
        let deliveries = self.deliveries.as_ref().expect("only a put that may signal is sent as a message");
        if !deliveries.has_room(put.completion) {
            return Status::Again;
        }
        let (bytes, member) = (HEAD_BYTES + put.bytes, (self.endpoint.domain.proof, self.me));
        let status = self.post(put.pe, bytes, bytes <= self.inject_bytes(), |room| {
            // SAFETY: the caller has promised the source.
            unsafe { deliveries.write_put(room, member, &put, signal) };
        });
        if status == Status::Pending {
            deliveries.began(put.pe, put.completion);
        }
        status
    }

    /// Sends the messages that deliveries owe to peers, as far as libfabric takes them.
    fn pay(&self, deliveries: &Deliveries) {
        let member = (self.endpoint.domain.proof, self.me);
        deliveries.pay(|pe, owed| {
            let bytes = if owed == Owed::Flush { HEAD_BYTES } else { PREFIX_BYTES };
            let status = self.post(pe, bytes, bytes <= self.inject_bytes(), |room| match owed {
                Owed::Flush => deliveries.write_flush(room, member, pe),
                _ => deliveries.write_count(room, member, pe),
            });
            status == Status::Pending
        });
    }
}

impl Provider for Ofi {
    const NAME: &'static str = "ofi";
    const MOVES_BY_ITSELF: bool = true;
    type Inject = OfiInject;

    fn description(&self) -> String {
        let offer = &self.endpoint.domain.offer;
        format!("{} ({} on {})", Ofi::NAME, offer.provider, offer.domain)
    }

    fn terms(&self) -> String {
        let offer = &self.endpoint.domain.offer;
        let terms = [
            (offer.wants_telling(), "keys told"),
            (offer.data_progress != FI_PROGRESS_AUTO, "data moved in calls"),
            (offer.caps & FI_ATOMIC == 0, "atomics by processors"),
        ];
        let terms = terms.into_iter().filter_map(|(holds, words)| holds.then_some(words));
        std::iter::once(&*offer.provider).chain(terms).collect::<Vec<_>>().join(", ")
    }

    fn pins(&self) -> bool {
        self.endpoint.domain.offer.mr_mode & (FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_ENDPOINT) != 0
    }

    fn limits(&self) -> Limits {
        let transfer_bytes = self.endpoint.domain.offer.transfer_bytes;
        Limits { inject_bytes: BUFFER_BYTES, message_bytes: PAYLOAD_BYTES, transfer_bytes }
    }

    fn address(&self) -> FabricResult<Vec<u8>> {
        self.endpoint.address()
    }

    fn connect(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()> {
        let addresses: Vec<_> = (0..self.n_pes).map(lookup).collect::<FabricResult<_>>()?;
        let domain = &self.endpoint.domain;
        self.peers = Arc::new(Peers::new(domain.insert(&addresses)?, domain.wire_key(0)));
        Ok(())
    }

    fn register(&mut self, key: Key, start: NonNull<u8>, bytes: usize) -> FabricResult<()> {
        self.memory.expose(&self.endpoint, (key, start.as_ptr() as usize, bytes))
    }

    fn exposed(&self) -> Vec<u8> {
        match self.endpoint.domain.offer.wants_telling() {
            true => remote::pack(self.memory.told()),
            false => Vec::new(),
        }
    }

    fn reach(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()> {
        let read = |pe| {
            let what = || format!("what PE {pe} says of its registered memory makes no sense here");
            let told = lookup(pe)?;
            remote::unpack(&told).ok_or_else(|| FabricError::Foreign { pe: self.me, what: what() })
        };
        let told = (0..self.n_pes).map(read).collect::<FabricResult<_>>()?;
        self.peers = Arc::new(self.peers.with(told));
        Ok(())
    }

    fn context(&self) -> FabricResult<Ofi> {
        let endpoint = Endpoint::open(&self.endpoint.domain, false)?;
        let slots = Slots::open(&self.endpoint.domain).map_err(|error| error.at(self.me))?;
        let shared = (Arc::clone(&self.peers), self.memory.clone());
        Ok(Ofi::new((self.me, self.n_pes), endpoint, slots, None, shared))
    }

    fn executes(&self, kind: AtomicKind) -> bool {
        self.endpoint.domain.kinds(|| self.endpoint.executed_kinds()) >> kind as u32 & 1 != 0
    }

    unsafe fn put(&self, put: Put) -> Status {
        let Put { pe, target, source, bytes, completion } = put;
        if !completion.is_reported() {
            // SAFETY: the caller's promises are the same.
            return unsafe { self.put_by_message(put, None) };
        }
        let token = completion.token();
        if bytes <= self.inject_bytes() {
            let slot = match token {
                None => None,
                Some(_) => match self.take(Kind::Put, pe, token) {
                    None => return Status::Again,
                    slot => slot,
                },
            };
            // SAFETY: the caller guarantees source and target; an injected source is free at return.
            return unsafe { self.put_from(pe, (source, bytes), slot, (target, FI_INJECT), null_mut()) };
        }
        if bytes > BUFFER_BYTES {
            let Some(mut slot) = self.take(Kind::Put, pe, token) else { return Status::Again };
            let Some(descriptor) = self.lend(slot, pe, (source as usize, bytes), false) else {
                return Status::Again;
            };
            // SAFETY: the slot was just taken; the caller guarantees source and target.
            return unsafe {
                slot.as_mut().owes_sent = token.is_some();
                self.put_from(pe, (source, bytes), Some(slot), (target, 0), descriptor)
            };
        }
        let taken = self.slots.borrow_mut().take_with_buffer(Kind::Put, pe, token);
        let Some(slot) = taken else { return Status::Again };
        let descriptor = self.slots.borrow().buffer_descriptor();
        // SAFETY: the slot was just taken, and has a buffer, which it owns until the put is complete; the
        // caller guarantees source and target.
        unsafe {
            let buffer = slot.as_ref().room().as_ptr();
            buffer.copy_from_nonoverlapping(source, bytes);
            self.put_from(pe, (buffer, bytes), Some(slot), (target, 0), descriptor)
        }
    }

    fn signal_bytes(&self) -> Option<usize> {
        self.deliveries.as_ref().map(|_| DATA_BYTES)
    }

    unsafe fn put_signal(&self, put: Put, signal: Signal) -> Status {
        // SAFETY: the caller's promises are the same.
        unsafe { self.put_by_message(put, Some(signal)) }
    }

    fn flush(&self) -> u64 {
        let Some(deliveries) = &self.deliveries else { return 0 };
        let count = deliveries.begin_flushes();
        self.pay(deliveries);
        count
    }

    unsafe fn get(&self, get: Get) -> Status {
        let Get { pe, source, target, bytes, completion } = get;
        let token = completion.token();
        let taken = match self.bounces(target, bytes) {
            true => self.slots.borrow_mut().take_with_buffer(Kind::Get, pe, token),
            false => self.take(Kind::Get, pe, token),
        };
        let Some(slot) = taken else { return Status::Again };
        // SAFETY: the slot was just taken, with a buffer if the get needs one; the caller guarantees the
        // target.
        let landing = unsafe { self.landing(slot, pe, target, bytes) };
        let Some((landing, descriptor)) = landing else { return Status::Again };
        let local = iovec { iov_base: landing.cast(), iov_len: bytes };
        let transfer = Transfer { local, descriptor, remote: self.peers.range(pe, source, bytes) };
        let message = transfer.message(self.peers.addresses[pe], Some(slot));
        // SAFETY: the endpoint is enabled; the caller guarantees the target, and the slot stays allocated.
        let code = unsafe { fi_readmsg(self.endpoint.ep.as_ptr(), &message, FI_COMPLETION) };
        self.status(code, Some(slot), Kind::Get, pe)
    }

    unsafe fn atomic(&self, amo: Amo) -> Status {
        let Amo { pe, word, atomic, fetched, completion } = amo;
        let token = completion.token();
        let Some(mut slot) = self.take(Kind::Atomic, pe, token) else { return Status::Again };
        let context = slot.as_ptr().cast();
        // An atomic that only fetches, or compares, needs a place for the old value. If the caller does not
        // need the value, the place is in the slot.
        let fetches_always = atomic.op == AtomicOp::Fetch || atomic.op.takes_comparison();
        let fetches = fetches_always || !fetched.is_null();
        // SAFETY: the slot was just taken.
        unsafe { slot.as_mut().fetches_in_vain = fetches && fetched.is_null() };
        let operands = [atomic.operand, atomic.compare];
        // SAFETY: the slot was just taken, and libfabric does not have it yet.
        let [operand, compare, spare] = unsafe { slot.as_mut().keep_operands(operands) };
        let place = |address: *mut u8| fi_ioc { addr: address.cast(), count: 1 };
        let [operand, compare] = [operand, compare].map(|address| place(address.cast()));
        let lands = !fetched.is_null() && !self.memory.is_free();
        if lands {
            let mut slots = self.slots.borrow_mut();
            // SAFETY: the slot was just taken; the caller guarantees the place of the result.
            unsafe { slots.land(slot, spare.cast(), fetched, atomic.kind.bytes()) };
        }
        let mut result = place(if lands || fetched.is_null() { spare.cast() } else { fetched });
        let [key, addr] = self.peers.reach(pe, word);
        let target = fi_rma_ioc { addr, count: 1, key };
        let descriptor = self.slots.borrow().descriptor();
        let descriptors = list_of(&descriptor);
        let message = fi_msg_atomic {
            msg_iov: &operand,
            desc: descriptors,
            iov_count: usize::from(atomic.op != AtomicOp::Fetch),
            addr: self.peers.addresses[pe],
            rma_iov: &target,
            rma_iov_count: 1,
            datatype: datatype(atomic.kind),
            op: operation(atomic.op),
            context,
            data: 0,
        };
        let (ep, flags) = (self.endpoint.ep.as_ptr(), FI_COMPLETION | FI_DELIVERY_COMPLETE);
        // SAFETY: the endpoint is enabled; the operands lie in the slot, which stays allocated; the caller
        // guarantees the place of the result.
        let code = unsafe {
            if atomic.op.takes_comparison() {
                fi_compare_atomicmsg(
                    ep,
                    &message,
                    &compare,
                    descriptors,
                    1,
                    &mut result,
                    descriptors,
                    1,
                    flags,
                )
            } else if fetches {
                fi_fetch_atomicmsg(ep, &message, &mut result, descriptors, 1, flags)
            } else {
                fi_atomicmsg(ep, &message, flags)
            }
        };
        self.status(code, Some(slot), Kind::Atomic, pe)
    }

    fn send(&self, pe: Pe, header: u64, payload: &[u8]) -> Status {
        assert!(
            pe < self.n_pes && payload.len() <= PAYLOAD_BYTES,
            "PE {}: a message of {} bytes to PE {pe} of {}, the limit is {PAYLOAD_BYTES} bytes",
            self.me,
            payload.len(),
            self.n_pes,
        );
        let member = (self.endpoint.domain.proof, self.me);
        let status = self.post(pe, PREFIX_BYTES + payload.len(), false, |room| {
            pack(room, member, header, payload);
        });
        match status {
            Status::Pending => Status::Done,
            other => other,
        }
    }

    fn progress(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        if let Some(refusal) = self.refusal.borrow_mut().take() {
            return Err(refusal);
        }
        let events = self.look(handle)?;
        if let Some(deliveries) = self.deliveries.as_ref().filter(|all| all.is_due(events == 0)) {
            self.pay(deliveries);
        }
        Ok(events)
    }

    fn rest(&self, _bound: Duration) {
        // This yields to threads on the same core, such as the provider's own.
        rustix::thread::sched_yield();
    }

    fn wait_descriptor(&self) -> Option<OwnedFd> {
        self.endpoint.wait_descriptor()?.try_clone_to_owned().ok()
    }

    fn is_urgent(&self) -> bool {
        let offer = &self.endpoint.domain.offer;
        [offer.data_progress, offer.control_progress] != [FI_PROGRESS_AUTO; 2]
    }

    fn keeps_messages_behind_puts(&self) -> bool {
        let offer = &self.endpoint.domain.offer;
        // The order of messages alone does not imply the order of their data. A provider that places data in
        // order says so.
        let kept = FI_ORDER_SAW | FI_ORDER_WAW;
        offer.msg_order & kept == kept && offer.ordered_put_bytes >= offer.transfer_bytes
    }

    fn may_sleep(&self) -> bool {
        if let Some(deliveries) = &self.deliveries {
            self.pay(deliveries);
        }
        self.deliveries.as_ref().is_none_or(Deliveries::owes_nothing) && self.endpoint.may_sleep()
    }

    fn inject(&self, key: Key) -> Option<OfiInject> {
        let put_bytes = self.inject_bytes();
        let spots = (put_bytes >= size_of::<u64>()).then(|| self.peers.spots(key))?;
        let is_empty = spots.is_empty();
        let prepared = (!is_empty).then(|| Prepared::new(self.endpoint.ep, spots, put_bytes))?;
        // A prepared get writes to its target directly, and uses a key that needs no exchange.
        if !self.memory.is_free() || self.endpoint.domain.offer.wants_telling() {
            return Some(prepared.into_inject());
        }
        let (gets, vain) = (self.endpoint.gets, Arc::clone(&self.fetched_in_vain));
        let prepared = prepared.with_gets(gets, vain, self.endpoint.domain.offer.transfer_bytes);
        Some(prepared.into_inject())
    }

    fn completions(&self) -> Completions {
        let (puts, gets) = (self.endpoint.count_puts(), self.endpoint.count_gets());
        let moved = self.fetched_in_vain.load(Ordering::Relaxed);
        // The counter may or may not include operations whose data have still to be copied to their targets.
        let landing = self.slots.borrow().landings() as u64;
        let delivered = self.deliveries.as_ref().map_or(0, Deliveries::complete);
        Completions { puts: puts + moved + delivered, gets: gets.saturating_sub(moved + landing) }
    }

    /// Reading a counter is a round of the provider's progress, so only a counter that lags behind is read.
    fn has_completed(&self, started: Completions) -> bool {
        let delivered = match &self.deliveries {
            // Their acknowledgements arrive in `progress`.
            Some(deliveries) if deliveries.under_way() > 0 => return false,
            Some(deliveries) => deliveries.complete(),
            None => 0,
        };
        let (moved, mut counted) = (self.fetched_in_vain.load(Ordering::Relaxed), self.counted.get());
        let other_puts = moved + delivered;
        if counted.puts + other_puts != started.puts {
            counted.puts = self.endpoint.count_puts();
        }
        if counted.gets != started.gets + moved {
            counted.gets = self.endpoint.count_gets();
        }
        self.counted.set(counted);
        counted.puts + other_puts == started.puts
            && counted.gets == started.gets + moved
            && self.slots.borrow().landings() == 0
    }
}

impl Drop for Ofi {
    fn drop(&mut self) {
        // The last messages are sent. All other events are ignored.
        let deadline = Instant::now() + LINGER;
        while self.messages.get() > 0 && Instant::now() < deadline && self.progress(&mut |_| ()).is_ok() {
            rustix::thread::sched_yield();
        }
        // Regions that are bound to the endpoint keep it open.
        self.memory.conceal(&self.endpoint);
    }
}

const _: () = assert!(PREFIX_BYTES < BUFFER_BYTES);
