//! Puts that are messages: puts with a signal, and unreported puts. The processor of the target copies the
//! data to its memory, and then executes the signal.
//!
//! ```text
//! | prefix (24 bytes) | key (8) | offset (8) | key of the word (8) | its offset (8) | operand (8) | data |
//! header in the prefix: | puts executed (4) | code of the atomic (2) | whether it is acknowledged (2) |
//! ```
//! Each endpoint counts the puts of each peer that it has executed. A put to that peer contains the count. A
//! message with the count alone is sent when no put has contained it for some rounds of progress.
//!
//! Invariant: an acknowledged put is complete when its target has executed it. The messages of an endpoint to
//! a PE arrive in order, so its puts are complete in the order in which they were started. `FI_ORDER_SAS`
//! alone does not promise this (`fi_endpoint(3)`): a message of one packet may be reported before an earlier
//! one of several packets. Then a put could be executed before an earlier one, and a flush be acknowledged
//! before the unreported puts in front of it were executed. Nothing here detects this. A put and its own
//! signal are one message, and counts may come in any order.

use super::message::{ACKNOWLEDGEMENT, PREFIX_BYTES, PUT, write_prefix};
use super::region::Memory;
use super::slots::{BUFFER_BYTES, SLOTS_MAX};
use crate::amo::Atomic;
use crate::copy;
use crate::operation::{Completion, Put, Signal};
use crate::types::{Event, Key, Pe, Remote, Token};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Words between the prefix and the data.
const WORDS: usize = 5;
/// Bytes before the data.
pub(super) const HEAD_BYTES: usize = PREFIX_BYTES + 8 * WORDS;
/// The longest data.
pub(super) const DATA_BYTES: usize = BUFFER_BYTES - HEAD_BYTES;
/// The code of a put without a signal. No atomic has it.
const NO_SIGNAL: u16 = u16::MAX;
/// Acknowledged puts that may be under way.
const UNDER_WAY_MAX: u64 = SLOTS_MAX as u64;
/// Rounds of progress for which a count waits for a put that contains it, while messages arrive.
const ROUNDS_MAX: u32 = 16;

/// The puts of an endpoint that are messages, and those that it has executed for its peers.
pub(super) struct Deliveries {
    peers: Box<[Peer]>,
    /// Acknowledged puts to all peers.
    started: Cell<u64>,
    complete: Cell<u64>,
    /// The peers to which a message must be sent.
    owed: RefCell<Vec<Pe>>,
    /// Rounds of progress since something is owed.
    rounds: Cell<u32>,
    /// The place of a message that libfabric copies.
    pub(super) room: RefCell<Box<[u8]>>,
}

/// The counts of a peer. They wrap around; no more than `UNDER_WAY_MAX` puts lie between two of them.
#[derive(Default)]
struct Peer {
    /// Acknowledged puts to it, and those of them that it has executed.
    started: Cell<u32>,
    complete: Cell<u32>,
    /// Its acknowledged puts that were executed here, and the count that it was sent last.
    executed: Cell<u32>,
    told: Cell<u32>,
    is_owed: Cell<bool>,
    wants_flush: Cell<bool>,
    /// Whether an unreported put was started since the last flush.
    has_unreported: Cell<bool>,
    /// The puts that have tokens, with their numbers, in order.
    tokens: RefCell<VecDeque<(u32, Token)>>,
}

/// The message that is owed to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owed {
    Nothing,
    /// An acknowledged put without data.
    Flush,
    /// The count of its puts.
    Count,
}

/// A put that has arrived.
#[derive(Debug, PartialEq)]
struct Arrived<'a> {
    executed: u32,
    is_acknowledged: bool,
    /// Key and offset of the data, and of the word.
    target: (Key, u64),
    word: (Key, u64),
    atomic: Option<Atomic>,
    data: &'a [u8],
}

