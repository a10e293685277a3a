//! Sends, receives and probes.

use super::envelope::{ANY_TAG, Context, Envelope, Tag};
use super::outgoing::First;
use super::packing::Packing;
use super::request::{Completed, Phase, Request, RequestId, Status};
use super::state::{Direct, Exchange, State, Unexpected};
use super::wire::eager_words;
use super::{TwoSided, process};
use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::trace::Event;
use crate::job::callback;
use pelago_fabric::biased::Held;
use pelago_fabric::shm::fifo::is_begun;
use pelago_fabric::sync::{Ordering, spin_once};
use std::sync::Arc;

/// The number of looks for one message between two looks for all others.
const LOOKS_PER_POLL: u32 = 64;

/// Where a message goes, or a receive looks for one.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    pub context: Context,
    pub pe: Pe,
    pub tag: Tag,
}

/// How a send completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When its data may be reused.
    Standard,
    /// When a receive has matched it.
    Synchronous,
    /// At once: the data are copied.
    Buffered,
}

/// A receive that was started.
#[derive(Clone, Copy, Debug)]
pub enum Started {
    Done(Status),
    Pending(RequestId),
}

/// A message that a probe has taken out of the queue: only its holder can receive it.
pub struct Matched {
    envelope: Envelope,
    message: Unexpected,
}

impl Matched {
    pub fn status(&self) -> Status {
        Status::of(&self.envelope, self.message.len())
    }
}

impl TwoSided {
    /// Starts a send of `bytes` bytes. `None` if it is complete.
    ///
    /// # Errors
    /// If the tag is [`ANY_TAG`].
    ///
    /// # Safety
    /// `data` is valid for reads until the send is complete.
    #[inline]
    #[track_caller]
    pub unsafe fn start_send(
        &self,
        to: Address,
        (data, bytes): (*const u8, usize),
        mode: Mode,
    ) -> Result<Option<RequestId>> {
        let mut state = self.lock();
        if mode != Mode::Synchronous
            && to.tag != ANY_TAG
            && callback::is_free()
            && let peer = &mut state.exchange.peers[to.pe]
            && bytes < peer.fast_below
            && peer.waiting.is_empty()
            && let Some(out) = &mut peer.out
        {
            // SAFETY: the caller guarantees the data.
            if unsafe { out.send_eager(eager_words(to.tag, to.context), (data, bytes)) } {
                // No fence orders the message before this look: see `Doorbell::announce`.
                let doorbell = out.greet();
                drop(state);
                if doorbell.has_sleepers() {
                    doorbell.ring_all();
                }
                return Ok(None);
            }
        }
        // SAFETY: the caller guarantees the data.
        unsafe { self.start_send_slowly(state, to, (data, bytes), mode) }
    }