impl Arrived<'_> {
    /// Reads a put. `None` if this is none.
    fn unpack(header: u64, payload: &[u8]) -> Option<Arrived<'_>> {
        let (words, data) = payload.split_first_chunk::<{ 8 * WORDS }>()?;
        let word = |i: usize| u64::from_le_bytes(words.as_chunks().0[i]);
        let (code, flag) = ((header >> 32) as u16, (header >> 48) as u16);
        let atomic = match code {
            NO_SIGNAL => None,
            code => Some(Atomic::from_code(code, word(4), 0)?),
        };
        let (target, word) = ((word(0), word(1)), (word(2), word(3)));
        let is_acknowledged = flag == 1;
        (flag <= 1).then_some(Arrived {
            executed: header as u32,
            is_acknowledged,
            target,
            word,
            atomic,
            data,
        })
    }

    /// Copies the data, and executes the signal. An error describes a put that no member sends; then nothing
    /// is written.
    fn execute(&self, memory: &Memory) -> Result<(), String> {
        let place = |(key, offset), bytes| {
            let place = memory.place(key, offset, bytes);
            place.ok_or_else(|| {
                format!("{bytes} bytes at offset {offset} of key {key}, which is not registered")
            })
        };
        let data = (!self.data.is_empty()).then(|| place(self.target, self.data.len())).transpose()?;
        let word = self.atomic.map(|atomic| place(self.word, atomic.kind.bytes())).transpose()?;
        if let (Some(atomic), Some(word)) = (&self.atomic, word)
            && !word.addr().is_multiple_of(atomic.kind.bytes())
        {
            return Err(format!("a signal at offset {}, which is not aligned", self.word.1));
        }
        if let Some(place) = data {
            // SAFETY: the range lies in a registered region, as was checked, and the data in a message.
            unsafe { copy::transfer(place, self.data.as_ptr(), self.data.len()) };
        }
        if let (Some(atomic), Some(word)) = (&self.atomic, word) {
            // SAFETY: the word lies in a registered region, aligned, as was checked.
            unsafe { atomic.execute(word) };
        }
        Ok(())
    }
}

impl Deliveries {
    pub(super) fn new(n_pes: usize) -> Deliveries {
        Deliveries {
            peers: (0..n_pes).map(|_| Peer::default()).collect(),
            started: Cell::new(0),
            complete: Cell::new(0),
            owed: RefCell::default(),
            rounds: Cell::new(0),
            room: RefCell::new(vec![0; BUFFER_BYTES].into()),
        }
    }

    /// Acknowledged puts that are complete.
    pub(super) fn complete(&self) -> u64 {
        self.complete.get()
    }

    /// Acknowledged puts that are not complete.
    pub(super) fn under_way(&self) -> u64 {
        self.started.get() - self.complete.get()
    }

    /// Whether a put may be started.
    pub(super) fn has_room(&self, completion: Completion) -> bool {
        !completion.is_reported() || self.under_way() < UNDER_WAY_MAX
    }

    /// Writes a put to its peer.
    ///
    /// # Safety
    /// The source is valid for reads.
    pub(super) unsafe fn write_put(
        &self,
        into: &mut [u8],
        member: (u64, Pe),
        put: &Put,
        signal: Option<Signal>,
    ) {
        let Put { pe, target, source, bytes, completion } = *put;
        let (code, word, operand) = match signal {
            None => (NO_SIGNAL, target, 0),
            Some(Signal { word, atomic }) => (atomic.code(), word, atomic.operand),
        };
        let is_acknowledged = u64::from(completion.is_reported());
        let executed = u64::from(self.peers[pe].executed.get());
        write_prefix(into, member, PUT, executed | u64::from(code) << 32 | is_acknowledged << 48);
        let places = [target, word].map(|place| [place.key, place.offset_bytes as u64]);
        let [[key, offset], [word_key, word_offset]] = places;
        let words = [key, offset, word_key, word_offset, operand];
        let (head, data) = into.split_at_mut(HEAD_BYTES);
        for (bytes, word) in head[PREFIX_BYTES..].as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        // SAFETY: the caller has promised the source; the room is a slice.
        unsafe { data[..bytes].as_mut_ptr().copy_from_nonoverlapping(source, bytes) };
    }

    /// Writes a put without data or signal, which its peer acknowledges.
    pub(super) fn write_flush(&self, into: &mut [u8], member: (u64, Pe), pe: Pe) {
        let (target, source) = (Remote { key: 0, offset_bytes: 0 }, std::ptr::dangling());
        let put = Put { pe, target, source, bytes: 0, completion: Completion::Counted };
        // SAFETY: nothing is read from the source of an empty put.
        unsafe { self.write_put(into, member, &put, None) };
    }

    /// Writes a message with the count of a peer's puts.
    pub(super) fn write_count(&self, into: &mut [u8], member: (u64, Pe), pe: Pe) {
        write_prefix(into, member, ACKNOWLEDGEMENT, u64::from(self.peers[pe].executed.get()));
    }

    /// Records that a message with the count of a peer's puts was sent.
    pub(super) fn told(&self, pe: Pe) {
        let peer = &self.peers[pe];
        peer.told.set(peer.executed.get());
    }

    /// Records that a put was sent.
    pub(super) fn began(&self, pe: Pe, completion: Completion) {
        self.told(pe);
        let peer = &self.peers[pe];
        if !completion.is_reported() {
            return peer.has_unreported.set(true);
        }
        self.started.set(self.started.get() + 1);
        peer.started.set(peer.started.get().wrapping_add(1));
        if let Some(token) = completion.token() {
            peer.tokens.borrow_mut().push_back((peer.started.get(), token));
        }
    }

    /// Owes a flush to each peer to which unreported puts were started since the last flush. Returns their
    /// number. A put that overtakes a flush is behind the unreported puts too, so the numbers of both may be
    /// exchanged.
    pub(super) fn begin_flushes(&self) -> u64 {
        let mut count = 0;
        for (pe, peer) in self.peers.iter().enumerate() {
            // A flush that was not sent yet is one for these puts as well.
            if peer.has_unreported.take() && !peer.wants_flush.replace(true) {
                self.started.set(self.started.get() + 1);
                peer.started.set(peer.started.get().wrapping_add(1));
                self.owe(pe);
                count += 1;
            }
        }
        count
    }

    fn owe(&self, pe: Pe) {
        if !self.peers[pe].is_owed.replace(true) {
            self.owed.borrow_mut().push(pe);
        }
    }

    /// Whether what is owed must be sent now, in a round of progress.
    pub(super) fn is_due(&self, is_idle: bool) -> bool {
        if self.owes_nothing() {
            return false;
        }
        let rounds = self.rounds.get() + 1;
        let is_due = is_idle || rounds >= ROUNDS_MAX;
        self.rounds.set(if is_due { 0 } else { rounds });
        is_due
    }

    pub(super) fn owes_nothing(&self) -> bool {
        self.owed.borrow().is_empty()
    }

    /// Calls `send` for each message that is owed. It returns whether the message was sent.
    pub(super) fn pay(&self, send: impl Fn(Pe, Owed) -> bool) {
        self.owed.borrow_mut().retain(|&pe| {
            let peer = &self.peers[pe];
            let owed = if peer.wants_flush.get() {
                Owed::Flush
            } else if peer.executed != peer.told {
                Owed::Count
            } else {
                Owed::Nothing
            };
            let is_paid = owed == Owed::Nothing || send(pe, owed);
            if is_paid {
                peer.wants_flush.set(false);
                peer.is_owed.set(false);
                self.told(pe);
            }
            !is_paid
        });
    }