    /// # Safety
    /// As [`start_send`](TwoSided::start_send).
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn start_send_slowly<'a>(
        &'a self,
        mut state: Held<'a, State>,
        to: Address,
        (data, bytes): (*const u8, usize),
        mode: Mode,
    ) -> Result<Option<RequestId>> {
        callback::forbid(self, "send");
        self.check_tag("send", to.tag)?;
        // A message without data may have no address.
        let data = if bytes == 0 { std::ptr::NonNull::<u8>::dangling().as_ptr().cast_const() } else { data };
        let (me, exchange) = (self.my_pe(), &mut state.exchange);
        let envelope = Envelope { context: to.context, source: me as u32, tag: to.tag };
        let is_eager = bytes <= exchange.peers[to.pe].eager_bytes;
        self.record_send(exchange, to.pe, bytes);
        if mode != Mode::Synchronous && exchange.leaves_at_once(to.pe, bytes) && !self.is_closed() {
            let first = First::eager(to.tag, to.context, (data, bytes));
            // SAFETY: the caller guarantees the data.
            match unsafe { self.send_at_once(state, to.pe, &first) } {
                None => return Ok(None),
                Some(held) => state = held,
            }
        }
        let owned = (mode == Mode::Buffered && (to.pe != me || !is_eager)).then(|| {
            // SAFETY: the caller guarantees the data.
            Box::<[u8]>::from(unsafe { std::slice::from_raw_parts(data, bytes) })
        });
        let may_be_announced = bytes > state.exchange.eager_bytes_without_room(to.pe);
        if may_be_announced && self.msg.limits.single_copy != Some(false) {
            process::permit_access();
        }
        let request = Request {
            phase: Phase::Queued,
            pe: to.pe,
            buffer: owned.as_ref().map_or(data, |owned| owned.as_ptr()).cast_mut(),
            room: bytes,
            is_synchronous: mode == Mode::Synchronous,
            bytes,
            owned,
            ..Exchange::receive_request(envelope, std::ptr::null_mut(), 0)
        };
        Ok(self.queue_send(state, request))
    }

    /// Whether [`start_send_packed`](TwoSided::start_send_packed) takes a message of this length.
    pub fn sends_packed(&self, pe: Pe, bytes: usize) -> bool {
        let state = self.lock();
        let peer = &state.exchange.peers[pe];
        pe != self.my_pe() && peer.out.is_some() && bytes > peer.eager_bytes
    }

    /// Starts a send of `bytes` bytes that do not lie in one piece. `None` if it is complete. The message
    /// moves while this PE makes progress.
    ///
    /// # Errors
    /// If the tag is [`ANY_TAG`].
    ///
    /// # Safety
    /// The data are valid for reads until the send is complete.
    #[track_caller]
    pub unsafe fn start_send_packed(
        &self,
        to: Address,
        packing: Box<dyn Packing>,
        bytes: usize,
        is_synchronous: bool,
    ) -> Result<Option<RequestId>> {
        callback::forbid(self, "send");
        self.check_tag("send", to.tag)?;
        debug_assert!(self.sends_packed(to.pe, bytes), "{bytes} bytes to PE {}", to.pe);
        let envelope = Envelope { context: to.context, source: self.my_pe() as u32, tag: to.tag };
        let request = Request {
            phase: Phase::Queued,
            pe: to.pe,
            packing: Some(packing),
            is_synchronous,
            bytes,
            ..Exchange::receive_request(envelope, std::ptr::null_mut(), bytes)
        };
        let mut state = self.lock();
        self.record_send(&mut state.exchange, to.pe, bytes);
        Ok(self.queue_send(state, request))
    }

    /// Records the departure of a message.
    fn record_send(&self, exchange: &mut Exchange, to: Pe, bytes: usize) {
        if self.tally.is_recording() {
            let (me, peer) = (self.my_pe(), &mut exchange.peers[to]);
            self.tally.note(|| Event::departure("send", (me, to), peer.recorded, bytes));
            peer.recorded += 1;
        }
    }

    /// Records the arrival of a message that was received from the head of its FIFO.
    #[inline(always)]
    fn record_receive(&self, exchange: &mut Exchange, status: &Status) {
        if self.tally.is_recording() {
            exchange.record_direct(&self.messaging.teams, (status.source, status.bytes));
        }
    }

    /// Sends a message as soon as it is the first of those that wait. `None` if it is complete.
    #[track_caller]
    fn queue_send(&self, mut state: Held<'_, State>, request: Request) -> Option<RequestId> {
        let (me, to, exchange) = (self.my_pe(), request.pe, &mut state.exchange);
        let is_detached = request.owned.is_some();
        let id = exchange.requests.add(request);
        // Once this PE is closed, the buffers of other requests may be gone.
        match (to == me, self.is_closed()) {
            (true, false) => self.send_to_self(exchange, id),
            (true, true) => exchange.complete(id),
            (false, false) => {
                exchange.peers[to].waiting.push_back(id);
                exchange.flush_or_note_busy(to);
            }
            (false, true) => exchange.peers[to].waiting.push_back(id),
        }
        let has_net_work = exchange.has_net_work();
        drop(state);
        if to == me {
            self.ring_own_sleepers();
        }
        if has_net_work {
            self.flush_net();
        }
        // A buffered send, or one that is complete, has no request for the caller.
        let is_over = is_detached || self.lock().exchange.requests.free_if_done(id).is_some();
        (!is_over).then_some(id)
    }

    /// A message to this PE itself.
    fn send_to_self(&self, exchange: &mut Exchange, id: RequestId) {
        let (me, teams) = (self.my_pe(), &self.messaging.teams);
        let first = exchange.first(id, me, true);
        exchange.requests.get(id).phase = Phase::Sent;
        let head: Vec<u8> = first.head().iter().flat_map(|word| word.to_ne_bytes()).collect();
        // SAFETY: the caller of the send keeps its data valid until it is complete.
        let data = unsafe { std::slice::from_raw_parts(first.data, first.bytes) };
        // Only a synchronous send has words in front of its data.
        let all = if head.is_empty() { Vec::new() } else { [&head, data].concat() };
        let payload = pelago_fabric::shm::fifo::Payload::of(if head.is_empty() { data } else { &all });
        let is_valid = exchange.take(teams, me, first.words, &payload).is_some();
        assert!(is_valid, "PE {me} has sent itself a message that it refuses");
        if first.is_all {
            exchange.complete(id);
        }
    }

    /// Starts a receive of a message that this pattern matches, into a buffer of `room` bytes.
    ///
    /// # Safety
    /// `buffer` is valid for writes until the receive is complete.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn start_receive(&self, pattern: Envelope, (buffer, room): (*mut u8, usize)) -> Started {
        let mut state = self.lock();
        if !pattern.is_wildcard() {
            if state.exchange.matching.has_posted() {
                self.take_for_posted(&mut state, pattern.source as Pe);
            }
            // SAFETY: the caller guarantees the buffer.
            if let Direct::Done(status) = unsafe { state.receive_directly(&pattern, (buffer, room)) } {
                self.record_receive(&mut state.exchange, &status);
                return Started::Done(status);
            }
        }
        Started::Pending(self.post_receive(state, pattern, (buffer, room), None))
    }

    /// Starts a receive of a message that this pattern matches, whose data, at most `room` bytes, are
    /// unpacked.
    ///
    /// # Safety
    /// The places of the data are valid for writes until the receive is complete.
    #[track_caller]
    pub unsafe fn start_receive_packed(
        &self,
        pattern: Envelope,
        packing: Box<dyn Packing>,
        room: usize,
    ) -> RequestId {
        self.post_receive(self.lock(), pattern, (std::ptr::null_mut(), room), Some(packing))
    }

    #[inline(never)]
    #[track_caller]
    fn take_for_posted(&self, state: &mut State, from: Pe) {
        // As in `poll`.
        if !self.is_closed()
            && let Err(reason) = state.take_for_posted(&self.messaging.teams, from)
        {
            self.fail_invalid(&reason);
        }
    }

    /// Posts a receive, unless an unexpected message matches it.
    #[inline(never)]
    #[track_caller]
    fn post_receive(
        &self,
        mut state: Held<'_, State>,
        pattern: Envelope,
        (buffer, room): (*mut u8, usize),
        packing: Option<Box<dyn Packing>>,
    ) -> RequestId {
        let buffer = if room == 0 { std::ptr::NonNull::<u8>::dangling().as_ptr() } else { buffer };
        let exchange = &mut state.exchange;
        let request = Request { packing, ..Exchange::receive_request(pattern, buffer, room) };
        let id = exchange.requests.add(request);
        match exchange.matching.find_unexpected(&pattern) {
            None => {
                let place = exchange.matching.post(pattern, id);
                exchange.requests.get(id).phase = Phase::Posted(place);
            }
            Some(place) => {
                let (envelope, message) = exchange.matching.take_unexpected(place);
                self.receive_unexpected(state, id, envelope, message);
            }
        }
        id
    }

    /// Receives a message: see [`start_receive`](TwoSided::start_receive).
    ///
    /// # Safety
    /// `buffer` is valid for writes.
    #[inline]
    #[track_caller]
    pub unsafe fn receive_message(&self, pattern: Envelope, room: (*mut u8, usize)) -> Status {
        if !pattern.is_wildcard() {
            // SAFETY: the caller guarantees the buffer.
            if let Some(bytes) = unsafe { self.receive_soon(pattern, room) } {
                return Status::of(&pattern, bytes);
            }
        }
        // SAFETY: the caller guarantees the buffer, and this call does not return before the receive is done.
        match unsafe { self.start_receive(pattern, room) } {
            Started::Done(status) => status,
            Started::Pending(id) => self.wait_for_message(id),
        }
    }

    /// Receives an eager message from the FIFO of its source, if it is the first that this receive can get
    /// and comes soon: its length. The receive is not posted, unless the sender stops while it writes the
    /// message.
    ///
    /// # Safety
    /// The buffer is valid for writes.
    unsafe fn receive_soon(&self, envelope: Envelope, room: (*mut u8, usize)) -> Option<usize> {
        let mut looks = self.policy.spins();
        loop {
            let mut state = self.lock();
            // SAFETY: the caller guarantees the buffer.
            let (stamp, expected) = match unsafe { state.receive_directly(&envelope, room) } {
                Direct::Done(status) => {
                    self.record_receive(&mut state.exchange, &status);
                    return Some(status.bytes);
                }
                Direct::Later(stamp, expected) => (stamp, expected),
                _ => return None,
            };
            if state.has_other_work() {
                self.poll_solicited(&mut state);
            }
            drop(state);
            if self.hooks.are_any() {
                // They run in waits, and the sender may wait for one.
                return None;
            }
            loop {
                looks = looks.checked_sub(1)?;
                let has_come = (stamp.load(Ordering::Relaxed) >> 32) as u32 == expected;
                if has_come || looks.is_multiple_of(LOOKS_PER_POLL) {
                    break;
                }
                if is_begun(stamp, expected) {
                    // SAFETY: the caller guarantees the buffer.
                    return unsafe { self.receive_begun(envelope, room) };
                }
                spin_once();
            }
        }
    }

    /// Receives the eager message that the source is writing, if this receive gets it: its length. The
    /// receive is posted if the sender stops.
    ///
    /// # Safety
    /// The buffer is valid for writes.
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn receive_begun(&self, envelope: Envelope, room: (*mut u8, usize)) -> Option<usize> {
        let mut state = self.lock();
        // SAFETY: the caller guarantees the buffer.
        match unsafe { state.follow(&envelope, room) } {
            Direct::Done(status) => {
                self.record_receive(&mut state.exchange, &status);
                Some(status.bytes)
            }
            // No other receive can get the message: this one is the first that matches it.
            Direct::Begun => {
                let id = self.post_receive(state, envelope, room, None);
                Some(self.wait_for_message(id).bytes)
            }
            _ => None,
        }
    }

    /// Starts the receive of a message that a probe has matched, into a buffer, or to be unpacked.
    ///
    /// # Safety
    /// The buffer, or the places of the data, are valid for writes until the receive is complete.
    #[track_caller]
    pub unsafe fn start_receive_matched(
        &self,
        matched: Matched,
        (buffer, room): (*mut u8, usize),
        packing: Option<Box<dyn Packing>>,
    ) -> RequestId {
        let Matched { envelope, message } = matched;
        let mut state = self.lock();
        let request = Request { packing, ..Exchange::receive_request(envelope, buffer, room) };
        let id = state.exchange.requests.add(request);
        self.receive_unexpected(state, id, envelope, message);
        id
    }

    /// Discards a message that a probe has matched. For its sender it is received: a synchronous or long send
    /// completes, and others may follow.
    #[cold]
    #[track_caller]
    pub fn discard_matched(&self, matched: Matched) {
        // A sender does not wait for a PE that is closed.
        if self.is_closed() {
            return;
        }
        let nowhere = (std::ptr::NonNull::<u8>::dangling().as_ptr(), 0);
        // SAFETY: a receive without room writes nothing.
        let id = unsafe { self.start_receive_matched(matched, nowhere, None) };
        let status = self.take_if_done(id);
        debug_assert!(status.is_some(), "a receive without room waits for no data");
    }

    #[cold]
    #[track_caller]
    fn receive_unexpected(
        &self,
        mut state: Held<'_, State>,
        id: RequestId,
        envelope: Envelope,
        message: Unexpected,
    ) {
        let (exchange, teams) = (&mut state.exchange, &self.messaging.teams);
        let from = envelope.source as Pe;
        exchange.peers[from].matched += message.units();
        let is_valid = exchange.receive_kept(teams, id, envelope, message).is_some();
        exchange.allow(from, false);
        let has_net_work = exchange.has_net_work();
        drop(state);
        if !is_valid {
            self.fail_invalid(&format!("PE {from} has announced a message that lies outside its memory"));
        }
        if from == self.my_pe() {
            // Another thread may wait until its synchronous message is received.
            self.ring_own_sleepers();
        }
        if has_net_work {
            self.flush_net();
        }
    }

    /// Makes progress; then frees the request if it is done: its outcome.
    ///
    /// # Panics
    /// If there is no such request.
    #[track_caller]
    pub fn test_message(&self, id: RequestId) -> Option<Status> {
        self.look(id).or_else(|| {
            self.progress();
            self.look(id)
        })
    }

    /// Frees the request if it is done: its outcome. Makes no progress.
    pub fn take_if_done(&self, id: RequestId) -> Option<Status> {
        self.lock().exchange.requests.free_if_done(id)
    }

    /// Takes what has come through FIFOs; then frees the request if it is done: its outcome.
    #[track_caller]
    pub fn look(&self, id: RequestId) -> Option<Status> {
        let mut state = self.lock();
        if state.exchange.requests.get(id).phase != Phase::Done {
            self.poll(&mut state, false);
        }
        let status = state.exchange.requests.free_if_done(id);
        let has_net_work = state.exchange.has_net_work();
        drop(state);
        if has_net_work {
            self.flush_net();
        }
        status
    }

    /// Takes what has come through FIFOs, and sends what waits. Nothing, once this PE is closed: buffers of
    /// requests may be gone.
    #[track_caller]
    pub(super) fn poll(&self, state: &mut State, is_wanted: bool) {
        if !self.is_closed()
            && let Err(reason) = state.poll(&self.messaging.teams, is_wanted)
        {
            self.fail_invalid(&reason);
        }
    }

    /// As [`poll`](TwoSided::poll), but takes only answers.
    #[track_caller]
    fn poll_solicited(&self, state: &mut State) {
        if !self.is_closed()
            && let Err(reason) = state.poll_solicited(&self.messaging.teams)
        {
            self.fail_invalid(&reason);
        }
    }

    #[cold]
    #[track_caller]
    fn fail_invalid(&self, reason: &str) -> ! {
        self.fail(&format!("PE {}: {reason}", self.my_pe()))
    }

    /// Returns when no thread is taking messages any more, if this PE is closed: from then on the buffers of
    /// its requests are not accessed.
    pub fn settle_messages(&self) {
        if self.is_closed()
            && let Some(state) = self.msg.get_if_open()
        {
            drop(state.lock());
        }
    }

    /// Waits until a request is done, and frees it: its outcome.
    #[track_caller]
    pub fn wait_for_message(&self, id: RequestId) -> Status {
        let settling = Settling(self);
        // Hooks run in waits, and the sender may wait for one.
        let spins = if self.hooks.are_any() { 1 } else { self.spins_before_wait() };
        for _ in 0..spins {
            if let Some(status) = self.look(id) {
                std::mem::forget(settling);
                return status;
            }
            spin_once();
        }
        let awaited = self.awaited(id);
        let mut status = None;
        self.wait(awaited, || {
            status = status.or_else(|| self.look(id));
            status.is_some()
        });
        std::mem::forget(settling);
        status.expect("a wait ends when the request is done")
    }

    /// Waits until these requests are done, and frees them. `done` gets the outcome of each, with its place
    /// in the list; it must not use messages.
    #[track_caller]
    pub fn wait_for_messages(
        &self,
        ids: impl Iterator<Item = RequestId>,
        mut done: impl FnMut(usize, Status),
    ) {
        let mut ids = ids.enumerate().peekable();
        while let Some((place, id)) = ids.next() {
            done(place, self.wait_for_message(id));
            let mut state = self.lock();
            let requests = &mut state.exchange.requests;
            while let Some(&(place, id)) = ids.peek()
                && let Some(status) = requests.free_if_done(id)
            {
                done(place, status);
                ids.next();
            }
        }
    }

    /// The condition of the wait for a request.
    fn awaited(&self, id: RequestId) -> Awaited {
        let mut state = self.lock();
        let (is_send, pe) = self.partner(state.exchange.requests.get(id));
        Awaited::Message { is_send, pe }
    }

    /// Whether a request is a send, and the PE at its other end, if that is known.
    fn partner(&self, request: &Request) -> (bool, Option<Pe>) {
        let is_send = request.envelope.source as Pe == self.my_pe()
            && !matches!(request.phase, Phase::Posted(_) | Phase::Arriving);
        (is_send, if is_send { Some(request.pe) } else { request.envelope.source_pe() })
    }

    /// A look at a request that needs no lock, and may outlive the request.
    pub fn watch_message(&self, id: RequestId) -> Arc<Completed> {
        let mut state = self.lock();
        let request = state.exchange.requests.get(id);
        let (_, pe) = self.partner(request);
        let watch = || Arc::new(Completed::new(request.phase == Phase::Done, pe));
        let watch = request.watch.clone().unwrap_or_else(watch);
        Arc::clone(request.watch.insert(watch))
    }

    /// Cancels a receive that has no message yet: it is then done, and its outcome says that it was
    /// cancelled. Returns whether it was. A send is not cancelled.
    pub fn cancel_receive(&self, id: RequestId) -> bool {
        let mut state = self.lock();
        let exchange = &mut state.exchange;
        let request = exchange.requests.get(id);
        let Phase::Posted(place) = request.phase else { return false };
        request.is_cancelled = true;
        exchange.matching.unpost(place);
        exchange.complete(id);
        true
    }

    /// Looks for a message that a receive with this pattern would get: its envelope and length.
    #[track_caller]
    pub fn probe_once(&self, pattern: &Envelope) -> Option<Status> {
        self.probe_with(pattern, true, |exchange, place| {
            let (envelope, message) = exchange.matching.unexpected(place);
            Status::of(envelope, message.len())
        })
    }

    /// Takes a message that a receive with this pattern would get, so that only the caller can receive it.
    #[track_caller]
    pub fn match_once(&self, pattern: &Envelope) -> Option<Matched> {
        self.match_with(pattern, true)
    }

    /// The same for a hook, which runs within a round of progress, so that this begins none.
    #[track_caller]
    pub fn match_arrived(&self, pattern: &Envelope) -> Option<Matched> {
        self.match_with(pattern, false)
    }

    #[track_caller]
    fn match_with(&self, pattern: &Envelope, progresses: bool) -> Option<Matched> {
        self.probe_with(pattern, progresses, |exchange, place| {
            let (envelope, message) = exchange.matching.take_unexpected(place);
            Matched { envelope, message }
        })
    }

    #[track_caller]
    fn probe_with<R>(
        &self,
        pattern: &Envelope,
        progresses: bool,
        found: impl FnOnce(&mut Exchange, super::queue::Place) -> R,
    ) -> Option<R> {
        let mut state = self.lock();
        let mut place = state.exchange.matching.find_unexpected(pattern);
        if place.is_none() {
            if progresses {
                drop(state);
                self.progress();
                state = self.lock();
            }
            self.poll(&mut state, true);
            place = state.exchange.matching.find_unexpected(pattern);
        }
        let found = place.map(|place| found(&mut state.exchange, place));
        let has_net_work = state.exchange.has_net_work();
        drop(state);
        if has_net_work {
            self.flush_net();
        }
        found
    }

    /// Waits for a message that a receive with this pattern would get; see
    /// [`probe_once`](TwoSided::probe_once).
    #[track_caller]
    pub fn probe(&self, pattern: &Envelope) -> Status {
        self.wait_until(pattern.source_pe(), || self.probe_once(pattern))
    }

    /// Waits for a message as [`match_once`](TwoSided::match_once) takes it.
    #[track_caller]
    pub fn match_message(&self, pattern: &Envelope) -> Matched {
        self.wait_until(pattern.source_pe(), || self.match_once(pattern))
    }

    #[track_caller]
    fn wait_until<R>(&self, pe: Option<Pe>, mut look: impl FnMut() -> Option<R>) -> R {
        let mut found = look();
        if found.is_none() {
            self.wait(Awaited::Message { is_send: false, pe }, || {
                found = found.take().or_else(&mut look);
                found.is_some()
            });
        }
        found.expect("a wait ends when a message has come")
    }

    /// Makes progress on messages, unless another thread does.
    #[track_caller]
    pub fn advance_messages(&self) {
        let Some(state) = self.msg.get_if_open() else { return };
        let Some(mut state) = state.try_lock() else { return };
        self.poll(&mut state, false);
        let has_net_work = state.exchange.has_net_work();
        drop(state);
        if has_net_work {
            self.flush_net();
        }
    }

    /// Waits until everything that was sent here has left, as this PE is about to leave the job.
    #[track_caller]
    pub fn finish_messages(&self) {
        let Some(state) = self.msg.get_if_open() else { return };
        let busy = || state.lock().exchange.busy.front().copied();
        while let Some(pe) = busy() {
            // Others for which something waits may go on to compute when this one has left the job.
            self.wait(Awaited::Message { is_send: true, pe: Some(pe) }, || {
                let peer = &state.lock().exchange.peers[pe];
                !peer.is_busy && peer.is_idle()
            });
        }
    }

    /// The number of messages that this PE keeps because no receive has asked for them.
    pub fn unexpected_messages(&self) -> usize {
        self.msg.get_if_open().map_or(0, |state| state.lock().exchange.matching.unexpected_len())
    }

    /// The number of PEs for which something counts as waiting to be sent.
    pub fn busy_peers(&self) -> usize {
        self.msg.get_if_open().map_or(0, |state| state.lock().exchange.busy.len())
    }

    /// The number of parts of its long messages that this PE has copied to their receivers.
    pub fn helped_parts(&self) -> u64 {
        self.msg.get_if_open().map_or(0, |state| state.lock().exchange.helped_parts)
    }

    /// A number that changes when a message arrives or a request completes.
    pub fn message_activity(&self) -> u64 {
        self.msg.get_if_open().map_or(0, |state| {
            let state = state.lock();
            state.exchange.completed + state.exchange.arrived
        })
    }

    /// Whether no message waits in a FIFO of this PE that it would take.
    pub fn are_fifos_settled(&self) -> bool {
        self.msg.get_if_open().is_none_or(|state| !state.lock().has_arrivals())
    }

    #[inline(always)]
    fn lock(&self) -> Held<'_, State> {
        self.msg.get(&self.messaging.teams).lock()
    }

    /// Refuses the number that stands for any tag.
    ///
    /// # Errors
    /// If it is [`ANY_TAG`].
    #[inline(always)]
    pub fn check_tag(&self, operation: &'static str, tag: Tag) -> Result<()> {
        match tag {
            ANY_TAG => Err(self.bad_tag(operation)),
            _ => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn bad_tag(&self, operation: &'static str) -> Error {
        ErrorKind::BadTag { me: self.my_pe(), operation }.into()
    }
}

/// A wait for a request. If it fails, its buffer is not accessed any more when the caller unwinds.
struct Settling<'a>(&'a TwoSided);

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        self.0.settle_messages();
    }
}