    /// Executes a put of a peer. Returns the number of events. An error describes a message that no member
    /// sends.
    pub(super) fn execute(
        &self,
        memory: &Memory,
        (from, header, payload): (Pe, u64, &[u8]),
        handle: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, String> {
        let put = Arrived::unpack(header, payload).ok_or("a put in a wrong format")?;
        put.execute(memory)?;
        if put.is_acknowledged {
            let peer = &self.peers[from];
            peer.executed.set(peer.executed.get().wrapping_add(1));
            self.owe(from);
        }
        Ok(1 + self.take_count(from, put.executed, handle)?)
    }

    /// Takes the number of puts that a peer has executed. Returns the number of events. A lower number than
    /// one before says nothing new: an endpoint may report messages in another order than they were sent
    /// (`fi_endpoint(3)`: `msg_order` is the order in which their headers are processed, not that of their
    /// completions). An error describes a number that is too high.
    pub(super) fn take_count(
        &self,
        from: Pe,
        executed: u32,
        handle: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, String> {
        let (peer, mut events) = (&self.peers[from], 0);
        if (executed.wrapping_sub(peer.complete.get()) as i32) < 0 {
            return Ok(0);
        }
        let more = executed.wrapping_sub(peer.complete.get());
        if more > peer.started.get().wrapping_sub(peer.complete.get()) {
            return Err(format!("a count of {executed} puts, which were not started"));
        }
        peer.complete.set(executed);
        self.complete.set(self.complete.get() + u64::from(more));
        let mut tokens = peer.tokens.borrow_mut();
        while let Some(&(number, token)) = tokens.front()
            && executed.wrapping_sub(number) <= UNDER_WAY_MAX as u32
        {
            tokens.pop_front();
            handle(Event::Done(token));
            events += 1;
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amo::{AtomicKind, AtomicOp};
    use proptest::prelude::*;

    const MEMBER: (u64, Pe) = (77, 1);

    fn remote(key: Key, offset_bytes: usize) -> Remote {
        Remote { key, offset_bytes }
    }

    /// A put as it is on the wire, without the proof and the sender: its header and its payload.
    fn written(deliveries: &Deliveries, put: &Put, signal: Option<Signal>) -> (u64, Vec<u8>) {
        let mut room = vec![0xEE; HEAD_BYTES + put.bytes];
        // SAFETY: tests give sources of this many bytes.
        unsafe { deliveries.write_put(&mut room, MEMBER, put, signal) };
        let (from, kind, header, payload) = super::super::message::unpack(&room, MEMBER.0).unwrap();
        assert_eq!((from, kind), (MEMBER.1, PUT));
        (header, payload.to_vec())
    }

    fn empty_put(completion: Completion) -> Put {
        Put { pe: 0, target: remote(0, 0), source: std::ptr::dangling(), bytes: 0, completion }
    }

    fn take(deliveries: &Deliveries, executed: u32) -> Result<Vec<Token>, String> {
        let mut done = Vec::new();
        let mut handle = |event: Event<'_>| match event {
            Event::Done(token) => done.push(token),
            event => panic!("{event:?}"),
        };
        let events = deliveries.take_count(0, executed, &mut handle)?;
        assert_eq!(events, done.len());
        Ok(done)
    }

    proptest! {
        #[test]
        fn puts_are_read_as_they_were_written(
            data in proptest::collection::vec(any::<u8>(), 0..300), keys: [Key; 2], offsets: [usize; 2],
            operand: u64, is_signal: bool, is_unreported: bool,
        ) {
            let completion = if is_unreported { Completion::Unreported } else { Completion::Counted };
            let target = remote(keys[0], offsets[0]);
            let put = Put { pe: 0, target, source: data.as_ptr(), bytes: data.len(), completion };
            let atomic = Atomic { kind: AtomicKind::I32, op: AtomicOp::Add, operand, compare: 0 };
            let word = remote(keys[1], offsets[1]);
            let signal = is_signal.then_some(Signal { word, atomic });
            let (header, payload) = written(&Deliveries::new(1), &put, signal);
            let place = |remote: Remote| (remote.key, remote.offset_bytes as u64);
            let arrived = Arrived {
                executed: 0,
                is_acknowledged: !is_unreported,
                target: place(target),
                word: place(if is_signal { word } else { target }),
                atomic: signal.map(|signal| signal.atomic),
                data: &data,
            };
            prop_assert_eq!(Arrived::unpack(header, &payload), Some(arrived));
        }
    }

    #[test]
    fn what_is_not_a_put_is_refused() {
        let (header, payload) = written(&Deliveries::new(1), &empty_put(Completion::Counted), None);
        assert!(Arrived::unpack(header, &payload).is_some());
        assert!(Arrived::unpack(header, &payload[1..]).is_none(), "too short");
        assert!(Arrived::unpack(header, &[]).is_none(), "too short");
        assert!(Arrived::unpack(header + (1 << 48), &payload).is_none(), "neither acknowledged nor not");
        for code in [0x0B00, 0x0013, 0x0806, 0xFFFE] {
            let header = header & !(0xFFFF << 32) | code << 32;
            assert!(Arrived::unpack(header, &payload).is_none(), "there is no atomic {code:#x}");
        }
    }

    #[test]
    fn tokens_come_back_in_order_and_a_count_that_is_too_high_is_refused() {
        let deliveries = Deliveries::new(1);
        // The counts wrap around.
        let peer = &deliveries.peers[0];
        peer.started.set(u32::MAX - 2);
        peer.complete.set(u32::MAX - 2);
        for token in [5, 6, 7] {
            deliveries.began(0, Completion::Tracked(token));
            deliveries.began(0, Completion::Counted);
            deliveries.began(0, Completion::Unreported);
        }
        assert!(take(&deliveries, 4).is_err() && take(&deliveries, 1 << 30).is_err());
        assert_eq!((deliveries.under_way(), deliveries.complete()), (6, 0));
        assert_eq!(take(&deliveries, u32::MAX - 2), Ok(vec![]));
        assert_eq!(take(&deliveries, u32::MAX - 1), Ok(vec![5]));
        assert_eq!(take(&deliveries, 2), Ok(vec![6, 7]));
        assert_eq!((deliveries.under_way(), deliveries.complete()), (1, 5));
        assert_eq!(take(&deliveries, 3), Ok(vec![]));
        assert_eq!((deliveries.under_way(), deliveries.complete()), (0, 6));
    }

    /// Messages may be reported in another order than they were sent.
    #[test]
    fn an_older_count_behind_a_newer_one_changes_nothing() {
        let deliveries = Deliveries::new(1);
        let peer = &deliveries.peers[0];
        peer.started.set(u32::MAX);
        peer.complete.set(u32::MAX);
        (0..UNDER_WAY_MAX as Token).for_each(|token| deliveries.began(0, Completion::Tracked(token)));
        assert_eq!(take(&deliveries, 5).map(|done| done.len()), Ok(6));
        let under_way = UNDER_WAY_MAX - 6;
        for older in [4, 0, u32::MAX, u32::MAX - 1, 5_u32.wrapping_sub(UNDER_WAY_MAX as u32)] {
            assert_eq!(take(&deliveries, older), Ok(vec![]), "{older}");
            assert_eq!((deliveries.under_way(), deliveries.complete()), (under_way, 6));
        }
        assert_eq!(take(&deliveries, 6), Ok(vec![6]));
        assert!(take(&deliveries, UNDER_WAY_MAX as u32).is_err(), "more than were started");
    }

    #[test]
    fn acknowledged_puts_are_bounded() {
        let deliveries = Deliveries::new(2);
        for i in 0..UNDER_WAY_MAX {
            assert!(deliveries.has_room(Completion::Counted));
            deliveries.began(i as Pe % 2, Completion::Counted);
        }
        assert!(!deliveries.has_room(Completion::Counted) && !deliveries.has_room(Completion::Tracked(1)));
        assert!(deliveries.has_room(Completion::Unreported));
        assert_eq!(take(&deliveries, 1), Ok(vec![]));
        assert!(deliveries.has_room(Completion::Counted));
    }

    #[test]
    fn a_flush_that_could_not_be_sent_is_sent_later_and_once() {
        let deliveries = Deliveries::new(2);
        assert_eq!(deliveries.begin_flushes(), 0);
        deliveries.began(1, Completion::Unreported);
        assert_eq!(deliveries.begin_flushes(), 1);
        deliveries.pay(|pe, owed| {
            assert_eq!((pe, owed), (1, Owed::Flush));
            false
        });
        deliveries.began(1, Completion::Unreported);
        assert_eq!((deliveries.begin_flushes(), deliveries.under_way()), (0, 1), "that flush is for both");
        assert!(deliveries.is_due(true) && !deliveries.owes_nothing());
        deliveries.pay(|_, owed| owed == Owed::Flush);
        assert!(deliveries.owes_nothing() && !deliveries.is_due(true));
        assert_eq!(deliveries.begin_flushes(), 0);
    }

    #[test]
    fn a_count_waits_for_a_put_but_not_for_long() {
        let deliveries = Deliveries::new(1);
        let executed = |count: u32| {
            deliveries.peers[0].executed.set(count);
            deliveries.owe(0);
        };
        executed(1);
        assert!((1..ROUNDS_MAX).all(|_| !deliveries.is_due(false)) && deliveries.is_due(false));
        deliveries.pay(|pe, owed| (pe, owed) == (0, Owed::Count));
        assert!(deliveries.owes_nothing());
        executed(2);
        let (header, _) = written(&deliveries, &empty_put(Completion::Unreported), None);
        assert_eq!(header as u32, 2, "a put contains the count");
        deliveries.began(0, Completion::Unreported);
        deliveries.pay(|_, owed| panic!("{owed:?} is owed"));
        assert!(deliveries.owes_nothing());
    }
}
